# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Our wheels beside other packages that plug into verl: broken ones, foreign ones, in both load orders."""

from pathlib import Path

import pytest
from wheelkit import VENDORS, our_engines, tiny_package

ORDERS = [pytest.param("first", marks=pytest.mark.slow), "last"]

SPEC = """
from verl_hw_core import HardwareSpec
SPEC = HardwareSpec(
    key={key!r}, display_name={key!r}, distribution="verl-hw-{key}", device_name={key!r}, ccl_backend="gloo",
    visible_devices_envvar="{upper}_VISIBLE_DEVICES", ray_resources=("GPU",),
)
"""

# A wheel of our family whose platform module does not import: a library of the vendor's driver is missing.
BROKEN_PLATFORM = (
    SPEC.format(key="acme", upper="ACME")
    + """
import sys, types
from importlib.machinery import ModuleSpec
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "acme_platform":
            raise ImportError("libacme.so.1: cannot open shared object file")
sys.meta_path.insert(0, Finder())
from verl_hw_core import register
register(SPEC, platform="acme_platform:AcmePlatform", engines="acme_engines", contract=1)
"""
)

# A wheel of our family whose platform is fine and whose engines are not.
BROKEN_ENGINES = (
    SPEC.format(key="bolt", upper="BOLT")
    + """
from verl_hw_core import register
from verl_hw_core.platform import AcceleratorPlatform
class BoltPlatform(AcceleratorPlatform):
    spec = SPEC
register(SPEC, platform="verl_hw_bolt:BoltPlatform", engines="no_such_bolt_engines", contract=1)
"""
)

# Not ours at all, and raising: verl hides it at DEBUG.
RAISING = "raise RuntimeError('a stranger fails to load')\n"

# Says which platform was fixed when its turn came, and that its own is always available (field report 16).
ALWAYS_THERE = """
from verl.plugin.platform import platform_manager as manager
frozen_when_loaded = manager._current_platform is not None
from verl.plugin.platform.platform_cuda import PlatformCUDA
@manager.PlatformRegistry.register(platform={key!r})
class Always(PlatformCUDA):
    device_name = vendor_name = {key!r}
    def is_platform_available(self, use_smi_check=False):
        return True
"""

# As the public multi-vendor plugin does it: our key, and engines imported while the entry point loads.
FOREIGN = """
from verl.plugin.platform.platform_cuda import PlatformCUDA
from verl.plugin.platform.platform_manager import PlatformRegistry
@PlatformRegistry.register(platform="cambricon")
class PlatformMLU(PlatformCUDA):
    device_name = "mlu"
    vendor_name = "cambricon"
    def is_platform_available(self, use_smi_check=False):
        return False
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
try:
    @EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="mlu", vendor="cambricon")
    class ForeignEngine(FSDPEngineWithLMHead):
        pass
except AssertionError as error:
    refused = str(error)
"""

LOOK = """
import verl
at_import = dict(frozen=frozen(), workers=workers(), platforms=platforms())
import verl.workers.engine
answer(**at_import, engines=engines(), problems=problems(){more})
"""


def plugin(folder: Path, module: str, name: str, code: str) -> None:
    tiny_package(folder, module, code, entry_points={name: module})


def assert_ours_are_all_there(found) -> None:
    for vendor in VENDORS:
        assert found["platforms"][vendor] == f"verl_hw_{vendor}.platform"
    ours = {tuple(one) for one in found["engines"] if one[4].startswith("verl_hw_")}
    assert ours == our_engines(*VENDORS)


@pytest.mark.parametrize("order", ORDERS)
def test_broken_wheels_disturb_no_other_and_are_said_once(order, tmp_path, forks):
    plugin(tmp_path, "verl_hw_acme", "acme", BROKEN_PLATFORM)
    plugin(tmp_path, "verl_hw_bolt", "bolt", BROKEN_ENGINES)
    plugin(tmp_path, "stranger", "stranger", RAISING)
    found = forks.run(LOOK.format(more=""), **{order: [tmp_path]})
    assert_ours_are_all_there(found)
    assert not found["frozen"]
    assert found["workers"] == []
    assert "acme" not in found["platforms"]
    assert "bolt" in found["platforms"]
    about = {wheel: (message, trace) for wheel, _, message, trace in found["problems"]}
    assert set(about) == {"verl-hw-acme", "verl-hw-bolt"}
    assert "libacme.so.1: cannot open shared object file" in about["verl-hw-acme"][0]
    assert "no_such_bolt_engines" in about["verl-hw-bolt"][0]
    assert all(trace.startswith("Traceback") for _, trace in about.values())
    assert len(found.warnings) == len(found["problems"]) == 2, found.stderr


@pytest.mark.parametrize("order", ORDERS)
def test_plugins_beside_ours_are_asked_since_nothing_fixed_the_platform(order, tmp_path, forks):
    for key in ("alpha", "beta"):
        plugin(tmp_path, f"always_{key}", key, ALWAYS_THERE.format(key=key))
    more = ', late=[sys.modules[f"always_{key}"].frozen_when_loaded for key in ("alpha", "beta")]'
    more += ', chosen=__import__("verl.plugin.platform").plugin.platform.get_platform().vendor_name'
    found = forks.run(LOOK.format(more=more), **{order: [tmp_path]})
    assert found["late"] == [False, False]
    assert found["chosen"] in ("alpha", "beta")
    assert_ours_are_all_there(found)
    assert found["problems"] == []


@pytest.mark.parametrize("order", ORDERS)
def test_a_foreign_plugin_under_our_key_leaves_platform_and_engines_of_one_package(order, tmp_path, forks):
    plugin(tmp_path, "foreign_hardware", "hardware", FOREIGN)
    found = forks.run(LOOK.format(more=""), **{order: [tmp_path]})
    assert_ours_are_all_there(found)
    mlu = {module for vendor, device, *_, module in found["engines"] if (vendor, device) == ("cambricon", "mlu")}
    assert mlu == {"verl_hw_cambricon.engines"}
    said = [message for wheel, _, message, _ in found["problems"] if wheel == "verl-hw-cambricon"]
    assert any("foreign_hardware.PlatformMLU" in message and "one package" in message for message in said), said
    assert len(found.warnings) == len(found["problems"])
    # It fixes verl's platform by importing the engines; where it came first, every wheel that was not asked says so.
    assert found["frozen"]
    late = [message for _, _, message, _ in found["problems"] if "already fixed to 'nvidia'" in message]
    assert len(late) == (len(VENDORS) if order == "first" else 0)
    assert all("VERL_USE_EXTERNAL_PLUGINS=" in message for message in late)
