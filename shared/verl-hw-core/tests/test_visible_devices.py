# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Visibility masks: what each form means, which device is which, and which name it gets."""

import itertools
import re

import pytest
from detectionkit import CAMBRICON, ENFLAME, INTEL, METAX, SPECS

from verl_hw_core.errors import VisibleDevicesError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform.visible_devices import (
    Mask,
    check_count,
    device_uuid,
    local_ordinal,
    physical_id,
    read_mask,
    select,
)

COMPOSITE = {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}


def _mask(spec: HardwareSpec, value: str | None, **more: str) -> Mask:
    own = {} if value is None else {spec.visible_devices_envvar: value}
    return read_mask(spec, {**own, **more})


# Meaning of a mask.


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key)
@pytest.mark.parametrize(
    ("value", "entries"),
    [
        (None, None),
        ("", ()),
        ("  ", ()),
        ("-1", ()),
        ("0", ("0",)),
        ("2,5", ("2", "5")),
        ("2, 5", ("2", "5")),
        (" 2 ,\t5 ", ("2", "5")),
        ("02,5", ("2", "5")),
        ("2,10", ("2", "10")),
    ],
)
def test_forms_that_all_vendors_share(spec: HardwareSpec, value: str | None, entries: tuple[str, ...] | None) -> None:
    mask = _mask(spec, value)
    assert mask.source == spec.visible_devices_envvar
    assert mask.entries == entries


@pytest.mark.parametrize(
    ("spec", "entries"), [(INTEL, ("2", "5", "10")), (METAX, ("10", "5", "2")), (ENFLAME, ("10", "5", "2"))]
)
def test_order_follows_the_runtime(spec: HardwareSpec, entries: tuple[str, ...]) -> None:
    assert _mask(spec, "10,5,2").entries == entries


@pytest.mark.parametrize("value", ["GPU-abc", "MLU-8f2e,MLU-77aa", "GPU-0a/1,MIG-GPU-1f/2/0", "GCU-T6R2"])
def test_uuids_are_kept_as_written(value: str) -> None:
    assert _mask(CAMBRICON, value).entries == tuple(value.split(","))


@pytest.mark.parametrize(
    "hierarchy", [{}, {"ZE_FLAT_DEVICE_HIERARCHY": "FLAT"}, {"ZE_FLAT_DEVICE_HIERARCHY": "COMBINED"}]
)
def test_parts_are_devices_of_their_own(hierarchy: dict[str, str]) -> None:
    assert _mask(INTEL, "0.1,1.0", **hierarchy).entries == ("0.1", "1.0")
    assert _mask(INTEL, "1.0,0.1,0.0", **hierarchy).entries == ("0.0", "0.1", "1.0")


@pytest.mark.parametrize(
    ("value", "entries"),
    [
        ("0.0,0.1", ("0.0,0.1",)),
        ("0.1,1.0", ("0.1", "1.0")),
        ("1.1,0.1,1.0", ("0.1", "1.0,1.1")),
        ("2,0.1,0.0", ("0.0,0.1", "2")),
        ("0,1", ("0", "1")),
    ],
)
def test_parts_of_a_card_form_one_device_under_composite(value: str, entries: tuple[str, ...]) -> None:
    mask = _mask(INTEL, value, **COMPOSITE)
    assert mask.entries == entries
    check_count(mask, len(entries))
    assert _mask(INTEL, mask.value, **COMPOSITE) == mask  # what is written reads back the same


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (METAX, "2,5,"),
        (METAX, ",2"),
        (METAX, "2,,5"),
        (METAX, "0,-1"),
        (METAX, "-2"),
        (METAX, "1,1"),
        (METAX, "1,01"),
        (METAX, "0.1"),
        (METAX, "0;1"),
        (METAX, "0 1"),
        (METAX, "0-3"),
        (METAX, "all"),
        (METAX, "GPU-abc,GPU-abc"),
        (METAX, "0,GPU-abc"),
        (METAX, "٣"),
        (METAX, "9" * 5000),
        (INTEL, "GPU-abc"),
        (INTEL, "level_zero:0"),
        (INTEL, "0.1,0.1"),
        (INTEL, "0,0.1"),
        (INTEL, "0.1.2"),
        (INTEL, "0."),
    ],
)
def test_wrong_values_are_errors_that_help(spec: HardwareSpec, value: str) -> None:
    with pytest.raises(VisibleDevicesError) as error:
        _mask(spec, value)
    text = str(error.value)
    assert f"{spec.visible_devices_envvar}={value!r}" in text
    assert "accepted: device numbers such as '0,2'" in text


def test_error_names_what_is_wrong() -> None:
    with pytest.raises(VisibleDevicesError, match="entry '' is not valid"):
        _mask(METAX, "2,5,")
    with pytest.raises(VisibleDevicesError, match="names device '1' twice"):
        _mask(METAX, "1,2,1")
    with pytest.raises(VisibleDevicesError, match="names device '0' twice"):
        _mask(INTEL, "0.1,0")
    with pytest.raises(VisibleDevicesError, match="mixes device numbers and uuids"):
        _mask(METAX, "0,GPU-abc")


@pytest.mark.parametrize(
    ("spec", "environ", "source", "entries"),
    [
        (METAX, {"MACA_VISIBLE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "0,1"}, "MACA_VISIBLE_DEVICES", ("3",)),
        (METAX, {"MACA_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "0,1"}, "MACA_VISIBLE_DEVICES", ()),
        (METAX, {"CUDA_VISIBLE_DEVICES": "0,1"}, "CUDA_VISIBLE_DEVICES", ("0", "1")),
        (CAMBRICON, {"CN_VISIBLE_DEVICES": "7", "MLU_VISIBLE_DEVICES": "1"}, "CN_VISIBLE_DEVICES", ("7",)),
        (CAMBRICON, {"MLU_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "x"}, "MLU_VISIBLE_DEVICES", ("1",)),
    ],
)
def test_strongest_variable_wins(
    spec: HardwareSpec, environ: dict[str, str], source: str, entries: tuple[str, ...]
) -> None:
    assert read_mask(spec, environ) == Mask(source, entries)


def test_error_names_the_overriding_variable() -> None:
    with pytest.raises(VisibleDevicesError, match="MACA_VISIBLE_DEVICES='x'"):
        read_mask(METAX, {"MACA_VISIBLE_DEVICES": "x", "CUDA_VISIBLE_DEVICES": "0"})


def test_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPS_VISIBLE_DEVICES", "6")
    assert read_mask(ENFLAME).entries == ("6",)


# Physical id and ordinal.


@pytest.mark.parametrize("value", [None, "2,5", "5,2", "7"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key)
def test_ordinal_and_physical_id_are_inverse(spec: HardwareSpec, value: str | None) -> None:
    mask = _mask(spec, value)
    for ordinal in range(8 if mask.entries is None else len(mask.entries)):
        assert local_ordinal(mask, physical_id(mask, ordinal)) == ordinal


def test_physical_ids() -> None:
    assert [physical_id(_mask(METAX, "5,2"), ordinal) for ordinal in (0, 1)] == ["5", "2"]
    assert [physical_id(_mask(INTEL, "5,2"), ordinal) for ordinal in (0, 1)] == ["2", "5"]
    assert physical_id(_mask(METAX, None), 5) == "5"
    assert local_ordinal(_mask(METAX, "4,5"), 5) == 1
    assert local_ordinal(_mask(METAX, "GPU-a,GPU-b"), "GPU-b") == 1
    assert local_ordinal(_mask(INTEL, "0.0,0.1,1.0", **COMPOSITE), "0.1") == 0


@pytest.mark.parametrize(("value", "ordinal"), [("4,5", 2), ("4,5", -1), ("", 0), (None, -1), ("GPU-a", 1)])
def test_ordinal_outside_the_mask(value: str | None, ordinal: int) -> None:
    with pytest.raises(VisibleDevicesError, match=f"Device ordinal {ordinal} does not exist: CUDA_VISIBLE_DEVICES"):
        physical_id(_mask(METAX, value), ordinal)


@pytest.mark.parametrize(
    ("value", "physical"), [("4,5", "0"), ("", "0"), ("GPU-a", "0"), (None, "GPU-a"), (None, "-1")]
)
def test_device_outside_the_mask(value: str | None, physical: str) -> None:
    with pytest.raises(VisibleDevicesError, match=f"Device '{physical}' is not visible: CUDA_VISIBLE_DEVICES"):
        local_ordinal(_mask(METAX, value), physical)


def test_errors_name_both_numbers() -> None:
    with pytest.raises(VisibleDevicesError, match=r"ordinal 2 .*CUDA_VISIBLE_DEVICES='4,5' makes 2 devices visible"):
        physical_id(_mask(METAX, "4,5"), 2)
    with pytest.raises(VisibleDevicesError, match="='0,1,3,4' lists 4 devices but the runtime shows 3"):
        check_count(_mask(ENFLAME, "0,1,3,4"), 3)


def test_matching_counts_pass() -> None:
    check_count(_mask(ENFLAME, "0,1,3,4"), 4)
    check_count(_mask(ENFLAME, ""), 0)
    check_count(_mask(ENFLAME, None), 8)


# A worker's mask from the node's mask and Ray's ids.


@pytest.mark.parametrize(
    ("node", "ids", "expected"),
    [
        ("4,5,6,7", ["0", "1", "2", "3"], "4,5,6,7"),
        ("4,5,6,7", ["4", "5", "6", "7"], "4,5,6,7"),
        ("4,5,6,7", [3, 1], "7,5"),
        ("4,5,6,7", [7, 5], "7,5"),
        ("0,1,2,3", ["2"], "2"),
        ("1,0", [0, 1], "0,1"),
        (None, [3, 1], "3,1"),
        (None, ["GPU-a"], "GPU-a"),
        ("GPU-a,GPU-b", [1], "GPU-b"),
        ("GPU-a,GPU-b", ["GPU-b", "GPU-a"], "GPU-b,GPU-a"),
        ("4,5", [], ""),
    ],
)
def test_select(node: str | None, ids: list[str | int], expected: str) -> None:
    chosen = select(_mask(METAX, node), ids)
    assert chosen.value == expected
    assert chosen.source == "CUDA_VISIBLE_DEVICES"
    assert _mask(METAX, chosen.value) == chosen


def test_every_worker_gets_another_card_whatever_the_numbering() -> None:
    for cards in itertools.permutations(range(4, 8), 3):
        mask = _mask(METAX, ",".join(map(str, cards)))
        for ids in (range(3), cards):
            workers = [select(mask, [item]).value for item in ids]
            assert sorted(map(str, workers)) == sorted(map(str, cards))


@pytest.mark.parametrize("numbering", ["relative", "physical"])
def test_auto_is_never_wrong(numbering: str) -> None:
    for size in (1, 2, 3):
        for cards in itertools.permutations(range(4), size):
            mask = _mask(METAX, ",".join(map(str, cards)))
            for item in range(size) if numbering == "relative" else cards:
                said = select(mask, [item], numbering)  # type: ignore[arg-type]
                try:
                    assert select(mask, [item]) == said
                except VisibleDevicesError as error:
                    assert "Say which" in str(error)  # noqa: PT017 - refusing is right, guessing wrong is not


def test_ambiguous_ids_are_refused_until_said() -> None:
    mask = _mask(METAX, "1,2,3")
    with pytest.raises(VisibleDevicesError, match="numbering="):
        select(mask, [1])
    assert select(mask, [1], "physical").value == "1"
    assert select(mask, [1], "relative").value == "2"


@pytest.mark.parametrize(
    ("spec", "node", "ids"),
    [
        (METAX, "4,5,6,7", [0, 0]),
        (METAX, "4,5,6,7", ["4", 4]),
        (METAX, "4,5,6,7", [0, 4]),
        (METAX, "4,5,6,7", [8]),
        (METAX, "4,5,6,7", [-1]),
        (METAX, "", [0]),
        (METAX, None, [1, "01"]),
        (METAX, None, ["x"]),
        (INTEL, None, ["GPU-a"]),
    ],
)
def test_select_refuses(spec: HardwareSpec, node: str | None, ids: list[str | int]) -> None:
    with pytest.raises(VisibleDevicesError, match=spec.visible_devices_envvar):
        select(_mask(spec, node), ids)


def test_select_keeps_the_runtimes_order() -> None:
    assert select(_mask(INTEL, "7,6,5,4"), [3, 0]).value == "4,7"
    assert select(_mask(INTEL, None), [10, 9]).value == "9,10"


def test_select_keeps_the_parts_of_a_device_together() -> None:
    node = _mask(INTEL, "0.0,0.1,1.0,1.1", **COMPOSITE)
    assert select(node, [1]).value == "1.0,1.1"
    assert select(node, ["1.0"]).value == "1.0,1.1"  # as Ray reads the same mask
    with pytest.raises(VisibleDevicesError, match="twice"):
        select(node, ["0.0", "0.1"])


def test_select_writes_the_variable_that_wins() -> None:
    node = read_mask(METAX, {"MACA_VISIBLE_DEVICES": "4,5", "CUDA_VISIBLE_DEVICES": "0"})
    chosen = select(node, [1])
    assert (chosen.source, chosen.value) == ("MACA_VISIBLE_DEVICES", "5")


# Device uuid.


def _uuid(spec: HardwareSpec, value: str | None, ordinal: int, host: str | None = "host", **more: str) -> str:
    own = {} if value is None else {spec.visible_devices_envvar: value}
    return device_uuid(spec, ordinal, {**own, **more}, host)


def test_same_card_same_name_whatever_the_mask() -> None:
    same = {
        _uuid(INTEL, None, 5),
        _uuid(INTEL, "5", 0),
        _uuid(INTEL, "2,5", 1),
        _uuid(INTEL, "2, 5", 1),
        _uuid(INTEL, "5,2", 1),
        _uuid(INTEL, "05", 0),
    }
    assert same == {"INTEL-host-5"}
    assert _uuid(METAX, "5,2", 0) == _uuid(METAX, "0", 1, MACA_VISIBLE_DEVICES="4,5") == _uuid(METAX, None, 5)


def test_different_card_host_or_vendor_different_name() -> None:
    names = [
        _uuid(spec, value, ordinal, host)
        for host in ("a", "b")
        for spec, value, count in (
            (INTEL, None, 3),
            (INTEL, "0.1,1.0", 2),
            (METAX, None, 3),
            (METAX, "GPU-abc,GPU-abd", 2),
            (METAX, "MIG-1/2/3,MIG-1/23,MIG-1_2_3", 3),
        )
        for ordinal in range(count)
    ]
    names += [_uuid(INTEL, "0.0,0.1,1", 0, **COMPOSITE)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("spec", "value", "ordinal"),
    [(INTEL, "2, 5", 1), (INTEL, "0.1,1.0", 0), (METAX, "GPU-abc", 0), (METAX, "MIG-GPU-1/2/3", 0), (ENFLAME, None, 3)],
)
def test_name_can_be_part_of_a_path(spec: HardwareSpec, value: str | None, ordinal: int) -> None:
    for host in (None, "my host:1/2"):
        assert re.fullmatch(r"[A-Za-z0-9._+-]+", _uuid(spec, value, ordinal, host))


def test_ordinal_without_device_has_no_name() -> None:
    with pytest.raises(VisibleDevicesError, match=r"ordinal 1 .*ZE_AFFINITY_MASK='5' makes 1 device visible"):
        _uuid(INTEL, "5", 1)
    with pytest.raises(VisibleDevicesError, match=r"ordinal 0 .* makes 0 devices visible"):
        _uuid(INTEL, "", 0)


def test_host_part_is_stable_and_hides_the_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    name = _uuid(METAX, None, 0, None)
    assert name == _uuid(METAX, None, 0, None)
    monkeypatch.setattr("verl_hw_core.platform.visible_devices.BOOT_ID_FILE", "/no/such/file")
    monkeypatch.setattr("socket.gethostname", lambda: "secret-host")
    monkeypatch.setattr("uuid.getnode", lambda: 42)
    other = _uuid(METAX, None, 0, None)
    assert other != name
    assert "secret" not in other
    monkeypatch.setattr("uuid.getnode", lambda: 43)
    assert _uuid(METAX, None, 0, None) != other
