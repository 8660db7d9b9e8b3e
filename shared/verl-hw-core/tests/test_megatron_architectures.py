# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a package declares for the Megatron backend: refused where it cannot be right, found, and its weights moved."""

import logging
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
import torch

from verl_hw_core.errors import MegatronArchitectureError, UnregisteredArchitectureError, UnsupportedModelSettingError
from verl_hw_core.facts import vendors
from verl_hw_core.megatron import architectures
from verl_hw_core.megatron.architectures import Converted, MegatronArchitecture
from verl_hw_core.megatron.weight_names import WeightNames
from verl_hw_tools.model_check.results import Finding, Report, Status
from verl_hw_tools.model_check.tiny import make_tiny

WEIGHTS = {
    "output_layer.weight": "lm_head.weight",
    "decoder.layers.{layer}.qkv.weight": tuple(f"layers.{{layer}}.{one}.weight" for one in "qkv"),
    "decoder.layers.{layer}.fc1.weight": ("layers.{layer}.gate.weight", "layers.{layer}.up.weight"),
    "decoder.layers.{layer}.experts.fc2.weight{expert}": "layers.{layer}.experts.{expert}.down.weight",
    "mtp.layers.{mtp}.norm.weight": "layers.{mtp_layer}.norm.weight",
    "decoder.layers.{layer}.turned.weight": Converted(
        ("layers.{layer}.turned.weight",), lambda parts, _: parts[0].T, lambda tensor, _: [tensor.T]
    ),
}
CONFIG = SimpleNamespace(num_attention_heads=4, num_query_groups=2, kv_channels=3)


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch):
    monkeypatch.setattr(architectures, "_registered", {})
    monkeypatch.setattr(vendors, "_called", set())


def architecture(**changes) -> MegatronArchitecture:
    fields = {
        "model_type": "plover",
        "hf_classes": ("PloverForCausalLM",),
        "transformer_config": lambda _: {},
        "weights": WEIGHTS,
    }
    return MegatronArchitecture(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"batches": ()}, "must name some of packed, padded"),
        ({"batches": ("ragged",)}, "must name some of packed, padded"),
        ({"hf_classes": "PloverForCausalLM"}, "must be a tuple of class names"),
        ({"weights": {}}, "must map 'output_layer.weight' to 'lm_head.weight', found None"),
        ({"weights": {"output_layer.weight": "head.weight"}}, "found 'head.weight'"),
    ],
)
def test_what_cannot_be_right_is_refused(changes, text):
    with pytest.raises(MegatronArchitectureError, match=text):
        architecture(**changes)


def test_an_unknown_model_is_named_with_its_nearest():
    with pytest.raises(UnregisteredArchitectureError) as caught:
        architectures.require_known("qwen3_moee", ["llama", "qwen3", "qwen3_moe", "mixtral"])
    assert "Nearest: qwen3_moe, qwen3. All: llama, mixtral, qwen3, qwen3_moe." in str(caught.value)
    assert "docs/new_model.md" in str(caught.value)
    with pytest.raises(UnregisteredArchitectureError, match=r"'xyz'\. All: llama"):
        architectures.require_known("xyz", ["llama"])
    architectures.require_known("llama", ["llama"])


def test_batches_that_are_not_there_are_refused():
    padded = architecture(batches=("padded",))
    architectures.require_batches(padded, use_remove_padding=False)
    with pytest.raises(UnsupportedModelSettingError, match="set use_remove_padding=False"):
        architectures.require_batches(padded, use_remove_padding=True)


def test_entry_points_are_called_once_and_a_broken_one_is_left_out(monkeypatch, caplog):
    calls = []
    right = SimpleNamespace(name="right", value="a:add", load=lambda: lambda: calls.append(1))
    broken = EntryPoint(name="broken", value="no_such_module_of_plover:add", group=architectures.ENTRY_POINTS)
    monkeypatch.setattr(vendors, "entry_points", lambda group: [right, broken])
    with caplog.at_level(logging.WARNING, logger="verl_hw_core"):
        architectures.registered()
        architectures.registered()
    assert calls == [1]
    assert [record.getMessage() for record in caplog.records] == [
        "Megatron architectures of entry point 'broken' (no_such_module_of_plover:add) are left out: "
        "ModuleNotFoundError: No module named 'no_such_module_of_plover'"
    ]


def test_a_model_registered_again_is_replaced():
    first, second = architecture(), architecture(freeze_router=False)
    architectures.register_architecture(first)
    architectures.register_architecture(second)
    assert architectures.registered() == {"plover": second}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("output_layer.weight", ["lm_head.weight"]),
        ("decoder.layers.11.qkv.weight", ["layers.11.q.weight", "layers.11.k.weight", "layers.11.v.weight"]),
        ("decoder.layers.0.experts.fc2.weight13", ["layers.0.experts.13.down.weight"]),
        ("mtp.layers.0.norm.weight", ["layers.12.norm.weight"]),
    ],
)
def test_names(name, expected):
    assert WeightNames(WEIGHTS, layers=12).hugging_face(name) == expected


@pytest.mark.parametrize(
    "name", ["decoder.layers.0.qkv.weight2", "decoder.layers.x.qkv.weight", "a.output_layer.weight"]
)
def test_a_name_is_mapped_as_a_whole_or_not_at_all(name):
    with pytest.raises(MegatronArchitectureError, match="do not map"):
        WeightNames(WEIGHTS, layers=12).hugging_face(name)


def test_heads_are_kept_group_by_group():
    query, key, value = (
        torch.arange(rows * 5.0).view(rows, 5) + start for rows, start in ((12, 0), (6, 100), (6, 200))
    )
    names = WeightNames(WEIGHTS, layers=12)
    joined = names.to_megatron("decoder.layers.0.qkv.weight", [query, key, value], CONFIG)
    first = torch.cat([query[:6], key[:3], value[:3]])
    assert torch.equal(joined, torch.cat([first, query[6:], key[3:], value[3:]]))
    back = names.to_hugging_face("decoder.layers.0.qkv.weight", joined, CONFIG)
    assert all(torch.equal(one, other) for one, other in zip(back, (query, key, value), strict=True))


@pytest.mark.parametrize(("part", "count"), [("fc1", 2), ("turned", 1)])
def test_other_tensors_come_back(part, count):
    tensors = [torch.randn(4, 3) for _ in range(count)]
    names = WeightNames(WEIGHTS, layers=12)
    moved = names.to_megatron(f"decoder.layers.3.{part}.weight", tensors, CONFIG)
    assert moved.shape == ((8, 3) if count == 2 else (3, 4))
    back = names.to_hugging_face(f"decoder.layers.3.{part}.weight", moved, CONFIG)
    assert all(torch.equal(one, other) for one, other in zip(back, tensors, strict=True))


def test_a_config_is_made_small_and_stays_of_its_kind():
    config = SimpleNamespace(
        num_hidden_layers=80, hidden_size=8192, num_attention_heads=64, num_key_value_heads=8, head_dim=128,
        vocab_size=150000, intermediate_size=20000, num_experts=None, layer_types=["full_attention"] * 80,
        eos_token_id=7,
    )  # fmt: skip
    changed = make_tiny(config)
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (4, 2, 16)
    assert (config.hidden_size, config.num_hidden_layers, len(config.layer_types)) == (64, 2, 2)
    assert config.num_experts is None
    assert config.eos_token_id == 0
    assert changed["vocab_size"] == (150000, 256)
    assert "num_experts" not in changed


def test_a_config_of_few_heads_gets_no_more():
    config = SimpleNamespace(num_hidden_layers=1, hidden_size=32, num_attention_heads=1, vocab_size=64)
    make_tiny(config)
    assert (config.num_attention_heads, config.hidden_size, config.vocab_size) == (1, 16, 64)
    assert not hasattr(config, "num_key_value_heads")


def test_a_report_passes_from_process_to_process():
    finding = Finding(name="logits, packed", status=Status.FAIL, observed="differs", worst=0.5, tensors=("a", "b"))
    report = Report(
        model_type="plover", hf_class="P", bridge="B", vendor="v", device="d", simulated=True, sizes={"a": (2, 1)},
        tolerance=1e-4, findings=(finding,),
    )  # fmt: skip
    assert Report.from_data(report.as_data()) == report
    assert not report.passed
