# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Ray's slots and ids under every form of mask: each worker its own device, or an error.

Ray is modelled after its source: a worker's id is its slot, or that entry of the variable that Ray's manager finds set
when the worker starts; unless NOSET is set, Ray then writes the ids to the variable.
"""

from dataclasses import dataclass

import pytest
from detectionkit import CAMBRICON, ENFLAME, INTEL, METAX

from verl_hw_core.errors import DeviceAssignmentError, VerlHwError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform.visible_devices import read_mask
from verl_hw_core.ray_support.holding import Holding, cards, ordinals, parse

CUDA, MACA, MLU, CN, TOPS, ZE, SELECTOR = (
    "CUDA_VISIBLE_DEVICES",
    "MACA_VISIBLE_DEVICES",
    "MLU_VISIBLE_DEVICES",
    "CN_VISIBLE_DEVICES",
    "TOPS_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "ONEAPI_DEVICE_SELECTOR",
)
COMPOSITE = {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}
CARDS = 8
PREFIX = {SELECTOR: "level_zero:"}


@dataclass(frozen=True)
class Node:
    """A node as ``ray start`` finds it.

    Attributes:
        spec: Vendor.
        ray_variable: Variable that Ray's manager for the resource reads and writes.
        environ: Environment of the node.
        noset: Whether Ray leaves the variable alone.
        slots: Devices that Ray offers.
    """

    spec: HardwareSpec
    ray_variable: str | None
    environ: dict[str, str]
    noset: bool
    slots: int

    def worker(self, slot: int) -> tuple[dict[str, str], Holding]:
        """Environment and holding of the worker that Ray gives the slot."""
        environ = dict(self.environ)
        before = environ.get(self.ray_variable or "")
        listed = None if before is None else before.removeprefix(PREFIX.get(self.ray_variable or "", "")).split(",")
        ids = (str(slot),) if listed is None else (listed[slot].strip(),)
        if self.ray_variable and not self.noset:
            environ[self.ray_variable] = PREFIX.get(self.ray_variable, "") + ",".join(ids)
        return environ, Holding("GPU", 1.0, (slot,), ids if self.ray_variable else (), self.ray_variable, "ab", slot)

    def devices(self) -> list[str]:
        """Card of each worker."""
        found = []
        for slot in range(self.slots):
            environ, holding = self.worker(slot)
            mask = read_mask(self.spec, environ)
            count = CARDS if mask.entries is None else len(mask.entries)
            found += cards(mask, ordinals(mask, holding, count))
        return found


MASKS = {
    "unset": {},
    "listed": {MLU: "4,5,6,7"},
    "unsorted": {MLU: "7,4,5,6"},
    "blanks": {MLU: " 7 , 4,5 ,6"},
    "small": {MLU: "1,2,3,0"},
    "stronger": {CN: "4,5,6,7", MLU: "0,1,2,3"},
    "uuids": {MLU: "MLU-a,MLU-b,MLU-c,MLU-d"},
    "other": {CUDA: "4,5,6,7"},
    "both": {MLU: "1,0,3,2", CUDA: "4,5,6,7"},
}


@pytest.mark.parametrize("noset", [False, True])
@pytest.mark.parametrize(
    ("variable", "environ"),
    [
        (variable, environ)
        for variable in (CUDA, MLU, CN, None)
        for environ in MASKS.values()
        # A Ray that counts in a variable of the chip which is not the one that is set: see the next test.
        if variable in (CUDA, None) or variable in environ or not {MLU, CN} & environ.keys()
    ],
)
def test_whatever_variable_ray_manages(variable, environ, noset):
    """Stock Ray writes CUDA_VISIBLE_DEVICES, a patched one MLU_, the open change CN_, unit instances nothing."""
    expected = read_mask(CAMBRICON, environ).entries or ("0", "1", "2", "3")
    assert Node(CAMBRICON, variable, environ, noset, 4).devices() == list(expected)


@pytest.mark.parametrize("noset", [False, True])
def test_a_ray_that_counts_from_0_over_the_nodes_mask(noset):
    # Ray's manager reads and writes MLU_, the node's mask is in CN_, which wins: the slots count within it.
    assert Node(CAMBRICON, MLU, {CN: "6,7"}, noset, 2).devices() == ["6", "7"]
    # The manager writes CN_, which wins over the node's MLU_: the ids are cards, as the runtime reads them.
    expected = ["6", "7"] if noset else ["0", "1"]
    assert Node(CAMBRICON, CN, {MLU: "6,7"}, noset, 2).devices() == expected


@pytest.mark.parametrize("noset", [False, True])
@pytest.mark.parametrize(
    ("spec", "variable", "environ", "expected"),
    [
        (ENFLAME, CUDA, {}, ["0", "1"]),
        (ENFLAME, CUDA, {TOPS: "5,4"}, ["5", "4"]),
        (METAX, CUDA, {}, ["0", "1"]),
        (METAX, CUDA, {CUDA: "5,4"}, ["5", "4"]),
        (METAX, CUDA, {MACA: "6,7"}, ["6", "7"]),
        (METAX, CUDA, {MACA: "6,7", CUDA: "0,1"}, ["6", "7"]),
        (METAX, CUDA, {MACA: "1,0", CUDA: "6,7"}, ["1", "0"]),
        (INTEL, ZE, {}, ["0", "1"]),
        (INTEL, ZE, {ZE: "6,7"}, ["6", "7"]),
        (INTEL, ZE, {ZE: "7,6"}, ["7", "6"]),
        (INTEL, ZE, {ZE: "0.0,0.1"}, ["0.0", "0.1"]),
        (INTEL, CUDA, {ZE: "7,6"}, ["6", "7"]),  # no dpctl: Ray's manager is another vendor's
        (INTEL, CUDA, {ZE: "7,6,5", SELECTOR: "level_zero:0,2"}, ["5", "7"]),
        (INTEL, SELECTOR, {}, ["0", "1"]),  # Ray before 2.5x
        (INTEL, SELECTOR, {ZE: "6,7"}, ["6", "7"]),
        (INTEL, SELECTOR, {SELECTOR: "level_zero:2,3"}, ["2", "3"]),
    ],
)
def test_each_vendor_under_the_rays_that_it_meets(spec, variable, environ, expected, noset):
    assert Node(spec, variable, environ, noset, 2).devices() == expected


def test_parts_that_form_one_device_are_counted_as_devices():
    node = Node(INTEL, ZE, {ZE: "0.0,0.1,1.0,1.1", **COMPOSITE}, True, 2)
    assert node.devices() == ["0.0,0.1", "1.0,1.1"]
    with pytest.raises(DeviceAssignmentError, match="sees 2 devices"):
        Node(INTEL, ZE, {ZE: "0.0,0.1,1.0,1.1", **COMPOSITE}, True, 3).devices()


@pytest.mark.parametrize(
    ("spec", "variable", "environ", "text"),
    [
        (CAMBRICON, CUDA, {MLU: ""}, "sees 0 devices.*for `ray start`, not for the job"),
        (CAMBRICON, CUDA, {MLU: "4"}, "sees 1 devices"),
        (CAMBRICON, CUDA, {MLU: "4,4"}, "twice"),
        (METAX, CUDA, {MACA: ""}, "sees 0 devices"),
        # Ray 2.60 reads the selector and writes the mask beside it, which leaves nothing of what the selector wants.
        (INTEL, ZE, {SELECTOR: "level_zero:4,5"}, "Unset ONEAPI_DEVICE_SELECTOR"),
    ],
)
def test_a_worker_without_its_device_is_an_error(spec, variable, environ, text):
    with pytest.raises(VerlHwError, match=text):
        Node(spec, variable, environ, False, 2).devices()


def test_several_devices_of_one_worker():
    mask = read_mask(CAMBRICON, {MLU: "7,4,5,6"})
    assert ordinals(mask, Holding("GPU", 2.0, (1, 3), ("1", "3"), CUDA), 4) == (1, 3)
    assert cards(mask, (1, 3)) == ("4", "6")


# What Ray's worker says about its resources: the first two recorded from Ray 2.60 and 2.41.

GROUP = "f2482c788de32a0474d7022fd48c01000000"
RECORDED = {
    f"MLU_group_{GROUP}": [(1, 0.5)],
    f"bundle_group_3_{GROUP}": [(0, 0.001)],
    f"bundle_group_{GROUP}": [(0, 0.001)],
    f"MLU_group_3_{GROUP}": [(1, 0.5)],
}


def test_holding_in_a_placement_group():
    assert parse("MLU", RECORDED, units=True) == Holding("MLU", 0.5, (1,), placement_group=GROUP, bundle=3)
    assert parse("MLU", RECORDED, units=False) == Holding("MLU", 0.5, None, placement_group=GROUP, bundle=3)


def test_holding_outside_and_nothing():
    assert parse("GPU", {"GPU": [(0, 1.0), (2, 1.0)], "CPU": [(0, 1.0)]}, units=True) == Holding("GPU", 2.0, (0, 2))
    assert parse("GPU", RECORDED, units=True) is None
    assert parse("GPU", {"GPU": [(0, 0.0)]}, units=True) is None
    assert parse("MLU", {f"MLU2_group_{GROUP}": [(0, 1.0)]}, units=True) is None
