# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What an engine asks for before verl builds anything: what cannot work is refused, the rest put right.

Arguments are verl's platform, ``HFModelConfig`` and ``FSDPEngineConfig``.
"""

import importlib.util
import logging
from collections.abc import Callable
from typing import Any

from verl_hw_core import load_report, upstream
from verl_hw_core.errors import UnsupportedModelSettingError, UnsupportedPrecisionError
from verl_hw_core.training import attention, experts, jagged, memory, padding

logger = logging.getLogger("verl_hw_core")


def prepare(platform: Any, model_config: Any, engine_config: Any) -> None:
    """Make verl's FSDP training right for the platform's device; a second call changes nothing more.

    Raises:
        UnsupportedModelSettingError: The configuration asks for something that would be wrong or fail later.
        UpstreamPatchError: As :func:`prepare_device`.
    """
    upstream.check("value-model-attention", "packing-attention", "grad-scaler-device")
    upstream.check("experts-implementation", "experts-weight-names")
    attention.require_sequence_parallelism(model_config, engine_config.ulysses_sequence_parallel_size)
    require_backend(model_config, platform.device_name)
    experts.require_no_replay(engine_config)
    require_quantization(engine_config, platform.device_name)
    attention.keep_transformers_attention()
    if model_config.enable_activation_offload:
        memory.offload_views_apart()
    upstream.apply(memory.ORDER_ROW)
    prepare_device(platform)


def prepare_device(platform: Any) -> None:
    """Mend what every training engine of verl uses, whatever builds the model; a second call changes nothing more.

    Raises:
        UpstreamPatchError: verl or another package lacks a name without which numbers would be wrong.
        StrictModeError: ``VERL_HW_STRICT=1`` is set, and a wheel had a problem while it was loaded.
    """
    padding.replace_log_probs()
    jagged.unwrap_constructors(platform.device_name)
    jagged.complete(platform.device_name)
    jagged.synchronize_host_copies(platform)
    memory.survive_memory_queries()
    memory.pageable_where_pinned_fails()
    care_for_checkpoints()
    upstream.require_applied()
    load_report.require_none_if_strict()


def require_backend(model_config: Any, device: str) -> None:
    """Check that the fused kernels which were asked for can run on a device type.

    verl's triton kernels assert CUDA tensors and are imported in the first forward; without a known backend verl leaves
    the model as it is and then looks for log-probs in its output. The torch backend needs no kernels.

    Raises:
        UnsupportedModelSettingError: They cannot.
    """
    if not model_config.use_fused_kernels:
        return
    backend = (model_config.fused_kernel_options or {}).get("impl_backend")
    if problem := _problem(backend, device):
        raise UnsupportedModelSettingError(
            f"use_fused_kernels=True with impl_backend={backend!r}: {problem}; set "
            "+model.fused_kernel_options.impl_backend=torch, which needs no kernels, or use_fused_kernels=False"
        )


def _problem(backend: str | None, device: str) -> str:
    if backend == "torch":
        return ""
    if backend not in ("triton", "liger"):
        return "verl knows the backends torch, triton and liger"
    if backend == "triton" and device != "cuda":
        return f"verl's triton kernels take CUDA tensors only, not {device}"
    module = "triton" if backend == "triton" else "liger_kernel"
    return "" if importlib.util.find_spec(module) else f"no module {module!r} is installed"


def require_quantization(engine_config: Any, device: str) -> None:
    """Check that quantization-aware training can run: verl rounds the weights with a triton kernel in each forward.

    Args:
        engine_config: verl's ``FSDPEngineConfig``.
        device: torch device type.

    Raises:
        UnsupportedModelSettingError: There is no triton for the device.
    """
    if not getattr(getattr(engine_config, "qat", None), "enable", False):
        return
    try:
        from triton.runtime import driver  # type: ignore[import-untyped]

        found = driver.active.get_active_torch_device().type
    except Exception as error:  # noqa: BLE001 - triton has no type of its own for "no driver"
        found, why = None, f": {error}"
    else:
        why = f", only for {found}"
    if found != device:
        raise UnsupportedModelSettingError(
            f"qat.enable=True: verl's kernels for it are triton's, which has no driver for {device} here{why}. Install "
            "the triton of the chip's vendor, or set it to False"
        )


def require_loss_scaling(display_name: str, device: str) -> None:
    """Check, before any model is built, that the chip can do what loss scaling needs.

    Raises:
        UnsupportedPrecisionError: The chip has no float64, in which torch inverts the scale.
    """
    import torch

    try:
        torch.ones(1, device=device).double().reciprocal().float()
    except Exception as error:  # a chip without float64 refuses with an exception of its own
        raise UnsupportedPrecisionError(
            f"fp16 training needs float64 on the device, in which torch inverts the loss scale, and {display_name} "
            f"({device}) refuses it: {error}. Train in bfloat16 (engine.mixed_precision.param_dtype=bf16)"
        ) from error


def grad_scaler(device: str) -> Any:
    """Return verl's loss scaler for ``device``.

    verl builds its scaler for CUDA; on any other device torch then switches it off with one warning, and small
    gradients are lost (ledger row ``grad-scaler-device``).
    """
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    return ShardedGradScaler(device=device, growth_interval=400)  # verl's own, workers/engine/fsdp/transformer_impl.py


def care_for_checkpoints() -> None:
    """Have shards gathered on the host, and lost random states named; a second call changes nothing."""
    _gather_on_the_host()
    upstream.apply("checkpoint-rng")


@upstream.applies("fsdp1-checkpoint-offload")
def _gather_on_the_host() -> None:
    from verl.utils.checkpoint import fsdp_checkpoint_manager

    upstream.replace("fsdp1-checkpoint-offload", fsdp_checkpoint_manager, "is_cuda_available", True)


@upstream.replaces("checkpoint-rng", "verl.utils.checkpoint.checkpoint_manager:BaseCheckpointManager.load_rng_state")
def load_rng_state(load: Callable[[dict[str, Any]], None], rng_state: dict[str, Any]) -> None:
    """Restore the random states that fit this machine, and say which one does not.

    verl saved those of ``cpu``, ``numpy``, ``random`` and of the device that it ran on.
    """
    from verl.plugin.platform import get_platform

    platform = get_platform()
    own = platform.device_name
    load({name: state for name, state in rng_state.items() if name != own})
    if own not in rng_state:
        others = sorted(set(rng_state) - {"cpu", "numpy", "random"})
        _say(own, f"it was saved on {', '.join(others) or 'a machine without accelerator'}")
        return
    try:
        platform.device_module.set_rng_state(rng_state[own])
    except Exception as error:  # noqa: BLE001 - a state of another layout may be refused with any exception
        _say(own, str(error))


def _say(device: str, why: str) -> None:
    logger.warning(
        "The checkpoint's random state does not fit device %s (%s): training goes on with the current one, so dropout "
        "and sampling will differ from an uninterrupted run",
        *(device, why),
    )
