# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that verl's engines never read are refused by name, with the one that works.

That verl trains as if they were not there is shown in tests/conformance/test_settings_walk.py.
"""

from functools import partial
from types import SimpleNamespace

import pytest

from verl_hw_core.errors import UnsupportedModelSettingError
from verl_hw_core.training import unread

pytestmark = pytest.mark.usefixtures("verl_without_plugins")


def model(**changes) -> SimpleNamespace:
    mtp = SimpleNamespace(enable=False, enable_train=False)
    given = {"lora_rank": 0, "lora_alpha": 16, "lora_adapter_path": None, "lora": {"rank": 0, "alpha": 32}, "mtp": mtp}
    return SimpleNamespace(**{**given, **changes})


def fsdp_engine(**changes) -> SimpleNamespace:
    given = {"dtype": "bfloat16", "mixed_precision": None, "qat": SimpleNamespace(enable=False)}
    return SimpleNamespace(**{**given, "ulysses_sequence_parallel_size": 1, **changes})


def optimizer(**changes) -> SimpleNamespace:
    given = {"optimizer": "adam", "betas": (0.9, 0.999), "clip_grad": 1.0, "override_optimizer_config": None}
    return SimpleNamespace(**{**given, **changes})


@pytest.mark.parametrize(
    ("settings", "named", "works"),
    [
        ({"lora": {"rank": 8}}, "model.lora.rank=8", "model.lora_rank"),
        ({"lora": {"rank": 8}, "lora_rank": 4}, "model.lora.rank=8", "model.lora_rank=4"),
        ({"lora": {"adapter_path": "a"}, "lora_rank": 4}, "model.lora.adapter_path=a", "model.lora_adapter_path"),
        ({"lora": {"alpha": 64}, "lora_rank": 4}, "model.lora.alpha=64", "model.lora_alpha"),
        ({"lora": {"dropout": 0.1}, "lora_rank": 4}, "model.lora.dropout=0.1", "set it to 0"),
        ({"lora_adapter_path": "a"}, "model.lora_adapter_path=a", "model.lora_rank"),
        ({"mtp": SimpleNamespace(enable=True, enable_train=True)}, "model.mtp.enable_train=True", "strategy=megatron"),
    ],
)
def test_fsdp_refuses_a_model_setting_that_it_would_leave_out(settings, named, works):
    with pytest.raises(UnsupportedModelSettingError) as refused:
        unread.refuse_unread_by_fsdp(model(**settings), fsdp_engine())
    assert named in str(refused.value)
    assert works in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lora_rank": 8},
        {"lora_rank": 8, "lora": {"rank": 8, "merge": True}},
        {"lora_rank": 8, "lora_alpha": 64, "lora": {"alpha": 64}},
        {"lora_rank": 8, "lora_adapter_path": "a"},
        {"mtp": SimpleNamespace(enable=True, enable_train=False)},
    ],
)
def test_fsdp_refuses_nothing_that_it_reads(settings):
    unread.refuse_unread_by_fsdp(model(**settings), fsdp_engine())


@pytest.mark.parametrize(
    ("dtype", "mixed_precision", "refused"),
    [
        ("bfloat16", None, False),
        ("bfloat16", {"param_dtype": "fp16"}, False),
        ("float16", {"param_dtype": "fp16"}, False),
        (None, None, False),
        ("float16", None, True),
        ("float16", {"reduce_dtype": "fp32"}, True),
        ("float32", {"param_dtype": "bf16"}, True),
    ],
)
def test_mixed_precision_decides_under_fsdp(dtype, mixed_precision, refused):
    engine = fsdp_engine(dtype=dtype, mixed_precision=mixed_precision)
    if not refused:
        unread.refuse_unread_by_fsdp(model(), engine)
        return
    with pytest.raises(UnsupportedModelSettingError, match=rf"dtype={dtype} .*mixed_precision.param_dtype"):
        unread.refuse_unread_by_fsdp(model(), engine)


@pytest.mark.parametrize(
    ("settings", "adam", "works"),
    [
        ({"lora_rank": 8}, {}, "model.lora.rank"),
        ({"lora_adapter_path": "a"}, {}, "model.lora.adapter_path"),
        ({}, {"betas": (0.9, 0.95)}, "adam_beta1: 0.9, adam_beta2: 0.95"),
        ({}, {"betas": (0.9, 0.95), "override_optimizer_config": {"adam_beta2": 0.9}}, "adam_beta2: 0.95"),
    ],
)
def test_megatron_refuses_what_it_would_leave_out(settings, adam, works):
    with pytest.raises(UnsupportedModelSettingError, match=works):
        unread.refuse_unread_by_megatron(model(**settings), SimpleNamespace(forward_only=False), optimizer(**adam))


@pytest.mark.parametrize(
    "adam",
    [
        optimizer(),
        optimizer(betas=[0.9, 0.999]),
        optimizer(betas=(0.9, 0.95), override_optimizer_config={"adam_beta2": 0.95}),
        optimizer(betas=(0.9, 0.95), optimizer="muon"),
        None,
    ],
)
def test_megatron_refuses_nothing_that_it_reads(adam):
    both = model(lora_rank=8, lora={"rank": 8})
    unread.refuse_unread_by_megatron(both, SimpleNamespace(forward_only=False), adam)


@pytest.mark.parametrize(
    ("settings", "works"),
    [
        ({"grad_clip": 0.5}, "optim.clip_grad"),
        ({"ulysses_sequence_parallel_size": 2}, "critic.fsdp.ulysses_sequence_parallel_size"),
        ({"freeze_vision_tower": True}, "set it to False"),
        ({"qat": SimpleNamespace(enable=True)}, "fsdp_config.qat"),
        ({"use_rollout_log_probs": True}, "rollout_correction.bypass_mode=True"),
    ],
)
def test_a_step_is_refused_whose_configuration_nothing_reads(settings, works):
    loss = partial(print, config=SimpleNamespace(**settings))
    with pytest.raises(UnsupportedModelSettingError, match=works):
        unread.refuse_unread_by_loss(loss, fsdp_engine(), optimizer())


@pytest.mark.parametrize(
    ("settings", "engine", "adam"),
    [
        ({"grad_clip": 1.0}, {}, {"clip_grad": 0.5}),
        ({"grad_clip": 0.5}, {}, {"clip_grad": 0.5}),
        ({"ulysses_sequence_parallel_size": 2}, {"ulysses_sequence_parallel_size": 2}, {}),
        ({"qat": SimpleNamespace(enable=True)}, {"qat": SimpleNamespace(enable=True)}, {}),
    ],
)
def test_a_step_is_not_refused_that_trains_as_asked(settings, engine, adam):
    loss = partial(print, config=SimpleNamespace(**settings))
    unread.refuse_unread_by_loss(loss, fsdp_engine(**engine), optimizer(**adam))


@pytest.mark.parametrize("loss", [None, print, partial(print), partial(print, config=None)])
def test_a_loss_without_a_configuration_is_not_looked_at(loss):
    unread.refuse_unread_by_loss(loss, fsdp_engine(), optimizer())
