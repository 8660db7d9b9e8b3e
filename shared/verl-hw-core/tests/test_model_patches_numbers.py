# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The portable forms compute what transformers' models compute, forward and backward, for every model type."""

import pytest

from verl_hw_core import model_patches
from verl_hw_core.model_patches import registry
from verl_hw_core.model_patches.targets import SITES

TEXT = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "mlp_only_layers": [0]}
MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}}
VISION = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32}
MODELS = {
    "llama": TEXT,
    "qwen2": TEXT,
    "qwen3": TEXT,
    "qwen3_moe": {**TEXT, **EXPERTS},
    "qwen2_5_vl": {"text_config": {**TEXT, **MROPE}, "vision_config": VISION},
    "qwen3_vl": {"text_config": {**TEXT, **MROPE}, "vision_config": VISION},
    "qwen3_vl_moe": {"text_config": {**TEXT, **MROPE, **EXPERTS}, "vision_config": VISION},
}
TOLERANCE = {"float32": 2e-6, "bfloat16": 2e-2}
"""Largest difference, relative to the largest value; in bfloat16 a few roundings' worth."""


@pytest.fixture(autouse=True)
def reverted():
    yield
    model_patches.revert()


def test_a_patched_model_is_compiled_in_one_piece(monkeypatch):
    import torch
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    norm, inputs = Qwen3RMSNorm(8), torch.arange(16.0).reshape(2, 8)
    wanted = norm(inputs)
    monkeypatch.setenv(registry.MODE_ENV, "portable")
    assert "Qwen3RMSNorm.forward" in " ".join(one.target for one in model_patches.apply("acme", "cpu", "qwen3"))
    compiled = torch.compile(norm, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(inputs), wanted)


def text_model(model_type: str, dtype):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

    config = AutoConfig.for_model(model_type, **MODELS[model_type])
    auto_class = AutoModelForImageTextToText if hasattr(config, "vision_config") else AutoModelForCausalLM
    torch.manual_seed(0)
    model = auto_class.from_config(config, attn_implementation="eager", experts_implementation="eager").to(dtype)
    return model.model.language_model if hasattr(config, "vision_config") else model.model


def numbers(model) -> dict:
    """Hidden states and every parameter's gradient."""
    import torch

    inputs = torch.randn(2, 9, 32, generator=torch.Generator().manual_seed(1)).to(model.dtype).requires_grad_()
    model.zero_grad()
    hidden = model(inputs_embeds=inputs, use_cache=False).last_hidden_state
    hidden.float().square().sum().backward()
    gradients = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    return {"hidden": hidden.detach(), "inputs": inputs.grad, **gradients}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("model_type", MODELS)
def test_a_patched_model_gives_the_numbers_of_transformers(model_type, dtype, monkeypatch):
    import torch

    model = text_model(model_type, getattr(torch, dtype))
    expected = numbers(model)
    monkeypatch.setenv(registry.MODE_ENV, "portable")
    applied = {record.target for record in model_patches.apply("acme", "cpu", model_type)}
    assert applied == {site.target for site in SITES if site.model_type == model_type}
    found = numbers(model)
    assert found.keys() == expected.keys()
    assert len(found) > 15
    for name, value in found.items():
        largest = float(expected[name].abs().max())
        assert float((value - expected[name]).abs().max()) <= TOLERANCE[dtype] * largest, name
    model_patches.revert()
    again = numbers(model)
    assert all(torch.equal(again[name], expected[name]) for name in expected)


def test_every_model_type_with_a_site_is_tried():
    assert set(MODELS) == {site.model_type for site in SITES}


def test_the_replacements_are_really_called(monkeypatch):
    """Of a patched model every norm, rotation and MLP goes through our forms."""
    import torch

    from verl_hw_core.model_patches import operations

    called = []

    def counting(name, form):
        def count(*args, **kwargs):
            called.append(name)
            return form(*args, **kwargs)

        return count

    monkeypatch.setattr(
        operations, "PORTABLE", {name: counting(name, form) for name, form in operations.PORTABLE.items()}
    )
    monkeypatch.setenv(registry.MODE_ENV, "portable")
    model_patches.apply("acme", "cpu", "qwen3")
    numbers(text_model("qwen3", torch.float32))
    # Two layers: two norms, one for queries and one for keys, each; a rotation; an MLP. One last norm.
    assert {name: called.count(name) for name in set(called)} == {"rms_norm": 9, "rotary": 2, "swiglu": 2}


def test_an_activation_other_than_silu_is_left_alone(monkeypatch):
    import torch
    from transformers.models.qwen3.modeling_qwen3 import Qwen3Config, Qwen3MLP

    monkeypatch.setenv(registry.MODE_ENV, "portable")
    mlp = Qwen3MLP(Qwen3Config(hidden_size=8, intermediate_size=16, hidden_act="gelu"))
    inputs = torch.randn(3, 8)
    expected = mlp(inputs)
    model_patches.apply("acme", "cpu", "qwen3")
    assert torch.equal(mlp(inputs), expected)
