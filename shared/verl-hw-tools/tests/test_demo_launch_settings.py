# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.demo.devices import base_environment, ignored_choices, require_components
from verl_hw_tools.demo.sft_config import SftSettings, launch_command, overrides
from verl_hw_tools.demo.workspace import Workspace
from verl_hw_tools.errors import MissingComponentError

SETTINGS = SftSettings(steps=10, processes=2, strategy="fsdp2", seed=7)


def options(root: Path, checkpoint: Path | None) -> dict[str, str]:
    workspace = Workspace(root)
    run = workspace.whole if checkpoint is None else workspace.resumed
    return dict(item.split("=", 1) for item in overrides(SETTINGS, workspace, run, checkpoint))


def test_one_epoch_holds_all_steps() -> None:
    assert SETTINGS.pairs - SETTINGS.held_out == SETTINGS.steps * SETTINGS.batch
    assert SETTINGS.resume_from == 5


def test_the_first_run_starts_fresh_and_saves_in_the_middle(tmp_path: Path) -> None:
    first = options(tmp_path, None)
    assert first["trainer.resume_mode"] == "disable"
    assert first["trainer.save_freq"] == "5"
    assert first["model.path"] == "tiny-model"


def test_the_resumed_run_has_other_weights_and_another_folder(tmp_path: Path) -> None:
    checkpoint = Workspace(tmp_path).whole.checkpoints / "global_step_5"
    first, second = options(tmp_path, None), options(tmp_path, checkpoint)
    assert second["trainer.resume_mode"] == "resume_path"
    assert second["trainer.resume_from_path"] == "whole-run/checkpoints/global_step_5"
    changed = {name for name in second if second[name] != first.get(name)}
    assert changed == {
        "model.path",
        "trainer.default_local_dir",
        "trainer.resume_mode",
        "trainer.resume_from_path",
        "hydra.run.dir",
    }


def test_a_folder_with_odd_characters_never_reaches_hydra(tmp_path: Path) -> None:
    odd = tmp_path / "my, folder=(1) ${x}"
    assert not [item for item in options(odd, odd / "whole-run" / "c").values() if "my," in item]


def test_the_command_is_verls_own_trainer_under_torchrun(tmp_path: Path) -> None:
    command = launch_command(SETTINGS, Workspace(tmp_path).whole, ["a=b"])
    assert command[1:3] == ["-m", "torch.distributed.run"]
    assert command[-3:] == ["-m", "verl.trainer.sft_trainer", "a=b"]
    assert "--nproc-per-node=2" in command


def test_children_are_offline_and_free_of_another_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environment = base_environment(
        ["VERL_PLATFORM"],
        {"RANK": "3", "TORCHELASTIC_RUN_ID": "x", "PET_NNODES": "4", "VERL_PLATFORM": "npu", "PYTHONPATH": "lib:/abs"}
        | {"HOME": "/h"},
    )
    assert not {"RANK", "TORCHELASTIC_RUN_ID", "PET_NNODES", "VERL_PLATFORM"} & set(environment)
    assert environment["PYTHONPATH"] == f"{tmp_path / 'lib'}:/abs"
    assert environment["HF_HUB_OFFLINE"] == environment["TRANSFORMERS_OFFLINE"] == "1"
    assert environment["HOME"] == "/h"


def test_choices_of_another_device_are_named_and_what_real_hardware_needs_is_kept() -> None:
    spec = HardwareSpec(
        key="acme",
        display_name="Acme",
        distribution="verl-hw-acme",
        device_name="adev",
        ccl_backend="accl",
        visible_devices_envvar="ACME_DEVICES",
        overriding_visible_envvars=("ACME_CARDS",),
        ray_resources=("ACME",),
    )
    names = ("VERL_PLATFORM", "VERL_HW_SIM", "ACME_DEVICES", "ACME_CARDS", "TORCH_DEVICE_BACKEND_AUTOLOAD", "HOME")
    user = dict.fromkeys(names, "1")
    assert ignored_choices(spec, simulated=True, environment=user) == sorted(set(names) - {"HOME"})
    assert ignored_choices(spec, simulated=False, environment=user) == ["VERL_HW_SIM", "VERL_PLATFORM"]


def test_a_missing_simulator_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import verl_hw_tools.demo.devices as devices

    monkeypatch.setattr(devices, "find_spec", lambda name: None if name == "verl_hw_sim" else object())
    require_components(simulated=False)
    with pytest.raises(MissingComponentError, match="pip install verl-hw-sim"):
        require_components(simulated=True)
