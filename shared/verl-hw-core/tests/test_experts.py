# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How experts are computed is chosen by what the device can; here the CPU plays one that can or cannot."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen3MoeConfig  # noqa: E402

from verl_hw_core.errors import UnsupportedModelSettingError  # noqa: E402
from verl_hw_core.training import experts  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _tried_anew():
    experts.fault.cache_clear()
    yield
    experts.fault.cache_clear()


@pytest.fixture
def broken(monkeypatch):
    """A device whose histc takes no integers, or whose grouped product is wrong."""

    def refuse(*_args, **_kwargs):
        raise NotImplementedError("\"histc\" not implemented for 'Float'")

    monkeypatch.setattr(torch, "histc", refuse)


def moe(**overrides):
    config = Qwen3MoeConfig(
        vocab_size=32, hidden_size=16, intermediate_size=16, moe_intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, num_experts=4, num_experts_per_tok=2,
    )  # fmt: skip
    for name, value in overrides.items():
        setattr(config, name, value)  # as verl does it
    return AutoModelForCausalLM.from_config(config)


def implementation(model):
    return model.config._experts_implementation


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_transformers_default_stays_where_the_device_can(dtype, caplog):
    model = moe()
    assert experts.choose(model, CPU, dtype) is None
    assert implementation(model) == "grouped_mm"
    assert not caplog.records


def test_a_device_that_cannot_computes_one_by_one_and_says_why(broken, caplog):
    model = moe()
    assert experts.choose(model, CPU, torch.float32) == "eager"
    assert implementation(model) == "eager"
    assert "histc" in caplog.text


def test_a_wrong_result_is_as_bad_as_none(monkeypatch):
    own = torch.nn.functional.grouped_mm
    monkeypatch.setattr(torch.nn.functional, "grouped_mm", lambda *given, **named: own(*given, **named) * 1.01)
    model = moe()
    experts.choose(model, CPU, torch.float32)
    assert implementation(model) == "eager"


@pytest.mark.parametrize("name", ["eager", "batched_mm", "grouped_mm"])
def test_what_the_user_set_is_obeyed(name):
    model = moe(experts_implementation=name)
    assert experts.choose(model, CPU, torch.float32) == name
    assert implementation(model) == name


def test_what_the_user_set_and_the_device_cannot_do_is_refused(broken):
    with pytest.raises(UnsupportedModelSettingError, match="experts_implementation=eager"):
        experts.choose(moe(experts_implementation="grouped_mm"), CPU, torch.float32)


def test_a_name_that_transformers_does_not_know_is_refused():
    with pytest.raises(UnsupportedModelSettingError, match=r"override_config\.experts_implementation.*fastest"):
        experts.choose(moe(experts_implementation="fastest"), CPU, torch.float32)


def test_the_setting_of_a_part_is_found():
    part = SimpleNamespace(experts_implementation="eager")
    assert experts.requested(SimpleNamespace(sub_configs={"text_config": None}, text_config=part)) == {
        "text_config": "eager"
    }


def test_a_dense_model_is_left_alone(broken, caplog):
    config = Qwen2Config(
        vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    assert experts.choose(AutoModelForCausalLM.from_config(config), CPU, torch.float32) is None
    assert not caplog.records


def test_router_replay_is_refused_by_engines_that_pass_it_over():
    experts.require_no_replay(SimpleNamespace(router_replay=SimpleNamespace(mode="disabled")))
    with pytest.raises(UnsupportedModelSettingError, match=r"actor\.strategy=megatron") as raised:
        experts.require_no_replay(SimpleNamespace(router_replay=SimpleNamespace(mode="R2")))
    assert "actor.megatron.router_replay.mode=R2" in str(raised.value)
