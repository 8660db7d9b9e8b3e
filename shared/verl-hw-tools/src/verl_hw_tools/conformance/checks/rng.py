# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``rng``: seeds, generator states and their independence. Resuming a run exactly depends on these."""

from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import require_equal
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckSkipped, require

_SEED = "reproducible runs, full determinism"
_STATE = "exact resume from a checkpoint"


def _draw(device: Any, size: int = 64) -> Any:
    return torch.randn(size, device=device).cpu()


@check("rng.manual_seed", blocks=_SEED)
def manual_seed(bench: Bench) -> None:
    """The same seed gives the same numbers, another seed others."""
    draws = []
    for seed in (1, 1, 2):
        bench.module.manual_seed(seed)
        draws.append(_draw(bench.device))
    require_equal(draws[1], draws[0], "the numbers after the same seed")
    require(not torch.equal(draws[2], draws[0]), "another seed gave the same numbers", "others")


@check("rng.torch_manual_seed", blocks=_SEED)
def torch_manual_seed(bench: Bench) -> None:
    """torch.manual_seed seeds the device too."""
    draws = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        draws.append(_draw(bench.device))
    require_equal(draws[1], draws[0], "the numbers after torch.manual_seed")
    require(not torch.equal(draws[2], draws[0]), "another seed gave the same numbers", "others")


@check("rng.manual_seed_all", blocks=_SEED)
def manual_seed_all(bench: Bench) -> None:
    """manual_seed_all seeds every device."""
    draws = []
    for _ in range(2):
        bench.module.manual_seed_all(5)
        draws.append([_draw(bench.at(ordinal)) for ordinal in range(bench.device_count)])
    for ordinal, (first, second) in enumerate(zip(*draws, strict=True)):
        require_equal(second, first, f"the numbers of device {ordinal}")


@check("rng.progress", blocks="sampling, dropout")
def progress(bench: Bench) -> None:
    """Numbers drawn one after the other differ."""
    bench.module.manual_seed(1)
    require(not torch.equal(_draw(bench.device), _draw(bench.device)), "the same numbers twice", "others")


@check("rng.state", blocks=_STATE)
def state(bench: Bench) -> None:
    """set_rng_state brings the generator back to where get_rng_state was."""
    bench.module.manual_seed(6)
    _draw(bench.device)
    saved = bench.module.get_rng_state()
    first = _draw(bench.device)
    bench.module.manual_seed(7)
    bench.module.set_rng_state(saved)
    require_equal(_draw(bench.device), first, "the numbers after set_rng_state")


@check("rng.state_is_bytes", blocks=f"{_STATE}: torch.save of the state")
def state_is_bytes(bench: Bench) -> None:
    """The state is a byte tensor of the CPU, which survives a file."""
    bench.module.manual_seed(8)
    saved = bench.module.get_rng_state()
    require(saved.dtype == torch.uint8, f"the state is {saved.dtype}", "torch.uint8")
    require(saved.device.type == "cpu", f"the state is on {saved.device}", "cpu")
    path = bench.folder / "rng-state.pt"
    torch.save(saved, path)
    first = _draw(bench.device)
    bench.module.set_rng_state(torch.load(path, weights_only=True))
    require_equal(_draw(bench.device), first, "the numbers after a state from a file")


@check("rng.state_kinds", blocks=_STATE)
def state_kinds(bench: Bench) -> None:
    """The state covers every kind of random operator."""
    bench.module.manual_seed(9)
    torch.rand(3, device=bench.device)
    saved = bench.module.get_rng_state()
    draws = []
    for _ in range(2):
        bench.module.set_rng_state(saved)
        draws.append(_all_kinds(bench.device))
    for name, first in draws[0].items():
        require_equal(draws[1][name], first, f"{name} after set_rng_state")


def _all_kinds(device: Any) -> dict[str, Any]:
    ones = torch.ones(64, device=device)
    return {
        "rand": torch.rand(64, device=device),
        "randn": torch.randn(64, device=device),
        "randint": torch.randint(0, 1000, (64,), device=device),
        "randperm": torch.randperm(64, device=device),
        "bernoulli": torch.bernoulli(ones / 2),
        "dropout": torch.nn.functional.dropout(ones, 0.5),
        "multinomial": torch.multinomial(ones, 64, replacement=True),
        "normal_": torch.empty(64, device=device).normal_(),
        "uniform_": torch.empty(64, device=device).uniform_(),
        "exponential_": torch.empty(64, device=device).exponential_(),
    }


@check("rng.state_of_each_device", blocks=f"{_STATE} with more than one device")
def state_of_each_device(bench: Bench) -> None:
    """Each device has a state of its own."""
    if bench.device_count < 2:
        raise CheckSkipped("needs two devices; one is visible")
    bench.module.manual_seed_all(10)
    saved = [bench.module.get_rng_state(ordinal) for ordinal in (0, 1)]
    first = _draw(bench.at(0))
    require_equal(bench.module.get_rng_state(1), saved[1], "the state of device 1 after drawing on device 0")
    _draw(bench.at(1))
    bench.module.set_rng_state(saved[0], 0)
    require_equal(_draw(bench.at(0)), first, "the numbers of device 0 after setting its state")
    require(
        not torch.equal(bench.module.get_rng_state(1), saved[1]),
        "setting the state of device 0 set back device 1",
        "device 1 undisturbed",
    )


@check("rng.cpu_is_apart", blocks="data order that does not depend on the device")
def cpu_is_apart(bench: Bench) -> None:
    """Drawing on the device does not move the CPU's generator, nor the other way round."""
    torch.manual_seed(11)
    host = torch.get_rng_state()
    _draw(bench.device)
    require_equal(torch.get_rng_state(), host, "the CPU's state after drawing on the device")
    device = bench.module.get_rng_state()
    torch.randn(9)
    require_equal(bench.module.get_rng_state(), device, "the device's state after drawing on the CPU")


@check("rng.fork", blocks="gradient checkpointing, initialisation of models")
def fork(bench: Bench) -> None:
    """torch.random.fork_rng restores the device's state."""
    bench.module.manual_seed(12)
    before = bench.module.get_rng_state()
    with torch.random.fork_rng(devices=[bench.device.index], device_type=bench.type):
        _draw(bench.device)
    require_equal(bench.module.get_rng_state(), before, "the state after fork_rng")


@check("rng.generator", blocks="sampling with a generator of its own")
def generator(bench: Bench) -> None:
    """A generator of its own follows its seed and leaves the default one alone."""
    bench.module.manual_seed(13)
    before = bench.module.get_rng_state()
    draws = []
    for _ in range(2):
        own = torch.Generator(device=bench.device)
        own.manual_seed(14)
        draws.append(torch.randn(64, device=bench.device, generator=own).cpu())
    require_equal(draws[1], draws[0], "the numbers of the same seed")
    require_equal(bench.module.get_rng_state(), before, "the default generator's state")


@check("rng.distribution", blocks="initialisation, sampling, dropout")
def distribution(bench: Bench) -> None:
    """Numbers are distributed as asked for."""
    bench.module.manual_seed(15)
    size = 40_000
    drawn = {
        "mean of randn": (torch.randn(size, device=bench.device).cpu().mean().item(), 0.0, 0.03),
        "variance of randn": (torch.randn(size, device=bench.device).cpu().var().item(), 1.0, 0.05),
        "mean of rand": (torch.rand(size, device=bench.device).cpu().mean().item(), 0.5, 0.01),
        "kept by dropout": (
            torch.nn.functional.dropout(torch.ones(size, device=bench.device), 0.25).cpu().ne(0).float().mean().item(),
            0.75,
            0.02,
        ),
    }
    for what, (found, wanted, allowed) in drawn.items():
        require(abs(found - wanted) <= allowed, f"{what} is {found:.4f}", f"{wanted} within {allowed}")
    uniform = torch.rand(size, device=bench.device).cpu()
    require(bool(((uniform >= 0) & (uniform < 1)).all()), f"rand gave {uniform.min()} to {uniform.max()}", "[0, 1)")
