# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``streams``: streams and events, and activation offload, which is what verl uses them for."""

import time
from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import require_equal
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckSkipped, CheckWarned, require

_OFFLOAD = "activation offload"
_ROUND_TRIP = "offload of parameters, optimizer and activations, which the engines wait for instead"
_SIZES = (1, 1000, 1 << 16, 1 << 22)


@check("streams.current_stream", blocks=f"{_OFFLOAD}, fused cross-entropy")
def current_stream(bench: Bench) -> None:
    """There is a current stream, and stream() changes it for a block."""
    before = bench.module.current_stream()
    side = bench.module.Stream()
    with bench.module.stream(side):
        inside = bench.module.current_stream()
    require(inside == side, f"inside the block the stream is {inside}", f"{side}")
    after = bench.module.current_stream()
    require(after == before, f"after the block the stream is {after}", f"{before}")


@check("streams.wait_stream", blocks=_OFFLOAD)
def wait_stream(bench: Bench) -> None:
    """Work of a side stream is seen after wait_stream, and the other way round."""
    main, side = bench.module.current_stream(), bench.module.Stream()
    x = torch.ones(256, 256, device=bench.device)
    for _ in range(4):
        x = x @ torch.ones(256, 256, device=bench.device) / 256
    side.wait_stream(main)
    with bench.module.stream(side):
        y = x * 3
    main.wait_stream(side)
    require_equal((y + 1).cpu(), torch.full((256, 256), 4.0), "the result across streams")


@check("streams.synchronize", blocks="copies to the host, timings")
def synchronize(bench: Bench) -> None:
    """synchronize waits for the device, with and without an ordinal."""
    x = torch.ones(512, 512, device=bench.device)
    for _ in range(8):
        x = x @ torch.ones(512, 512, device=bench.device) / 512
    bench.module.synchronize()
    bench.module.synchronize(bench.device.index)
    bench.module.current_stream().synchronize()
    require(x.sum().item() == 512 * 512, f"the sum is {x.sum().item()}", str(512 * 512))


@check("streams.event", blocks=f"{_OFFLOAD}, fused cross-entropy")
def event(bench: Bench) -> None:
    """An event is recorded, waited for and then done."""
    found = bench.module.Event()
    side = bench.module.Stream()
    x = torch.ones(64, device=bench.device) * 2
    found.record()
    side.wait_event(found)
    with bench.module.stream(side):
        y = x + 1
    done = bench.module.Event()
    done.record(side)
    done.synchronize()
    require(bool(done.query()), "query() is false after synchronize()", "true")
    require_equal(y.cpu(), torch.full((64,), 3.0), "the result behind an event")


@check("streams.event_time", blocks="timings of the profiler")
def event_time(bench: Bench) -> None:
    """Events measure time."""
    start, end = (bench.module.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.ones(64, device=bench.device)
    time.sleep(0.02)
    end.record()
    bench.module.synchronize()
    found = start.elapsed_time(end)
    require(0 <= found < 60_000, f"{found} ms", "a time in ms")


@check("streams.record_stream", blocks=f"{_OFFLOAD}, FSDP: memory is reused too early")
def record_stream(bench: Bench) -> None:
    """A tensor can be marked as used by a stream."""
    side = bench.module.Stream()
    x = torch.ones(64, device=bench.device)
    x.record_stream(side)


@check("streams.activation_offload", blocks=_OFFLOAD)
def activation_offload(bench: Bench) -> None:
    """Activations that go to the host and back on side streams give the same gradients."""
    layers = [torch.randn(16, 16, generator=bench.generator(n)).to(bench.device).requires_grad_() for n in range(4)]
    plain = _gradients(layers, bench)
    to_host, to_device = bench.module.Stream(), bench.module.Stream()

    def pack(tensor: Any) -> Any:
        to_host.wait_stream(bench.module.current_stream())
        with bench.module.stream(to_host):
            host = tensor.detach().to("cpu", non_blocking=True)
        tensor.record_stream(to_host)
        return host, tensor.device

    def unpack(packed: Any) -> Any:
        host, device = packed
        to_host.synchronize()
        with bench.module.stream(to_device):
            tensor = host.to(device, non_blocking=True)
        bench.module.current_stream().wait_stream(to_device)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        offloaded = _gradients(layers, bench)
    for number, (found, wanted) in enumerate(zip(offloaded, plain, strict=True)):
        require_equal(found, wanted, f"gradient of layer {number} with activation offload")


@check("streams.round_trip_pageable", blocks=_ROUND_TRIP)
def round_trip_pageable(bench: Bench) -> None:
    """Copies to pageable host memory and back, on one stream and without a wait, keep their order."""
    _round_trips(bench, pinned=False)


@check("streams.round_trip_pinned", blocks=_ROUND_TRIP)
def round_trip_pinned(bench: Bench) -> None:
    """Copies to pinned host memory and back, on one stream and without a wait, keep their order."""
    try:
        torch.empty(1, pin_memory=True)
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        raise CheckSkipped("no pinned memory; see copies.pinned") from error
    _round_trips(bench, pinned=True)


def _round_trips(bench: Bench, *, pinned: bool) -> None:
    ways = {"copy_": lambda host, value: host.copy_(value, non_blocking=True)}
    if not pinned:  # which memory torch takes is its own affair
        ways["to('cpu')"] = lambda _, value: value.to("cpu", non_blocking=True)
    for size in _SIZES:
        for name, to_host in ways.items():
            expected = torch.arange(size, dtype=torch.float32) + 1
            source = torch.arange(size, dtype=torch.float32).to(bench.device)
            host = torch.full((size,), -1.0, pin_memory=pinned)
            bench.module.synchronize()
            value = source + _busy(bench)
            host = to_host(host, value)  # type: ignore[no-untyped-call]
            value.fill_(-2)  # what comes later in the stream must not be in the copy
            back = host.to(bench.device, non_blocking=True)
            try:
                require_equal(back, expected, f"{size} values, {name} and back without a wait")
            except CheckFailed as wrong:
                raise CheckWarned(wrong.observed, wrong.expected) from wrong


def _busy(bench: Bench) -> Any:
    """A one that is there when the stream has done work for a while."""
    ones = torch.ones(512, 512, device=bench.device)
    for _ in range(8):
        ones = ones @ ones / 512
    return ones[0, 0]


def _gradients(layers: list[Any], bench: Bench) -> Any:
    x = torch.ones(8, 16, device=bench.device)
    for layer in layers:
        x = torch.nn.functional.silu(x @ layer)
    return torch.autograd.grad(x.square().mean(), layers)
