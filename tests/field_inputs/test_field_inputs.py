# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Small inputs that show one fault each: what is right is asserted, and expected to fail where it is not fixed yet.

A test raises :class:`FaultPresent` only when it sees the very fault that it was written for; anything else, a program
that does not run included, is an ordinary failure. Once the fault is fixed the test passes, and ``strict`` asks for its
mark to go. The number in a reason is the part of the plan that fixes it. Two that are fixed already are in
``tests/conformance/test_gradient_settings.py``.
"""

import importlib.util
import shutil
from pathlib import Path

import pytest
from forkkit import Forks
from raykit import answer_of
from tiny_models import write_language_model
from wheelkit import Answer

from verl_hw_sim import simulated_environment

PROGRAMS = Path(__file__).parent / "programs"
TESTS = Path(__file__).parents[1]
MASTER = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}


class FaultPresent(Exception):
    """The fault is there, in the form in which it was reported."""


def known(part: str, fault: str) -> pytest.MarkDecorator:
    """The mark of an input whose fault is still there."""
    return pytest.mark.xfail(strict=True, raises=FaultPresent, reason=f"[{part}] {fault}")


def raise_if(fault: bool, seen: object) -> None:
    if fault:
        raise FaultPresent(seen)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_language_model(folder / "language_model")
    return folder


@pytest.fixture
def run(forks: Forks):
    """Return a function that runs a program in a fork and returns its answer."""

    def run_program(name: str, *arguments: object, env: dict[str, str], first: tuple[Path, ...] = ()) -> Answer:
        program = PROGRAMS / f"{name}.py"
        script = f"sys.argv = {[name, *map(str, arguments)]!r}\n" + program.read_text(encoding="utf-8")
        return forks.run(script, first=first, last=(PROGRAMS, TESTS / "conformance", TESTS / "support"), env=env)

    return run_program


def tools(folder: Path, *names: str) -> str:
    """A PATH with management tools that find a device, and nothing else of a vendor's."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def machine(folder: Path, *tool_names: str, devices: tuple[str, ...] = ()) -> dict[str, str]:
    """The variables with which a process sees this machine: its device nodes and management tools."""
    (folder / "root" / "dev").mkdir(parents=True)
    for device in devices:
        (folder / "root" / "dev" / device).touch()
    path = tools(folder / "tools", *tool_names)
    return {"VERL_HW_PROBE_ROOT": str(folder / "root"), "VERL_HW_PROBE_CACHE": "0", "PATH": path}


class TestNumbers:
    @pytest.mark.parametrize("vendor", ["cambricon", "enflame", "intel"])
    def test_a_mixture_of_experts_computes_what_the_cpu_does(self, run, tmp_path, vendor):
        found = run("moe_forward", tmp_path, env=simulated_environment(vendor, 1))
        assert found["error"] == ""
        assert found["off by"] < 1e-5

    def test_the_documented_implementation_of_experts_can_be_chosen(self, run, tmp_path):
        found = run("moe_forward", tmp_path, "eager", env=simulated_environment("cambricon", 1))
        assert found["error"] == ""
        assert found["off by"] < 1e-5

    def test_an_average_is_one_when_the_device_has_been_waited_for(self, run, tmp_path):
        environment = simulated_environment("cambricon", 2, limits="avg_rejected")
        found = run("average_not_waited_for", tmp_path, env=environment)["ranks"]
        assert found == [[1.5, 1.5]] * 2

    def test_a_copy_to_pageable_memory_is_waited_for_before_it_is_read(self, run):
        found = run("offload_copy", env=simulated_environment("cambricon", 1))["events"]
        assert found[-1] == "to device"
        assert "to host" in found or "wait" in found

    def test_gradients_that_are_all_zero_stop_the_run(self, run, models, tmp_path):
        found = run("gradients_all_zero", models, tmp_path, env=simulated_environment("cambricon", 1))
        assert found["norms"] == []
        assert found["error"].startswith("GradientError: All gradients are zero")
        assert "lm_head" in found["error"]

    @known("5/9", "verl's table of peak FLOPS knows no chip of ours")
    @pytest.mark.parametrize("vendor", ["cambricon", "enflame", "intel"])
    def test_the_share_of_peak_flops_is_known_or_its_absence_said(self, run, vendor):
        found = run("mfu", env=simulated_environment(vendor, 1))
        raise_if((found["mfu"], found["said"]) == (0.0, []), "0.0 without a word")
        assert 0 < found["mfu"] < 10 or found["said"]


class TestWeights:
    def test_experts_are_synced_into_the_bringup_rollout(self, run):
        found = run("moe_sync", env=simulated_environment("cambricon", 1))
        assert found["error"] == ""
        assert found["synced"] == 25
        assert found["equal"]

    @known("4/9", "the file names the chip's torch device, which another torch does not know")
    def test_a_checkpoint_is_merged_where_the_chip_is_not(self, run, models, tmp_path):
        device = simulated_environment("cambricon", 1)
        run("checkpoint_write", models, tmp_path / "checkpoint", env=device)
        control = run("checkpoint_read", tmp_path / "checkpoint", tmp_path / "there", env=device)
        assert (control["merged"], control["error"]) == (["model.safetensors"], "")
        found = run("checkpoint_read", tmp_path / "checkpoint", tmp_path / "elsewhere", env={"VERL_HW_SIM": ""})
        raise_if(found["error"].endswith("device string: mlu"), found["error"])
        assert (found["merged"], found["error"]) == (["model.safetensors"], "")

    @pytest.mark.slow
    @pytest.mark.timeout(900)
    def test_two_drivers_on_a_host_have_sockets_of_their_own(self):
        device = simulated_environment("cambricon", 1)
        environment = {**device, "RANK": "0", "RAY_LOCAL_WORLD_SIZE": "1"}
        found = [answer_of(PROGRAMS / "weight_socket.py", **environment) for _ in range(2)]
        assert found[0]["job"] == found[1]["job"]
        assert found[0]["sender"] != found[1]["sender"]
        for answer in found:
            assert answer["receiver"] == answer["sender"]
            assert len(answer["sender"]) < 100  # of the 107 that a socket's path may have


class TestChoice:
    @known("4/9", "the survey knows NVIDIA as the absence of all others")
    def test_a_gpu_of_nvidias_is_not_taken_for_the_chip_whose_tool_lies_about(self, run, tmp_path):
        here = machine(tmp_path, "nvidia-smi", "mx-smi", devices=("nvidia0", "nvidiactl"))
        found = run("chosen_platform", "--nvidia", env=here)
        raise_if((found["vendor"], found["said"]) == ("metax", []), "metax without a word")
        assert found["error"] == ""
        assert found["vendor"] == "nvidia"

    @known("4/9", "an installed package weighs as much as a runtime that is in force")
    def test_the_extension_that_has_claimed_privateuse1_is_the_one(self, run, tmp_path):
        for device in ("mlu", "gcu"):
            (tmp_path / f"torch_{device}").mkdir()
            (tmp_path / f"torch_{device}" / "__init__.py").write_text(EXTENSION.format(device=device))
        found = run("chosen_platform", "torch_mlu", env=machine(tmp_path / "machine"), first=(tmp_path,))
        raise_if(found["vendor"] == "enflame" and "torch_gcu" in found["error"], found["error"])
        assert found["error"] == ""
        assert (found["vendor"], found["usable"]) == ("cambricon", True)

    @known("4/9", "a wheel that cannot load is a warning, and its hardware becomes NVIDIA's")
    def test_a_present_chip_whose_wheel_has_no_platform_stops(self, run, tmp_path):
        broken_wheel(tmp_path, "platform.py")
        found = run("chosen_platform", env=machine(tmp_path / "machine", "mx-smi"), first=(tmp_path,))
        raise_if((found["vendor"], found["error"]) == ("nvidia", ""), "goes on as NVIDIA's")
        assert "verl_hw_metax" in found["error"]

    @known("4/9", "a wheel whose engines cannot load is a warning, and verl's plain engine takes their place")
    def test_a_present_chip_whose_wheel_has_no_engines_stops(self, run, tmp_path):
        broken_wheel(tmp_path, "engines.py")
        found = run("chosen_platform", "--engine", env=machine(tmp_path / "machine", "mx-smi"), first=(tmp_path,))
        plain = "verl.workers.engine.fsdp.transformer_impl"
        raise_if((found["vendor"], found["engine"]) == ("metax", plain), "verl's plain engine")
        assert "verl_hw_metax" in found["error"]

    @known("4/9", "outside Ray nobody looks at the second selector")
    def test_two_masks_are_understood_or_named(self, run):
        masks = {"ZE_AFFINITY_MASK": "1", "ONEAPI_DEVICE_SELECTOR": "level_zero:1"}
        found = run("two_masks", env={**simulated_environment("intel", 2), **masks, **MASTER})
        text = "\n".join(found["said"])
        raise_if("invalid device ordinal 0" in text and not any(name in text for name in masks), text)
        assert found["started"] or all(name in text for name in masks)

    @known("4/9", "only whether there is a module of the name is looked at")
    def test_a_broken_flagcx_is_not_promised(self, run, tmp_path):
        (tmp_path / "flagcx").mkdir()
        (tmp_path / "flagcx" / "__init__.py").write_text("raise OSError('libflagcx.so: cannot open shared object')\n")
        environment = {**simulated_environment("cambricon", 1), "USE_FLAGCX": "1"}
        found = run("collective_backend", env=environment, first=(tmp_path,))
        raise_if((found["backend"], found["error"]) == ("flagcx", ""), "flagcx is promised")
        assert found["error"].startswith("CollectiveBackendError")
        assert "libflagcx.so" in found["error"]

    def test_verls_megatron_engine_can_be_imported(self, run):
        found = run("megatron_engine_import", env=simulated_environment("cambricon", 1))
        assert (found["name"], found["error"]) == ("MegatronEngineWithLMHead", "")
        assert found["base of ours"]


@pytest.mark.slow
@pytest.mark.timeout(900)
class TestDriver:
    @pytest.fixture(scope="class")
    def driver(self) -> dict:
        return answer_of(PROGRAMS / "one_ray.py", **simulated_environment("cambricon", 3))

    def test_tensors_of_several_workers_can_be_combined(self, driver):
        assert driver["devices"] == ["mlu:0"] * 2
        assert driver["sum"] == 4.0
        assert driver["error"] == ""

    @known("4/9", "FlagCX is looked for in each worker when it opens its process group")
    def test_a_missing_flagcx_ends_the_driver_before_workers_are_built(self, driver):
        raise_if(driver["flagcx"] == "", "a worker group was built")
        assert driver["flagcx"].startswith("CollectiveBackendError")


EXTENSION = """
import types

import torch

torch.utils.rename_privateuse1_backend("{device}")
module = types.ModuleType("{device}")
module.is_available = lambda: True
module.device_count = lambda: 1
torch._register_device_module("{device}", module)
"""


def broken_wheel(folder: Path, missing: str) -> None:
    """A copy of a vendor's wheel without one of its modules, as a half-done install leaves it."""
    installed = importlib.util.find_spec("verl_hw_metax")
    assert installed is not None
    assert installed.origin is not None
    shutil.copytree(Path(installed.origin).parent, folder / "verl_hw_metax")
    (folder / "verl_hw_metax" / missing).unlink()
