# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Hooks that verl's main has and 0.9.1 does not call: what a platform answers (tests/verl_compat/test_later_hooks.py
lets a stand-in of that verl call them)."""

import importlib
from types import ModuleType, SimpleNamespace

import pytest
import ray
from acme import DEVICE, spec
from detectionkit import CAMBRICON, ENFLAME, INTEL, METAX

from verl_hw_core.errors import DeviceAssignmentError, VisibleDevicesError
from verl_hw_core.ray_support import worker_device
from verl_hw_core.ray_support.holding import Holding

CUDA, MLU = "CUDA_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES"


@pytest.fixture
def platform(monkeypatch, verl_without_plugins):
    """Build a platform over ``count`` devices; ``calls`` is what its device module was asked for."""
    import torch

    from verl_hw_core.platform import AcceleratorPlatform

    def build(facts=None, count=4, environ=()):
        for name in (CUDA, MLU, "CN_VISIBLE_DEVICES", "MACA_VISIBLE_DEVICES", "TOPS_VISIBLE_DEVICES"):
            monkeypatch.delenv(name, raising=False)
        for name, value in dict(environ).items():
            monkeypatch.setenv(name, value)
        facts = facts or spec()
        module = ModuleType(f"torch.{facts.device_name}")
        calls = []
        for part, names in {"ranges": ["range_push", "range_pop"], "profiler": ["start", "stop"]}.items():
            child = ModuleType(part)
            for name in names:
                setattr(child, name, lambda *args, name=name: calls.append((name, *args)))
            setattr(module, part, child)
        module.device_count = lambda: count
        if facts.device_name == DEVICE:
            monkeypatch.setattr(torch, DEVICE, module, raising=False)
        made = type("AcmePlatform", (AcceleratorPlatform,), {"spec": facts, "device_count": lambda self: count})()
        made.calls = calls
        return made

    return build


def test_markers_open_and_close_the_vendors_ranges(platform):
    acme = platform()
    start, end, annotate, timer = acme.profiler_markers()
    end(start("outer", color="red", domain="d", category="c"))

    @annotate(message="step", color="blue")
    def add(one, two):
        return one + two

    @annotate()
    def fail():
        raise ZeroDivisionError

    timing = {}
    assert add(1, two=2) == 3
    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(ZeroDivisionError), timer("gen", timing, color="red"):
        fail()
    with timer("ref", timing):
        pass
    assert timing["ref"] >= 0
    pushed = [call[1] for call in acme.calls if call[0] == "range_push"]
    assert pushed == ["outer", "step", "fail", "gen", "fail", "ref"]
    assert [call[0] for call in acme.calls].count("range_pop") == len(pushed)


def test_a_range_that_the_vendor_cannot_open_is_not_closed(platform):
    acme = platform(spec(range_module=f"{DEVICE}.no_such_module"))
    start, end, _, timer = acme.profiler_markers()
    end(start("outer"))
    with timer("gen", {}):
        pass
    assert acme.calls == []
    assert platform(spec(range_module=None)).profiler_markers() is None


def test_the_profiler_of_the_platforms_name_opens_its_capture_range(platform, monkeypatch):
    from verl.utils.profiler.config import ProfilerConfig
    from verl.utils.profiler.profile import DistProfiler

    from verl_hw_core.platform import profiling

    acme = platform(spec(aliases=("acc",)))
    monkeypatch.setattr(profiling, "get_platform", lambda: acme)
    assert acme.dist_profiler_cls("acc") is acme.dist_profiler_cls("acme") is not None
    assert acme.dist_profiler_cls("nsys") is acme.dist_profiler_cls("torch") is None
    assert platform(spec(range_module=None, profiler_module=None)).dist_profiler_cls("acme") is None

    class Worker:
        def __init__(self, discrete):
            config = ProfilerConfig(tool="acme", enable=True, all_ranks=True, save_path="", tool_config=None)
            self.profiler = DistProfiler(rank=0, config=config)
            assert type(self.profiler._impl).__name__ == "_NoOpProfiler"  # what 0.9.1 makes of such a tool
            tool_config = SimpleNamespace(discrete=discrete) if discrete is not None else None
            made = acme.dist_profiler_cls(config.tool)(rank=0, config=config, tool_config=tool_config, role="actor")
            self.profiler._impl = made

        @DistProfiler.annotate(role="actor_update")
        def update(self, value):
            return value + 1

        @DistProfiler.annotate(role="rollout")
        async def generate(self):
            return "text"

    for discrete, expected in {
        None: ["start", "range_push", "range_pop", "stop"],
        True: ["start", "range_push", "range_pop", "stop"],
    }.items():
        acme = platform()
        worker = Worker(discrete)
        assert worker.update(1) == 2
        assert acme.calls == []  # outside of a profiled step
        worker.profiler.start()
        assert [call[0] for call in acme.calls] == (["start"] if discrete is None else [])
        assert worker.update(2) == 3
        worker.generate().close()
        worker.profiler.step()
        worker.profiler.stop()
        assert [call[0] for call in acme.calls] == expected
        assert ("range_push", "actor_update") in acme.calls


def test_the_attention_helpers_are_a_module_with_verls_four_names(platform):
    module = importlib.import_module(platform().attention_utils_module())
    assert all(
        callable(getattr(module, name)) for name in ("index_first_axis", "pad_input", "rearrange", "unpad_input")
    )


def test_worker_groups_share_a_device(platform):
    assert platform().supports_colocated_worker_groups() is True


@pytest.mark.parametrize(
    ("facts", "environ", "count", "ordinals"),
    [
        (CAMBRICON, {}, 4, {"0": 0, "3": 3}),
        (CAMBRICON, {CUDA: "3"}, 4, {"3": 3}),  # Ray wrote a variable that the chip does not obey
        (CAMBRICON, {MLU: "4,5,6,7"}, 4, {"4": 0, "5": 1, "7": 3}),
        (CAMBRICON, {MLU: "2"}, 1, {"2": 0}),
        (ENFLAME, {"TOPS_VISIBLE_DEVICES": "6,2"}, 2, {"6": 0, "2": 1}),
        (METAX, {CUDA: "5,1"}, 2, {"5": 0, "1": 1}),
    ],
)
def test_an_id_is_the_devices_place_in_the_mask(platform, facts, environ, count, ordinals):
    chosen = platform(facts, count, environ)
    assert {one: chosen.ray_device_index([one]) for one in ordinals} == ordinals


@pytest.mark.parametrize(
    ("environ", "count", "wanted", "error", "said"),
    [
        ({MLU: "4,5"}, 2, "0", VisibleDevicesError, ("'0'", f"{MLU}='4,5'")),  # verl's own answers 0
        ({MLU: "1,2"}, 2, "3", VisibleDevicesError, ("'3'", f"{MLU}='1,2'")),
        ({MLU: "1"}, 1, "MLU-dead-beef", VisibleDevicesError, ("'MLU-dead-beef'", f"{MLU}='1'")),
        ({MLU: ""}, 0, "0", VisibleDevicesError, ("'0'", f"{MLU}=''")),
        ({MLU: "0,1,2"}, 2, "0", VisibleDevicesError, ("3 devices", "shows 2")),
        ({CUDA: "3"}, 2, "3", DeviceAssignmentError, ("'3'", "2 devices", f"{MLU} is not set")),
    ],
)
def test_an_id_that_is_not_visible_is_an_error_with_id_and_mask(platform, environ, count, wanted, error, said):
    with pytest.raises(error) as raised:
        platform(CAMBRICON, count, environ).ray_device_index([wanted])
    assert all(part in str(raised.value) for part in said)


@pytest.mark.parametrize("slot", [0, 1, 2])
def test_in_a_worker_of_ray_it_is_what_the_worker_selects(platform, monkeypatch, slot):
    # Ray counts GPUs of its own from 0, whatever the chip's mask; its ids are no cards here.
    chosen = platform(CAMBRICON, 3, {MLU: "2,0,5", CUDA: str(slot)})
    holding = Holding("GPU", 1.0, (slot,), (str(slot),), CUDA)
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(worker_device.holdings, "of_this_actor", lambda names: holding)
    card = ("2", "0", "5")[slot]
    assert worker_device.find(chosen).cards == (card,)
    assert chosen.ray_device_index([str(slot)]) == chosen.ray_device_index([card]) == slot
    with pytest.raises(VisibleDevicesError, match="'7' is not visible"):  # another actor's
        chosen.ray_device_index(["7"])


def test_facts_of_these_vendors_are_the_ones_above():
    assert {one.device_name for one in (CAMBRICON, ENFLAME, METAX, INTEL)} == {"mlu", "gcu", "cuda", "xpu"}
