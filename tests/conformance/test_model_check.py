# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A model that a package registers is the same in Megatron as in transformers, and a wrong registration is named.

The example is the one of docs/new_model.md. Megatron runs on a simulated device, transformers on the CPU.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT
from machine_speed import scaled
from modelkit import run_with_models
from platformkit import clean_environment, needs_cpu_torch

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
DEADLINE_S = 600
EXACT = 1e-5

pytestmark = [pytest.mark.slow, pytest.mark.timeout(DEADLINE_S)]


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Any]:
    """Every model and every planted fault of model_check_program.py, in one process."""
    folder = tmp_path_factory.mktemp("check")
    models, out, log = folder / "models", folder / "out", folder / "log.txt"
    out.mkdir()
    device = simulated_environment("cambricon", 1)
    run_with_models(HERE / "model_check_program.py", models, out, log=log, seconds=DEADLINE_S, **device)
    texts = {path.stem: path.read_text() for path in out.glob("*.txt")}
    return {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")} | texts | {"log": log.read_text()}


def findings(reports: dict[str, dict], name: str) -> dict[str, dict]:
    assert "error" not in reports[name], reports[name]["error"]
    return {finding["name"]: finding for finding in reports[name]["findings"]}


def failed(reports: dict[str, dict], name: str) -> dict[str, dict]:
    return {key: one for key, one in findings(reports, name).items() if one["status"] == "fail"}


RIGHT = ["right", "tied", "mbridge dense", "mbridge experts", "experts", "latent attention"]


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_model_is_the_same(reports, name):
    """Dense, tied, with experts, with latent attention; packed and padded; a language model and a critic."""
    found = findings(reports, name)
    assert reports[name]["passed"], failed(reports, name)
    measured = {key: one["worst"] for key, one in found.items() if one["worst"] is not None}
    assert measured.keys() == {
        f"{head}{what}, {form}"
        for head, output in (("", "logits"), ("value head: ", "values"))
        for what in (output, "gradients")
        for form in ("packed", "padded")
    }
    assert max(measured.values()) < EXACT
    assert all(found[f"{head}round trip of weights"]["status"] == "ok" for head in ("", "value head: "))


def test_routers_are_frozen_unless_the_model_says_otherwise(reports):
    gate = "model.layers.0.mlp.gate.weight"
    assert gate in findings(reports, "experts")["gradients, packed"]["observed"]
    assert gate not in findings(reports, "mbridge experts")["gradients, packed"]["observed"]


def test_batches_that_a_model_is_not_registered_for_are_left_out(reports):
    found = findings(reports, "padded only")
    assert reports["padded only"]["passed"]
    assert found["packed"]["status"] == "skip"
    assert found["logits, padded"]["status"] == "ok"
    assert "logits, packed" not in found


def test_a_wrong_mapping_is_named_by_the_first_part_that_differs(reports):
    """It goes both ways, so that the round trip is right."""
    wrong = failed(reports, "swapped mapping")
    assert "round trip of weights" not in wrong
    assert "layer 0 mlp" in wrong["logits, packed"]["observed"]
    assert set(wrong["logits, packed"]["tensors"][:2]) == {
        "model.layers.0.mlp.up_proj.weight",
        "model.layers.0.mlp.gate_proj.weight",
    }
    assert wrong["logits, padded"]["worst"] > 0.1


def test_exchanged_norms_have_the_worst_gradients(reports):
    wrong = failed(reports, "exchanged norms")
    assert "layer 0 attention" in wrong["logits, packed"]["observed"]
    assert {name.rsplit(".", 2)[-2] for name in wrong["gradients, packed"]["tensors"][:4]} == {"input_norm", "mlp_norm"}


def test_a_way_back_that_is_wrong_is_named(reports):
    """Logits are right, and weight sync would send another model."""
    wrong = failed(reports, "one-way mapping")
    assert "logits, packed" not in wrong
    assert set(wrong["round trip of weights"]["tensors"]) == {
        f"model.layers.{layer}.mlp.{one}_proj.weight" for layer in (0, 1) for one in ("gate", "up")
    }


def test_a_wrong_epsilon_is_named(reports):
    wrong = failed(reports, "epsilon")
    assert wrong["norm epsilon"]["observed"] == "Hugging Face 1e-06, Megatron 1e-05"
    assert "model.layers.0.input_norm" in wrong["norm epsilon"]["tensors"]
    assert "logits, packed" in wrong


def test_a_dropped_bias_is_named(reports):
    wrong = failed(reports, "dropped bias")
    dropped = {f"model.layers.{layer}.self_attn.{one}_proj.bias" for layer in (0, 1) for one in "qkv"}
    assert set(wrong["weight mapping"]["tensors"]) == dropped
    assert set(wrong["round trip of weights"]["tensors"]) == dropped
    assert "logits, packed" in wrong


def test_a_tensor_without_a_mapping_is_named(reports):
    wrong = failed(reports, "unmapped bias")
    assert "decoder.layers.0.self_attention.linear_qkv.bias" in wrong["weight mapping"]["observed"]
    assert wrong.keys() == {"weight mapping", "value head: weight mapping"}


def test_rotary_positions_on_the_whole_head_are_found_in_the_attention(reports):
    wrong = failed(reports, "whole rotary")
    assert "layer 0 attention" in wrong["logits, packed"]["observed"]
    assert "weight mapping" not in wrong


def test_a_missing_norm_is_named(reports):
    wrong = failed(reports, "no norm behind attention")
    assert set(wrong["weight mapping"]["tensors"]) == {
        f"model.layers.{layer}.self_attn.out_norm.weight" for layer in (0, 1)
    }


def test_a_setting_of_another_megatron_is_left_out_and_named(reports):
    assert reports["later setting"]["passed"]
    assert "has no of_another_version=3: left out of the config of plover" in reports["log"]


def test_a_setting_that_megatron_would_make_up_is_asked_for(reports):
    assert reports["unusual names"] == (
        "plover: its config has nothing for layernorm_epsilon under the usual names; transformer_config of its "
        "registration must return them"
    )


def test_faults_of_mbridges_own_bridges_are_found(reports):
    """As docs/new_model.md lists them; one that is mended goes from there and from here."""
    gates = {f"model.layers.{layer}.mlp.shared_expert_gate.weight" for layer in (0, 1)}
    wrong = failed(reports, "mbridge qwen2_moe")
    assert set(wrong["weight mapping"]["tensors"]) == gates
    assert "layer 0 mlp" in wrong["logits, packed"]["observed"]
    assert "'NoneType' and 'int'" in failed(reports, "mbridge mixtral")["weight mapping"]["observed"]
    assert "'max_position_embeddings'" in failed(reports, "mbridge deepseek_v3")["build"]["observed"]


def test_a_layer_that_cannot_be_built_is_a_result(reports):
    wrong = failed(reports, "broken layer")
    assert "no_such_part" in wrong["build"]["observed"]


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", "from verl_hw_tools.cli import main; main()", *map(str, arguments)],
        env=clean_environment(PYTHONPATH=str(ROOT / "docs" / "examples"), **environment),
        capture_output=True,
        text=True,
        timeout=scaled(DEADLINE_S),
        check=False,
    )


def write_config(folder: Path, **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    config = {"model_type": "plover", "architectures": ["PloverForCausalLM"], "hidden_size": 64, **changes}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("vendor", "device"), [("cambricon", "mlu"), pytest.param("metax", "cuda", marks=needs_cpu_torch)]
)
def test_the_command(tmp_path, vendor, device):
    done = command("check-model", write_config(tmp_path), "--vendor", vendor, "--import", "plover_llm", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["passed"]
    assert report["model_type"] == "plover"
    assert (report["vendor"], report["device"], report["simulated"]) == (vendor, device, True)
    assert report["sizes"]["vocab_size"] == [512, 256]


def test_a_model_that_nobody_registered_is_refused(tmp_path):
    """The nearest names and the guide are named."""
    done = command("check-model", write_config(tmp_path, model_type="gemma2"), "--vendor", "cambricon")
    assert done.returncode == 2
    assert "no bridge for model_type 'gemma2'. Nearest: gemma" in done.stderr
    assert "docs/new_model.md" in done.stderr


def test_a_model_that_transformers_does_not_know_is_refused(tmp_path):
    done = command("check-model", write_config(tmp_path), "--vendor", "cambricon")
    assert done.returncode == 2
    assert "--import MODULE" in done.stderr
