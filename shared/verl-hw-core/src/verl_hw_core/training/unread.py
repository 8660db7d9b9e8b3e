# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that verl (0.9.1) has and its engines never read: refused, since the run would train something else.

That nothing reads them is kept true by tests/conformance/test_settings_walk.py, which trains with each. Arguments are
verl's ``HFModelConfig``, ``FSDPEngineConfig`` or ``McoreEngineConfig``, and ``McoreOptimizerConfig``.
"""

from collections.abc import Iterable
from typing import Any

from verl_hw_core.errors import UnsupportedModelSettingError

_GRAD_CLIP = 1.0  # defaults of verl's configuration
_LORA_ALPHA = 32
_BETAS = (0.9, 0.999)


def refuse_unread_by_fsdp(model_config: Any, engine_config: Any) -> None:
    """Refuse, before the model is built, what verl's FSDP engines would leave out.

    Raises:
        UnsupportedModelSettingError: The configuration asks for it; the text has the setting that works.
    """
    rank, lora, adapter = model_config.lora_rank, model_config.lora, model_config.lora_adapter_path
    mtp = model_config.mtp
    _refuse("FSDP", (
        (lora.get("rank", 0) not in (0, rank), f"model.lora.rank={lora.get('rank')}",
         f"the rank of adapters is model.lora_rank={rank}: set that one, or the whole model is trained"),
        (lora.get("adapter_path") not in (None, adapter), f"model.lora.adapter_path={lora.get('adapter_path')}",
         "set model.lora_adapter_path"),
        (rank > 0 and lora.get("alpha", _LORA_ALPHA) not in (_LORA_ALPHA, model_config.lora_alpha),
         f"model.lora.alpha={lora.get('alpha')}", "set model.lora_alpha"),
        (rank > 0 and lora.get("dropout", 0) > 0, f"model.lora.dropout={lora.get('dropout')}",
         "its adapters have no dropout: set it to 0"),
        (rank == 0 and adapter is not None, f"model.lora_adapter_path={adapter}",
         "without model.lora_rank: set that to the adapter's rank, or the whole model is trained"),
        (mtp.enable and mtp.enable_train, "model.mtp.enable_train=True",
         "it does not train these layers: set it to False, or use strategy=megatron"),
        (_is_other_precision(engine_config), f"dtype={engine_config.dtype}",
         "set +mixed_precision.param_dtype beside it, which decides alone"),
    ))  # fmt: skip


def _is_other_precision(engine_config: Any) -> bool:
    from verl.utils.torch_dtypes import PrecisionType

    chosen = (engine_config.mixed_precision or {}).get("param_dtype", "bf16")
    named = engine_config.dtype or "bfloat16"
    return named != "bfloat16" and PrecisionType.to_dtype(named) != PrecisionType.to_dtype(chosen)


def refuse_unread_by_megatron(model_config: Any, engine_config: Any, optimizer_config: Any) -> None:
    """Refuse, before the model is built, what verl's Megatron engines would leave out.

    A reference policy has None for its optimizer's configuration.

    Raises:
        UnsupportedModelSettingError: The configuration asks for it; the text has the setting that works.
    """
    rank, lora, adapter = model_config.lora_rank, model_config.lora, model_config.lora_adapter_path
    problems = [
        (rank not in (0, lora.get("rank", 0)), f"model.lora_rank={rank}",
         "the rank of adapters is model.lora.rank: set that one, or the whole model is trained"),
        (adapter not in (None, lora.get("adapter_path")), f"model.lora_adapter_path={adapter}",
         "set model.lora.adapter_path"),
    ]  # fmt: skip
    if optimizer_config is not None and not engine_config.forward_only:
        betas = tuple(optimizer_config.betas)
        overrides = optimizer_config.override_optimizer_config or {}
        taken = tuple(overrides.get(name, own) for name, own in zip(("adam_beta1", "adam_beta2"), _BETAS, strict=True))
        asked = str(optimizer_config.optimizer).lower() == "adam" and betas not in (_BETAS, taken)
        remedy = f"set optim.override_optimizer_config={{adam_beta1: {betas[0]}, adam_beta2: {betas[1]}}}"
        problems.append((asked, f"optim.betas={list(betas)}", remedy))
    _refuse("Megatron", problems)


def refuse_unread_by_loss(loss_function: Any, engine_config: Any, optimizer_config: Any) -> None:
    """Refuse, before the first step, settings of the actor and critic that reach neither the loss nor the engine.

    Args:
        loss_function: verl's loss with its configuration as argument ``config``; any other is not looked at.
        engine_config: Configuration of the engine that trains.
        optimizer_config: Configuration of its optimizer.

    Raises:
        UnsupportedModelSettingError: The configuration asks for it; the text has the setting that works.
    """
    config = getattr(loss_function, "keywords", {}).get("config")
    if config is None:
        return
    clip = getattr(config, "grad_clip", _GRAD_CLIP)
    sequence_ranks = getattr(config, "ulysses_sequence_parallel_size", 1)
    has_qat = getattr(getattr(config, "qat", None), "enable", False)
    _refuse(type(config).__name__, (
        (clip not in (_GRAD_CLIP, optimizer_config.clip_grad), f"grad_clip={clip}",
         f"gradients are clipped at optim.clip_grad, which is {optimizer_config.clip_grad}: set that one"),
        (sequence_ranks not in (1, getattr(engine_config, "ulysses_sequence_parallel_size", 1)),
         f"ulysses_sequence_parallel_size={sequence_ranks}",
         "the engine's own is 1: set critic.fsdp.ulysses_sequence_parallel_size"),
        (getattr(config, "freeze_vision_tower", False), "freeze_vision_tower=True",
         "the tower would be trained: set it to False"),
        (has_qat and not getattr(engine_config.qat, "enable", False), "qat.enable=True",
         "set fsdp_config.qat (megatron.qat), the engine's own"),
        (getattr(config, "use_rollout_log_probs", False), "use_rollout_log_probs=True",
         "set algorithm.rollout_correction.bypass_mode=True"),
    ))  # fmt: skip


def _refuse(who: str, problems: Iterable[tuple[Any, str, str]]) -> None:
    """Raise if a setting was asked for; a problem is whether it was, the setting, and what to do."""
    found = [f"{setting} ({remedy})" for asked, setting, remedy in problems if asked]
    if found:
        raise UnsupportedModelSettingError(f"verl never reads under {who}: {'; '.join(found)}")
