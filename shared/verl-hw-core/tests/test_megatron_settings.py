# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Transformer settings without TransformerEngine. No megatron is imported here."""

from types import SimpleNamespace

import pytest

from verl_hw_core.errors import UnsupportedModelSettingError
from verl_hw_core.megatron.settings import (
    local_overrides,
    require_equal_experts,
    require_local,
    require_possible,
    require_same_routing,
    torch_adam_overrides,
)

KNOWN = frozenset({"persist_layer_norm", "bias_activation_fusion", "apply_rope_fusion", "recompute_granularity"})


def test_cuda_kernels_are_off_and_the_users_other_settings_stay():
    asked = {"recompute_granularity": "full", "persist_layer_norm": True, "attention_backend": "flash"}
    assert local_overrides(asked, KNOWN, True) == {
        "recompute_granularity": "full",
        "persist_layer_norm": False,
        "bias_activation_fusion": False,
        "apply_rope_fusion": False,
        "attention_backend": "local",
        "sequence_parallel": True,
    }


def test_a_sequence_parallel_of_the_users_own_wins():
    assert local_overrides({"sequence_parallel": False}, KNOWN, True)["sequence_parallel"] is False


@pytest.mark.parametrize("name", ["fp8", "cpu_offloading", "enable_cuda_graph"])
def test_what_has_no_substitute_is_refused(name):
    with pytest.raises(UnsupportedModelSettingError, match=f"no {name}='?\\w+'?: remove it from override"):
        local_overrides({name: "hybrid"}, KNOWN, False)
    local_overrides({name: None}, KNOWN, False)


def test_fused_kernels_are_refused_on_other_devices_only():
    with pytest.raises(UnsupportedModelSettingError, match=r"use_fused_kernels=True.*not mlu"):
        require_possible(SimpleNamespace(use_fused_kernels=True), "mlu")
    require_possible(SimpleNamespace(use_fused_kernels=True), "cuda")
    require_possible(SimpleNamespace(use_fused_kernels=False), "mlu")


@pytest.mark.parametrize("name", ["dynamic_context_parallel", "use_megatron_fsdp", "dist_ckpt_optim_fully_reshardable"])
def test_what_needs_transformer_engine_is_named(name):
    off = {"dynamic_context_parallel": False, "use_megatron_fsdp": False, "dist_ckpt_optim_fully_reshardable": False}
    require_local(SimpleNamespace(**off))
    with pytest.raises(UnsupportedModelSettingError, match=f"^{name}"):
        require_local(SimpleNamespace(**{**off, name: True}))


def test_experts_that_the_ranks_cannot_share_are_refused_with_the_sizes_that_work():
    with pytest.raises(
        UnsupportedModelSettingError,
        match=r"^expert_model_parallel_size=3: .* the model has 4\. Set actor_rollout_ref\.actor\.megatron\."
        r"expert_model_parallel_size .* to one of 1, 2, 4$",
    ):
        require_equal_experts(4, 3)
    require_equal_experts(4, 2)
    require_equal_experts(None, 1)


def optimizer(**given: object) -> SimpleNamespace:
    return SimpleNamespace(**{"override_optimizer_config": None, "use_precision_aware_optimizer": False, **given})


def test_torchs_adam_is_kept_where_verl_chooses_another_for_fp16():
    assert torch_adam_overrides(optimizer()) == {"use_precision_aware_optimizer": False}
    given = torch_adam_overrides(optimizer(override_optimizer_config={"adam_eps": 1e-6}))
    assert given == {"adam_eps": 1e-6, "use_precision_aware_optimizer": False}


@pytest.mark.parametrize(
    "asked",
    [{"use_precision_aware_optimizer": True}, {"override_optimizer_config": {"use_precision_aware_optimizer": True}}],
)
def test_an_optimizer_of_transformer_engine_is_refused_by_name(asked):
    with pytest.raises(UnsupportedModelSettingError, match=r"use_precision_aware_optimizer=True: .*TransformerEngine"):
        torch_adam_overrides(optimizer(**asked))


def router(function="softmax", pre_softmax=False, top_k=2):
    return SimpleNamespace(
        moe_router_topk=top_k, moe_router_score_function=function, moe_router_pre_softmax=pre_softmax
    )


@pytest.mark.parametrize(
    ("normalized", "built"),
    [
        (True, router(pre_softmax=False)),
        (False, router(pre_softmax=True)),
        (True, router("sigmoid", pre_softmax=True)),
        (False, router(pre_softmax=False, top_k=1)),
        (None, router(pre_softmax=True)),
    ],
)
def test_a_router_that_is_the_models(normalized, built):
    config = SimpleNamespace(model_type="some_moe")
    if normalized is not None:
        config.norm_topk_prob = normalized
    require_same_routing(config, built)


@pytest.mark.parametrize(
    ("normalized", "built", "remedy"),
    [
        (True, router(pre_softmax=True), "override_transformer_config.moe_router_pre_softmax=False"),
        (False, router(pre_softmax=False), "override_transformer_config.moe_router_pre_softmax=True"),
        (False, router("sigmoid"), "actor.strategy=fsdp2"),
    ],
)
def test_a_router_that_is_not_the_models_is_refused(normalized, built, remedy):
    config = SimpleNamespace(model_type="some_moe", norm_topk_prob=normalized)
    with pytest.raises(UnsupportedModelSettingError, match=f"norm_topk_prob={normalized}") as raised:
        require_same_routing(config, built)
    assert remedy in str(raised.value)
