# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``optimizer``: AdamW, the optimizer of verl's recipes, and gradient clipping."""

from collections.abc import Callable
from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import require_close
from verl_hw_tools.conformance.registry import Check, add, check
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckWarned, require

_STEPS = 3
_SHAPES = ((7, 5), (5,), (3, 4, 2))


def _parameters(bench: Bench, device: Any, dtype: Any) -> list[Any]:
    generator = bench.generator(1)
    made = [torch.randn(*shape, generator=generator) for shape in _SHAPES]
    return [tensor.to(dtype).to(device).requires_grad_() for tensor in made]


def _step(bench: Bench, parameters: list[Any], optimizer: Any) -> None:
    generator = bench.generator(2)
    for _ in range(_STEPS):
        for parameter in parameters:
            gradient = torch.randn(*parameter.shape, generator=generator)
            parameter.grad = gradient.to(parameter.dtype).to(parameter.device)
        optimizer.step()
        optimizer.zero_grad()


def _after_steps(bench: Bench, device: Any, dtype: Any, **options: bool) -> list[Any]:
    parameters = _parameters(bench, device, dtype)
    _step(bench, parameters, torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.1, **options))
    return parameters


def _adamw(options: dict[str, bool], optional: bool) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        wanted = _after_steps(bench, "cpu", torch.float64, foreach=False)
        try:
            found = _after_steps(bench, bench.device, torch.float32, **options)
        except (RuntimeError, NotImplementedError) as error:
            if not optional:
                raise
            raise CheckWarned(f"{type(error).__name__}: {error}".partition("\n")[0], "a step") from error
        for shape, got, reference in zip(_SHAPES, found, wanted, strict=True):
            require_close(got, reference, torch.float32, f"parameter {shape} after {_STEPS} steps")

    return run


_KINDS: tuple[tuple[str, dict[str, bool], str, bool], ...] = (
    ("default", {}, "every training", False),
    ("for_loop", {"foreach": False}, "training with little memory", False),
    ("foreach", {"foreach": True}, "every training (torch's default where the device supports it)", False),
    ("fused", {"fused": True}, "optimizers configured as fused; leave fused out", True),
)
for _name, _options, _blocks, _optional in _KINDS:
    add(
        Check(
            id=f"optimizer.adamw_{_name}",
            title=f"AdamW ({_name}) steps as on the CPU",
            blocks=_blocks,
            run=_adamw(_options, _optional),
        )
    )


@check("optimizer.clip_grad_norm", blocks="every training: gradients are clipped")
def clip_grad_norm(bench: Bench) -> None:
    """clip_grad_norm_ gives the norm and scales the gradients."""
    outcomes = []
    for device, dtype in (("cpu", torch.float64), (bench.device, torch.float32)):
        parameters = _parameters(bench, device, dtype)
        generator = bench.generator(3)
        for parameter in parameters:
            parameter.grad = torch.randn(*parameter.shape, generator=generator).to(dtype).to(device)
        norm = torch.nn.utils.clip_grad_norm_(parameters, 0.5)
        outcomes.append([norm, *(parameter.grad for parameter in parameters)])
    names = ["norm", *(f"gradient {shape}" for shape in _SHAPES)]
    for name, wanted, found in zip(names, *outcomes, strict=True):
        require_close(found, wanted, torch.float32, name)


@check("optimizer.state_moves", blocks="offload of the optimizer")
def state_moves(bench: Bench) -> None:
    """The optimizer's state goes to the host and back, and the next step is the same."""
    results = []
    for moves in (False, True):
        parameters = _parameters(bench, bench.device, torch.float32)
        optimizer = torch.optim.AdamW(parameters, lr=1e-2)
        _step(bench, parameters, optimizer)
        for device in ("cpu", bench.device) if moves else ():
            for state in optimizer.state.values():
                for key, value in state.items():
                    state[key] = value.to(device) if torch.is_tensor(value) and value.dim() else value
        _step(bench, parameters, optimizer)
        results.append(parameters)
    for plain, moved in zip(*results, strict=True):
        if not torch.equal(plain.detach().cpu(), moved.detach().cpu()):
            raise CheckFailed("the parameters differ after the state was moved", "the same parameters")


@check("optimizer.foreach", blocks="gradient norms, offload, FSDP2")
def foreach(bench: Bench) -> None:
    """The _foreach operators work on lists of tensors."""
    tensors = [torch.full((n,), float(n), device=bench.device) for n in (1, 3, 64)]
    norms = torch._foreach_norm(tensors)
    for tensor, norm in zip(tensors, norms, strict=True):
        require_close(norm, torch.tensor(tensor.numel() ** 1.5, dtype=torch.float64), torch.float32, "_foreach_norm")
    torch._foreach_mul_(tensors, 0.5)
    torch._foreach_add_(tensors, tensors)
    found = [tensor[0].item() for tensor in tensors]
    require(found == [1.0, 3.0, 64.0], f"after halving and doubling: {found}", "[1.0, 3.0, 64.0]")
