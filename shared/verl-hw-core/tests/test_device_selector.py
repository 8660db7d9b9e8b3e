# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A selector beside the mask: which devices are left, under which ordinals."""

import pytest
from detectionkit import INTEL

from verl_hw_core.errors import VisibleDevicesError
from verl_hw_core.platform.device_selector import selected_ordinals
from verl_hw_core.platform.visible_devices import device_uuid, read_mask

SELECTOR = "ONEAPI_DEVICE_SELECTOR"


@pytest.mark.parametrize(
    ("value", "ordinals"),
    [
        ("level_zero:*", None),
        ("level_zero:gpu", None),
        ("*:gpu", None),
        ("*:*", None),
        ("LEVEL_ZERO:GPU", None),
        ("level_zero:2", (2,)),
        ("level_zero:3, 1", (1, 3)),
        ("level_zero:0;level_zero:2", (0, 2)),
        ("opencl:cpu;level_zero:1", (1,)),
        ("opencl:*", ()),
    ],
)
def test_forms(value, ordinals):
    assert selected_ordinals(SELECTOR, value) == ordinals


@pytest.mark.parametrize(
    "value", ["", "0,1", "level_zero:0.1", "!level_zero:0", "*:0", "level_zero:cpu", "level_zero:"]
)
def test_other_forms_are_errors_that_help(value):
    with pytest.raises(VisibleDevicesError, match=f"{SELECTOR}=.*accepted are 'level_zero:0,1'"):
        selected_ordinals(SELECTOR, value)


@pytest.mark.parametrize(
    ("mask", "selector", "entries"),
    [
        (None, "level_zero:2,5", ("2", "5")),
        (None, "*:gpu", None),
        ("7,4,5,6", "level_zero:0,3", ("4", "7")),
        ("0.1,1.0", "level_zero:1", ("1.0",)),
        ("", "*:gpu", ()),
        ("4,5", "opencl:gpu", ()),
    ],
)
def test_it_counts_what_the_mask_leaves(mask, selector, entries):
    environ = {SELECTOR: selector, **({} if mask is None else {"ZE_AFFINITY_MASK": mask})}
    assert read_mask(INTEL, environ).entries == entries


def test_uuids_follow_it():
    environ = {"ZE_AFFINITY_MASK": "4,5,6,7", SELECTOR: "level_zero:1,2"}
    alone = {"ZE_AFFINITY_MASK": "5,6"}
    assert [device_uuid(INTEL, n, environ) for n in (0, 1)] == [device_uuid(INTEL, n, alone) for n in (0, 1)]


def test_a_selector_of_nothing_that_is_left_is_an_error():
    with pytest.raises(VisibleDevicesError, match=f"selects device 4.*Unset {SELECTOR}"):
        read_mask(INTEL, {"ZE_AFFINITY_MASK": "4", SELECTOR: "level_zero:4,5"})
