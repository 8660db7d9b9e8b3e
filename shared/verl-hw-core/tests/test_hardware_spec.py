# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""HardwareSpec refuses what cannot be right, and is plain data that travels to Ray workers."""

import dataclasses
import pickle

import pytest

from verl_hw_core import HardwareSpec, Traces
from verl_hw_core.errors import InvalidSpecError

GOOD = {
    "key": "acme",
    "display_name": "Acme NPU",
    "distribution": "verl-hw-acme",
    "device_name": "acme",
    "ccl_backend": "accl",
    "visible_devices_envvar": "ACME_VISIBLE_DEVICES",
    "ray_resources": ("GPU",),
}


def test_good_spec_travels():
    spec = HardwareSpec(**GOOD, aliases=("apu",), traces=Traces(pci_vendor="0x1234"))
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301 - what Ray does with it
    assert hash(spec) == hash(HardwareSpec(**GOOD, aliases=("apu",), traces=Traces(pci_vendor="0x1234")))
    assert spec.names == ("acme", "apu")
    assert spec.vendor_name == "acme"


def test_spec_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        HardwareSpec(**GOOD).key = "other"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"key": ""}, "key"),
        ({"key": "Acme"}, "key"),
        ({"device_name": "acme:0"}, "device_name"),
        ({"ccl_backend": None}, "ccl_backend"),
        ({"aliases": ("APU",)}, "aliases"),
        ({"aliases": ("acme",)}, "aliases"),
        ({"visible_devices_envvar": "acme visible"}, "environment variable"),
        ({"overriding_visible_envvars": ("",)}, "environment variable"),
        ({"ray_noset_envvars": ("lower",)}, "environment variable"),
        ({"rollout_env": (("bad name", "1"),)}, "environment variable"),
        ({"traces": Traces(pci_vendor="1234")}, "pci_vendor"),
    ],
)
def test_bad_value_is_named(change, named):
    with pytest.raises(InvalidSpecError, match=named):
        HardwareSpec(**{**GOOD, **change})


def test_unknown_fact_is_refused():
    with pytest.raises(TypeError, match="colour"):
        HardwareSpec(**GOOD, colour="red")
