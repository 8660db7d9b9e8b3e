# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's Megatron engine trains models that packages registered as transformers does, and their checkpoints merge.

The models (registered_models.py): the guide's example, one with experts, one with latent attention, the example with
an MTP block. On simulated devices, without TransformerEngine; the reference is transformers on the CPU.
"""

import json
import socket
from functools import partial
from pathlib import Path

import pytest
import torch
from modelkit import run_with_models
from new_model_cases import CASES, SHARDED
from safetensors.torch import load_file

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
DEADLINE_S = 900
SHARP = 1e-5
ROUTERS = {"experts", "latent-attention", "mbridge-frozen-router"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(DEADLINE_S)]


python = partial(run_with_models, seconds=DEADLINE_S)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    python(HERE / "new_model_program.py", "models", folder, log=folder / "log.txt")
    return folder


@pytest.fixture(scope="module")
def trained(models, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    device = simulated_environment("cambricon", 2)
    python(HERE / "new_model_program.py", "train", models, out, log=out / "log.txt", **device)
    return out


def ranks(trained: Path, case: str) -> list[dict]:
    return [json.loads((trained / f"result-{case}-{rank}.json").read_text()) for rank in (0, 1)]


def unchanged(rank: dict) -> set[str]:
    return {name for name, value in rank["initial"].items() if rank["last"][name] == value}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_trains_as_transformers_does(case, models, trained):
    """With routers frozen: tensor parallel 2 with sequence parallel, pipeline 2, expert parallel 2."""
    expected = json.loads((models / "reference.json").read_text())[case.model]
    reporting = [rank for rank in ranks(trained, case.name) if rank["steps"][0] is not None]
    assert reporting
    for rank in reporting:
        for step, reference in zip(rank["steps"], expected, strict=True):
            assert step == pytest.approx(reference, rel=SHARP)
        frozen = {name for name in rank["initial"] if ".mlp.gate." in name}
        assert unchanged(rank) == frozen
        assert bool(frozen) == (case.name in ROUTERS)


@pytest.mark.parametrize("case", [*CASES, "mtp"], ids=lambda case: getattr(case, "name", case))
def test_weight_sync_gets_the_checkpoint(case, models, trained):
    name, model = (case, case) if isinstance(case, str) else (case.name, case.model)
    stored = {
        key: [list(tensor.shape), tensor.double().sum().item(), tensor.double().square().sum().item()]
        for key, tensor in load_file(models / model / "model.safetensors").items()
    }
    for rank in ranks(trained, name):
        assert rank["initial"].keys() == stored.keys()
        for key, (shape, *sums) in stored.items():
            assert rank["initial"][key][0] == shape, key
            assert rank["initial"][key][1:] == pytest.approx(sums, rel=1e-9), key


def test_an_mtp_block_is_kept_and_not_trained(models, trained):
    """verl's ``mtp.enable`` without ``enable_train``."""
    expected = json.loads((models / "reference.json").read_text())["mtp"]
    for rank in ranks(trained, "mtp"):
        for step, reference in zip(rank["steps"], expected, strict=True) if rank["steps"][0] else ():
            assert step == pytest.approx(reference, rel=SHARP)
        block = {name for name in rank["initial"] if name.startswith("model.layers.2.")}
        assert len(block) == 17
        assert unchanged(rank) == block


def test_an_mtp_block_is_trained(models, trained):
    """With ``enable_train`` its loss is what transformers' modules give, falls on one batch, and every tensor moves."""
    expected = json.loads((models / "reference.json").read_text())["mtp loss"]
    for rank in ranks(trained, "trained-mtp"):
        assert not unchanged(rank)
        if rank["steps"][0] is not None:
            losses = [step["mtp_losses/mtp_1_loss"][0] for step in rank["steps"]]
            assert losses == sorted(losses, reverse=True)
            assert losses[0] == pytest.approx(expected, rel=SHARP)


@pytest.mark.parametrize("case", SHARDED, ids=lambda case: case.model)
def test_a_sharded_checkpoint_merges(case, trained, tmp_path):
    """verl's merger, which reads verl's own registries; the models come by an entry point."""
    package = tmp_path / "path" / "registered_models-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: registered-models\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[verl_hw.megatron_architectures]\nmodels = registered_models:add\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    rendezvous = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    python(
        *("-m", "verl_hw_core.megatron.merger", "merge", "--backend", "megatron"),
        *("--local_dir", trained / f"sharded-{case.model}", "--target_dir", tmp_path / "merged"),
        log=tmp_path / "log.txt", path=str(package.parent), MASTER_PORT=str(port), **rendezvous,
        **simulated_environment("cambricon", 1),
    )  # fmt: skip
    merged = load_file(tmp_path / "merged" / "model.safetensors")
    expected = load_file(trained / f"exported-{case.model}.safetensors")
    assert merged.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(merged[name], tensor), name


def test_batches_that_a_model_is_not_registered_for_are_refused(trained):
    assert (trained / "packed.txt").read_text() == (
        "UnsupportedModelSettingError: plover is registered for padded batches only, and the configuration asks for "
        "packed ones: set use_remove_padding=False"
    )


def test_a_model_that_nobody_registered_is_refused(trained):
    text = (trained / "unregistered.txt").read_text()
    assert text.startswith("UnregisteredArchitectureError: strategy=megatron has no bridge for model_type 'gemma2'.")
    assert "Nearest: gemma3. All: deepseek_v3," in text
    assert "plover" in text
    assert "docs/new_model.md" in text


def test_experts_that_the_ranks_cannot_share_are_refused(trained):
    text = (trained / "uneven-experts.txt").read_text()
    assert text.startswith("UnsupportedModelSettingError: expert_model_parallel_size=2: ")
    assert "the model has 3." in text
