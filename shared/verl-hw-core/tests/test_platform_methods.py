# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""AcceleratorPlatform over device modules that are complete, empty, or raise at every name."""

import logging
from types import ModuleType

import pytest
from acme import DEVICE, spec

from verl_hw_core.errors import CollectiveBackendError, VendorRuntimeError
from verl_hw_core.platform import vendor_module


def complete_module() -> ModuleType:
    module = ModuleType(f"torch.{DEVICE}")
    module.calls = []
    for name, value in {"is_available": True, "device_count": 4, "current_device": 2}.items():
        setattr(module, name, lambda value=value: value)
    module.get_device_capability = lambda index: (5, index)
    for name in ("set_device", "synchronize", "manual_seed", "manual_seed_all", "empty_cache"):
        setattr(module, name, lambda *args, name=name: module.calls.append((name, *args)))
    for part, names in {
        "memory": ["_set_allocator_settings"],
        "ranges": ["range_push", "range_pop"],
        "profiler": ["start", "stop"],
    }.items():
        child = ModuleType(part)
        for name in names:
            setattr(child, name, lambda *args, name=name: module.calls.append((name, *args)))
        setattr(module, part, child)
    return module


class RaisingModule(ModuleType):
    """A vendor module with every name, all of which raise."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def fail(*args):
            raise OSError(f"driver says no to {name}")

        return fail


@pytest.fixture
def platform_over(monkeypatch, verl_without_plugins):
    """Build a platform whose torch.<device> is the given module (None: there is none)."""
    import torch

    from verl_hw_core.platform import AcceleratorPlatform

    monkeypatch.setattr(vendor_module, "_said", set())

    def build(module, **changes):
        if module is not None:
            monkeypatch.setattr(torch, DEVICE, module, raising=False)
        return type("AcmePlatform", (AcceleratorPlatform,), {"spec": spec(**changes)})()

    return build


def test_complete_module_is_used(platform_over):
    module = complete_module()
    platform = platform_over(module)
    assert (platform.device_name, platform.vendor_name, platform.device_module) == (DEVICE, "acme", module)
    assert (platform.is_available(), platform.device_count(), platform.current_device()) == (True, 4, 2)
    assert platform.get_device_capability(3) == (5, 3)
    platform.set_device(1)
    platform.synchronize()
    platform.manual_seed(7)
    platform.manual_seed_all(8)
    platform.empty_cache()
    platform.set_allocator_settings("expandable_segments:True")
    platform.profiler_start()
    platform.profiler_stop()
    with platform.nvtx_range("step"):
        module.calls.append(("inside",))
    assert module.calls == [
        ("set_device", 1),
        ("synchronize", None),
        ("manual_seed", 7),
        ("manual_seed_all", 8),
        ("empty_cache",),
        ("_set_allocator_settings", "expandable_segments:True"),
        ("start",),
        ("stop",),
        ("range_push", "step"),
        ("inside",),
        ("range_pop",),
    ]


@pytest.mark.parametrize(
    "module", [ModuleType("empty"), RaisingModule("raising"), None], ids=["empty", "raises", "none"]
)
def test_documented_fallbacks(platform_over, caplog, module):
    platform = platform_over(module)
    caplog.set_level(logging.DEBUG, logger="verl_hw_core")
    for _ in range(2):
        assert platform.is_available() is False
        assert platform.is_platform_available() is False
        assert (platform.device_count(), platform.current_device()) == (0, 0)
        assert platform.get_device_capability() == (None, None)
        assert platform.is_ipc_supported() is False
        platform.manual_seed(1)
        platform.manual_seed_all(1)
        platform.empty_cache()
        platform.set_allocator_settings("expandable_segments:False")
        platform.profiler_start()
        platform.profiler_stop()
        with platform.nvtx_range("step"):
            pass
    messages = [record.getMessage() for record in caplog.records if record.name == "verl_hw_core"]
    assert len(messages) == len(set(messages)), "said more than once"
    assert any("manual_seed" in record.getMessage() for record in caplog.records if record.levelname == "WARNING")


@pytest.mark.parametrize("answer", [None, float("nan"), "two", []])
def test_an_odd_answer_is_a_fallback_and_not_a_crash(platform_over, answer):
    module = complete_module()
    module.device_count = module.current_device = lambda: answer
    platform = platform_over(module)
    assert (platform.device_count(), platform.current_device()) == (0, 0)


def test_an_availability_that_cannot_be_read_is_no(platform_over):
    import numpy

    module = complete_module()
    module.is_available = lambda: numpy.array([True, False])
    assert platform_over(module).is_available() is False


@pytest.mark.parametrize("slot", [False, 0.0, "0", None])
def test_an_ipc_handle_of_another_layout_is_refused(platform_over, monkeypatch, slot):
    import torch
    from torch.multiprocessing import reductions

    from verl_hw_core.platform import vendor_module

    module = complete_module()
    module.current_device, module.ipc_collect = (lambda: 0), (lambda: None)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: None)
    monkeypatch.setattr(reductions, "reduce_tensor", lambda tensor: (None, (1, 2, 3, 4, 5, 6, slot, 8)))
    vendor_module.ipc_fits_verl.cache_clear()
    assert platform_over(module).is_ipc_supported() is False
    monkeypatch.setattr(reductions, "reduce_tensor", lambda tensor: (None, (1, 2, 3, 4, 5, 6, 0, 8)))
    vendor_module.ipc_fits_verl.cache_clear()
    assert platform_over(module).is_ipc_supported() is True
    vendor_module.ipc_fits_verl.cache_clear()


def test_a_device_that_cannot_be_selected_is_an_error(platform_over):
    with pytest.raises(VendorRuntimeError, match=r"set_device\(3\).*driver says no.*ACME_VISIBLE_DEVICES"):
        platform_over(RaisingModule("raising")).set_device(3)


def test_missing_set_device_is_harmless_for_device_zero_only(platform_over):
    platform = platform_over(ModuleType("empty"))
    platform.set_device(0)
    with pytest.raises(VendorRuntimeError, match="no set_device"):
        platform.set_device(1)


def test_failed_synchronize_is_an_error(platform_over):
    with pytest.raises(VendorRuntimeError, match="synchronize"):
        platform_over(RaisingModule("raising")).synchronize()


def test_missing_torch_namespace_names_the_remedy(platform_over):
    with pytest.raises(VendorRuntimeError, match=r"torch\.acmedev.*Install the vendor's torch stack"):
        _ = platform_over(None).device_module


def test_broken_extension_is_one_error(platform_over, tmp_path, monkeypatch):
    (tmp_path / "torch_acme.py").write_text("raise OSError('libacme.so: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    platform = platform_over(None, extension_module="torch_acme")
    with pytest.raises(VendorRuntimeError, match=r"torch_acme.*OSError: libacme\.so"):
        _ = platform.device_module
    assert platform.is_available() is False


def test_exception_inside_a_marked_range_passes_through(platform_over):
    module = complete_module()
    with pytest.raises(ZeroDivisionError), platform_over(module).nvtx_range("step"):
        _ = 1 / 0
    assert module.calls[-1] == ("range_pop",)


@pytest.mark.parametrize("answer", [{"major": 5}, (5,), None, "5.0"])
def test_capability_is_always_two_values(platform_over, answer):
    module = complete_module()
    module.get_device_capability = lambda index: answer
    assert platform_over(module).get_device_capability() == (None, None)
    assert platform_over(module, capability="none").get_device_capability() == (None, None)


@pytest.mark.parametrize("value", ["1", "true", "YES", " on "])
def test_flagcx_on(platform_over, monkeypatch, tmp_path, value):
    (tmp_path / "flagcx.py").write_text("raise AssertionError('looked up, never imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("USE_FLAGCX", value)
    assert platform_over(None, flagcx=True).communication_backend_name() == "flagcx"


@pytest.mark.parametrize("value", ["", "0", "False", "no", "OFF"])
def test_flagcx_off(platform_over, monkeypatch, value):
    monkeypatch.setenv("USE_FLAGCX", value)
    assert platform_over(None, flagcx=True).communication_backend_name() == "accl"


def test_flagcx_odd_word_is_no_and_is_said(platform_over, monkeypatch, caplog):
    monkeypatch.setenv("USE_FLAGCX", "maybe")
    assert platform_over(None, flagcx=True).communication_backend_name() == "accl"
    assert "USE_FLAGCX='maybe'" in caplog.text


def test_flagcx_where_there_is_none_fails_at_once(platform_over, monkeypatch):
    monkeypatch.setenv("USE_FLAGCX", "1")
    with pytest.raises(CollectiveBackendError, match="no adaptor for Acme NPU"):
        platform_over(None, flagcx=False).communication_backend_name()
    with pytest.raises(CollectiveBackendError, match="no module 'flagcx'"):
        platform_over(None, flagcx=True).communication_backend_name()


def test_exported_rollout_variable_wins(platform_over, monkeypatch):
    monkeypatch.setenv("ACME_FAST", "0")
    assert platform_over(None).rollout_env_vars() == {"ACME_FAST": "0", "ACME_SAFE": "0"}


def test_hooks_of_a_later_verl_arrive_by_inheritance(platform_over, monkeypatch):
    from verl.plugin.platform.platform_base import PlatformBase

    monkeypatch.setattr(PlatformBase, "hook_of_tomorrow", lambda self, tool: f"default for {tool}", raising=False)
    assert platform_over(None).hook_of_tomorrow("x") == "default for x"


def test_constructing_touches_nothing(platform_over, monkeypatch):
    class Untouchable(ModuleType):
        def __getattr__(self, name):
            raise AssertionError(f"touched {name}")

    assert platform_over(Untouchable("untouchable")).visible_devices_envvar() == "ACME_VISIBLE_DEVICES"
