# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Faults and limits, switched on at run time."""

import subprocess
import sys

import torch
from checks import raises

from verl_hw_sim import limits
from verl_hw_sim.errors import SettingsError
from verl_hw_sim.simulation import active_simulation

D = active_simulation().profile.device_name
MODULE = getattr(torch, D)
MIB = 1 << 20


def check_no_fp64():
    torch.ones(1, dtype=torch.float64, device=D)
    with limits.override(no_fp64=True):
        for make in (
            lambda: torch.ones(1, dtype=torch.float64, device=D),
            lambda: torch.ones(1, dtype=torch.float64).to(D),
            lambda: torch.ones(1, device=D).double(),
            lambda: torch.ones(1, device=D) * torch.ones(1, device=D).to(torch.float64),
            lambda: torch.arange(3.0, dtype=torch.float64, device=D),
        ):
            raises(RuntimeError, make, "fp64", "no_fp64")
        assert torch.ones(1, device=D).sum().item() == 1
        assert not MODULE.get_device_properties(0).has_fp64
    torch.ones(1, dtype=torch.float64, device=D)


def check_memory():
    torch.ones(1, device=D)
    before = MODULE.memory_allocated()
    with limits.override(memory=4):
        assert MODULE.mem_get_info()[1] == 4 * MIB
        kept = torch.empty(3 * MIB, dtype=torch.uint8, device=D)
        raises(torch.OutOfMemoryError, lambda: torch.empty(2 * MIB, dtype=torch.uint8, device=D), "out of memory")
        small = torch.ones(MIB // 2, dtype=torch.uint8, device=D)
        raises(torch.OutOfMemoryError, lambda: small.float(), "out of memory")  # the result of an operator counts
        raises(torch.OutOfMemoryError, lambda: torch.ones(3 * MIB, dtype=torch.uint8).to(D), "out of memory")
        raises(torch.OutOfMemoryError, lambda: torch.add(small, small, out=torch.empty(0, device=D)), "out of memory")
        torch.empty(3 * MIB, dtype=torch.uint8, device=f"{D}:1")  # each device has its own
        del kept
        torch.empty(3 * MIB, dtype=torch.uint8, device=D)
        small = None
    assert MODULE.memory_allocated() == before
    assert MODULE.memory_stats()["num_ooms"] >= 4


def check_memory_without_a_limit():
    torch.ones(1, device=D)
    before, total = MODULE.memory_allocated(), MODULE.mem_get_info()[1]
    raises(torch.OutOfMemoryError, lambda: torch.empty(2 * total, dtype=torch.uint8, device=D), "out of memory")
    with limits.override(memory=2**30):  # more than any host has
        raises(torch.OutOfMemoryError, lambda: torch.empty(2**49, dtype=torch.uint8, device=D), "out of memory")
    assert MODULE.memory_allocated() == before
    assert torch.ones(8, device=D).sum().item() == 8


def check_late_host_copies():
    x, numbers = torch.arange(6.0, device=D), torch.arange(6, device=D)
    waits = {
        "device": MODULE.synchronize,
        "stream": lambda: MODULE.current_stream().synchronize(),
        "event": lambda: MODULE.current_stream().record_event().synchronize(),
        "copy": lambda: x.cpu(),
    }
    with limits.override(late_host_copies=True):
        for name, wait in waits.items():
            fresh = x.to("cpu", non_blocking=True)
            strided = torch.zeros(6, 2).t()[0]
            strided.copy_(x, non_blocking=True)
            whole = numbers.to("cpu", non_blocking=True)
            back = fresh.to(D, non_blocking=True)
            x.add_(0)  # work of the device waits for nothing
            assert fresh.isnan().all(), name
            assert strided.isnan().all(), name
            assert (whole == -1).all(), name
            wait()
            assert fresh.tolist() == strided.tolist() == [0, 1, 2, 3, 4, 5], name
            assert whole.tolist() == [0, 1, 2, 3, 4, 5], name
            assert back.isnan().all(), name
        assert x.to("cpu").tolist() == [0, 1, 2, 3, 4, 5]
        left = x.to("cpu", non_blocking=True)
    assert left.tolist() == [0, 1, 2, 3, 4, 5]  # the limit is lifted
    assert x.to("cpu", non_blocking=True).tolist() == [0, 1, 2, 3, 4, 5]


def check_deny():
    x = torch.ones(4, device=D, requires_grad=True)
    for name in ("mul", "aten::mul", "aten::mul.Tensor"):
        with limits.override(deny=(name,)):
            raises(NotImplementedError, lambda: x.detach() * 2, "aten::mul.Tensor", "denies")
            assert (x.detach().cpu() * 2).sum() == 8
    assert (x.detach() * 2).sum() == 8
    with limits.override(deny=("aten::topk.values",)):  # one overload, that of out=
        torch.topk(x.detach(), 2)
    y = x.detach()[None]
    # Operators with a kernel of the simulator's own, and one that torch composes of others.
    for name, call in (
        ("aten::as_strided", lambda: y.as_strided((2,), (1,))),
        ("aten::linear", lambda: torch.nn.functional.linear(y, y)),
        ("aten::scaled_dot_product_attention", lambda: torch.nn.functional.scaled_dot_product_attention(y, y, y)),
    ):
        with limits.override(deny=(name,)):
            raises(NotImplementedError, call, name, "denies")
        call()
    with limits.override(deny=("aten::mul",)):
        raises(NotImplementedError, lambda: (x.sin() * 1.5).sum().backward(), "aten::mul")
    with limits.override(deny=("aten::cos",)):  # an error in autograd's thread reaches the caller
        raises(NotImplementedError, lambda: x.sin().sum().backward(), "aten::cos")
    x.sin().sum().backward()
    torch.nn.functional.linear(x, x[None])


def check_missing_and_raising():
    with limits.override(missing=("empty_cache", "memory.memory_allocated"), raising=("synchronize",)):
        assert not hasattr(MODULE, "empty_cache")
        assert not hasattr(MODULE.memory, "memory_allocated")
        raises(RuntimeError, MODULE.synchronize, "simulated driver", "raising")
    MODULE.empty_cache()
    MODULE.synchronize()
    assert MODULE.memory.memory_allocated() == MODULE.memory_allocated()


def check_wrong_names_are_refused_and_change_nothing():
    before = limits.current()
    for changes, words in (
        ({"deny": ("aten::topq",)}, ("no 'aten::topq'",)),
        ({"missing": ("empty_cash",)}, ("empty_cash", "Did you mean 'empty_cache'")),
        ({"raising": ("nothing.here",)}, ("nothing.here",)),
        ({"hang": ("all_reduse",)}, ("Did you mean 'all_reduce'",)),
        ({"missing": ("empty_cache",), "raising": ("synchronise",)}, ("Did you mean 'synchronize'",)),
    ):
        raises(SettingsError, lambda changes=changes: limits.override(**changes).__enter__(), *words)
        assert limits.current() == before
        assert hasattr(MODULE, "empty_cache")


def check_limits_of_the_environment():
    program = (
        f"import torch; from verl_hw_sim import limits; print(limits.current().text); print(hasattr(torch.{D}, 'seed'))"
    )
    wanted = "avg_rejected,no_fp64,memory=64,deny=aten::topk,missing=seed"
    import os

    child = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "VERL_HW_SIM_LIMITS": wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.split() == [wanted, "False"]
