# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``scaler``: fp16 loss scaling. Where torch does not expect the device, it disables it with a mere warning."""

import warnings
from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import require_close
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckWarned, require

_BLOCKS = "fp16 training: small gradients vanish"
_TINY = 1e-8


def _needs_fp64(bench: Bench) -> None:
    """The scaler computes its inverse scale in fp64; verl-hw refuses fp16 where there is none."""
    try:
        torch.ones(1, dtype=torch.float64, device=bench.device)
    except (RuntimeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise CheckWarned(
            f"no loss scaling: the scaler needs fp64, which the device refuses ({reason})",
            "loss scaling; verl-hw refuses fp16 training on this chip",
        ) from error


def _scaler(bench: Bench, **options: Any) -> Any:
    _needs_fp64(bench)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scaler = torch.amp.GradScaler(bench.type, **options)
    reason = "; ".join(str(warning.message) for warning in said)
    require(scaler.is_enabled(), f"the scaler is disabled: {reason or 'without a warning'}", "an enabled scaler")
    return scaler


def _loss(weight: Any, factor: float) -> Any:
    # As under mixed precision: the product is in fp16, and so is the gradient that comes back to it.
    return weight.half().sum().float() * factor


@check("scaler.enabled", blocks=_BLOCKS)
def enabled(bench: Bench) -> None:
    """The gradient scaler is enabled on the device and begins at 65536."""
    scale = _scaler(bench).get_scale()
    require(scale == 65536.0, f"the scale is {scale}", "65536.0")


@check("scaler.rescues", blocks=_BLOCKS)
def rescues(bench: Bench) -> str:
    """A gradient of 1e-8, which fp16 cannot hold, reaches the optimizer."""
    weight = torch.ones(4, device=bench.device).requires_grad_()
    _loss(weight, _TINY).backward()
    without = weight.grad.abs().max().item()
    weight.grad = None
    scaler = _scaler(bench)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler.scale(_loss(weight, _TINY)).backward()
    scaler.unscale_(optimizer)
    wanted = torch.full((4,), _TINY, dtype=torch.float64)
    require_close(weight.grad, wanted, torch.float16, "gradient after unscaling")
    return f"without the scaler it is {without:.1g}"


@check("scaler.steps", blocks=_BLOCKS)
def steps(bench: Bench) -> None:
    """A step with the scaler is the step without it."""
    results = []
    for scaled in (False, True):
        weight = torch.ones(4, device=bench.device).requires_grad_()
        optimizer = torch.optim.SGD([weight], lr=0.5)
        scaler = _scaler(bench) if scaled else None
        loss = (weight * torch.arange(4.0, device=bench.device)).sum()
        (loss if scaler is None else scaler.scale(loss)).backward()
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        results.append(weight.detach().cpu().double())
    require_close(results[1], results[0], torch.float32, "parameter after the step")


@check("scaler.skips", blocks="fp16 training: an overflow would destroy the weights")
def skips(bench: Bench) -> None:
    """A gradient that overflows skips the step and halves the scale."""
    scaler = _scaler(bench)
    weight = torch.ones(4, device=bench.device).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler.scale(_loss(weight, 1e4)).backward()
    scaler.step(optimizer)
    scaler.update()
    require(weight.detach().cpu().tolist() == [1.0] * 4, f"the weights became {weight.tolist()}", "no step")
    require(scaler.get_scale() == 32768.0, f"the scale is {scaler.get_scale()}", "32768.0")


@check("scaler.grows", blocks="fp16 training")
def grows(bench: Bench) -> None:
    """The scale grows after good steps, and survives a checkpoint."""
    scaler = _scaler(bench, growth_interval=2)
    weight = torch.ones(4, device=bench.device).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.0)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    require(scaler.get_scale() == 131072.0, f"the scale is {scaler.get_scale()}", "131072.0")
    other = _scaler(bench)
    other.load_state_dict(scaler.state_dict())
    require(other.get_scale() == 131072.0, f"the loaded scale is {other.get_scale()}", "131072.0")


@check("scaler.sharded", blocks="fp16 training with FSDP: ranks would disagree about a step", processes=2)
def sharded(bench: Bench) -> None:
    """An overflow on one rank skips the step on all."""
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    _needs_fp64(bench)
    scaler = ShardedGradScaler(device=bench.type)
    require(scaler.is_enabled(), "the sharded scaler is disabled", "an enabled scaler")
    weight = torch.ones(4, device=bench.device).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler.scale(_loss(weight, 1e4 if bench.rank == 0 else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
    require(weight.detach().cpu().tolist() == [1.0] * 4, f"the weights became {weight.tolist()}", "no step")
    require(scaler.get_scale() == 32768.0, f"the scale is {scaler.get_scale()}", "32768.0")
