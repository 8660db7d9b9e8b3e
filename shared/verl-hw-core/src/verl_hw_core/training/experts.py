# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How a mixture of experts is computed: as the device can, and what the user chose is obeyed.

transformers 5 computes all experts of a layer at once (``grouped_mm``) unless told otherwise, and tells a CPU from the
rest by the device's name. Whether a chip can is tried out here with transformers' own function on a small layer, result
and gradients compared with the same on the CPU, expert by expert (``eager``).
"""

import logging
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

from verl_hw_core import upstream
from verl_hw_core.errors import UnsupportedModelSettingError

logger = logging.getLogger("verl_hw_core")

ROW = "experts-implementation"
"""Ledger row of the names that are read here."""

SETTING = "experts_implementation"
FALLBACK = "eager"
"""Expert by expert with plain matrix products: slower, and right wherever a dense model is."""

_TRIED = ("grouped_mm", "batched_mm")  # the others bring kernels of their own, which say what they need
_WHERE = f"+actor_rollout_ref.model.override_config.{SETTING}"
_TOLERANCE = {torch.float32: 1e-3, torch.float16: 1e-2}
_EXPERTS, _TOKENS, _WIDTH = 4, 24, 32


def choose(model: Any, device: torch.device, dtype: torch.dtype) -> str | None:
    """Set the experts' implementation of a model, before it is wrapped.

    What the user set is obeyed: verl writes ``override_config`` to the configuration as plain attributes, which
    transformers reads under another name. Otherwise transformers' default stays where the device can compute it.

    Args:
        model: A model of transformers, on any device.
        device: Where it is to compute.
        dtype: What it is to compute in.

    Returns:
        The implementation that was set, or None where transformers' own choice stays.

    Raises:
        UnsupportedModelSettingError: The device cannot do what was asked for, or transformers does not know it.
    """
    model = getattr(model, "pretrained_model", model)  # trl's value head is a wrapper
    # transformers 4 computes experts one after the other.
    if not hasattr(model, "set_experts_implementation") or not any(map(_holds_experts, model.modules())):
        return None
    if not upstream.check(ROW):
        return None
    wanted = requested(model.config)
    for name in sorted(set(wanted.values()) & set(_TRIED)):
        if problem := fault(name, device, dtype):
            raise UnsupportedModelSettingError(
                f"{SETTING}={name}: {device.type} cannot compute experts so in {dtype}: {problem}. Set "
                f"{_WHERE}={FALLBACK}, or leave the setting out: then it is chosen by what the device can"
            )
    if not wanted:
        default = model.config._experts_implementation
        problem = fault(default, device, dtype) if default in _TRIED else ""
        if not problem:
            return None
        logger.warning(
            "experts are computed one by one (experts_implementation=eager), since %s cannot do transformers' "
            "%s in %s: %s",
            *(device.type, default, dtype, problem),
        )
        wanted = {"": FALLBACK}
    try:
        model.set_experts_implementation(wanted[""] if set(wanted) == {""} else wanted)
    except ValueError as error:
        raise UnsupportedModelSettingError(f"{_WHERE}: {error}") from error
    return str(wanted.get("", model.config._experts_implementation))


def require_no_replay(engine_config: Any) -> None:
    """Refuse router replay, which verl's ``FSDPEngineConfig`` inherits as a setting and its engines pass over.

    Raises:
        UnsupportedModelSettingError: It is asked for.
    """
    mode = getattr(getattr(engine_config, "router_replay", None), "mode", "disabled")
    if mode != "disabled":
        raise UnsupportedModelSettingError(
            f"router_replay.mode={mode}: verl's FSDP engines neither record nor replay the routes of experts, so that "
            "the setting would do nothing. Train with actor_rollout_ref.actor.strategy=megatron and "
            f"actor_rollout_ref.actor.megatron.router_replay.mode={mode}, or set router_replay.mode=disabled"
        )


def requested(config: Any) -> dict[str, str]:
    """Return what the user set, by sub-configuration (``""`` is the model's own), in verl's form or transformers'."""
    parts = {"": config, **{name: getattr(config, name, None) for name in getattr(config, "sub_configs", {})}}
    found = {name: vars(part).get(SETTING) for name, part in parts.items() if part is not None}
    return {name: value for name, value in found.items() if value is not None}


def _holds_experts(module: Any) -> bool:
    """Whether transformers dispatches the module's forward pass; its decorator leaves these attributes."""
    return hasattr(module, "is_transposed") and hasattr(module, "has_gate")


@cache
def fault(implementation: str, device: torch.device, dtype: torch.dtype) -> str:
    """Try ``grouped_mm`` or ``batched_mm`` out on a small layer of this dtype, forward and backward.

    Returns:
        What is wrong with it in one line, or an empty string.
    """
    generator = torch.Generator().manual_seed(3)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    floats = (
        random(_TOKENS, _WIDTH),
        random(_EXPERTS, 2 * _WIDTH, _WIDTH) / _WIDTH**0.5,
        random(_EXPERTS, _WIDTH, _WIDTH) / _WIDTH**0.5,
        random(_TOKENS, 2),
    )
    chosen = torch.stack([torch.randperm(_EXPERTS - 1, generator=generator)[:2] for _ in range(_TOKENS)])  # one idle
    wanted = _outcome(FALLBACK, chosen, [one.float() for one in floats])
    try:
        found = _outcome(implementation, chosen.to(device), [one.to(device) for one in floats])
        found = [one.float().cpu() for one in found]
    except Exception as error:  # noqa: BLE001 - a chip refuses with any exception
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    worst = max(((mine - right).norm() / right.norm()).item() for mine, right in zip(found, wanted, strict=True))
    limit = _TOLERANCE.get(dtype, 5e-2)
    return "" if worst <= limit else f"result or gradient is off by {worst:.1g} on a small layer (limit {limit:g})"


def _outcome(name: str, chosen: torch.Tensor, floats: list[torch.Tensor]) -> list[torch.Tensor]:
    """Result, and the gradients of tokens, weights and shares."""
    tokens, gate_up, down, shares = leaves = [one.detach().requires_grad_() for one in floats]
    result = _layer(gate_up, down, name)(tokens, chosen, shares)
    return [result.detach(), *torch.autograd.grad(result.float().square().sum(), leaves)]


def _layer(gate_up: torch.Tensor, down: torch.Tensor, implementation: str) -> Any:
    from transformers.integrations.moe import use_experts_implementation

    @use_experts_implementation
    class Experts(torch.nn.Module):  # type: ignore[misc]
        """As transformers writes them."""

        def __init__(self, _config: Any) -> None:
            super().__init__()
            self.num_experts, self.act_fn = _EXPERTS, torch.nn.functional.silu
            self.gate_up_proj, self.down_proj = gate_up, down

        def forward(self, tokens: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
            result = torch.zeros_like(tokens)
            for expert in range(self.num_experts):
                rows, slot = torch.where(chosen == expert)
                gate, up = torch.nn.functional.linear(tokens[rows], self.gate_up_proj[expert]).chunk(2, dim=-1)
                out = torch.nn.functional.linear(self.act_fn(gate) * up, self.down_proj[expert])
                result = result.index_add(0, rows, out * shares[rows, slot, None])
            return result

    return Experts(SimpleNamespace(_experts_implementation=implementation))
