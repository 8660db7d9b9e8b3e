#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How fast the weight sync is, as a ratio to a raw broadcast of the same bytes in buckets of the same size.

Processes on this machine send a model of 300 bf16 tensors, one of them larger than a bucket, over gloo. Each repetition
goes through all ways, in a new order, so that a machine that is busy for a while slows them alike:

- raw: `broadcast` of the model's bytes from where they lie, bucket by bucket, nothing else
- verl-hw: our checkpoint engine, packing, metadata and views of the tensors included
- verl's algorithm: the steps of verl's NCCL engine (chunks packed by split_weight_chunks, pickled metadata over ZeroMQ
  PUB/SUB, one executor thread), here over the same gloo group, since its own transport needs CUDA

    python3 scripts/dev.py run python scripts/bench_weight_sync.py --min-ratio 0.9
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

TENSORS = 300
ADDRESS = "127.0.0.1"
WAYS = ("raw", "verl-hw", "verl's algorithm")
STEP_SECONDS = 600


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when a ratio is below ``--min-ratio``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=2.0, help="size of the model (default: 2)")
    parser.add_argument("--bucket-mib", type=int, default=128, help="size of a bucket (default: 128)")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4], help="numbers of processes (default: 2 4)")
    parser.add_argument("--repeats", type=int, default=15, help="measured repetitions of each way (default: 15)")
    parser.add_argument("--min-ratio", type=float, help="exit with status 1 below this")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(argv)
    if options.repeats < 1 or min(options.processes) < 2:
        parser.error("--repeats must be at least 1, and --processes at least 2")

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    results = {
        count: measure(count, options.gib, options.bucket_mib << 20, options.repeats) for count in options.processes
    }
    ratios = {}
    for count, seconds in results.items():
        medians = {way: statistics.median(values) for way, values in seconds.items()}
        ratios[count] = {way: medians["raw"] / median for way, median in medians.items()}
        if not options.json:
            _print(count, options.gib, seconds, medians, ratios[count])
    if options.json:
        print(json.dumps({"seconds": results, "ratios": ratios}))
    slow = [count for count, ratio in ratios.items() if ratio["verl-hw"] < (options.min_ratio or 0)]
    if slow:
        print(f"below {options.min_ratio} with {slow} processes", file=sys.stderr)
    return 1 if slow else 0


def _print(count: int, gib: float, seconds: dict[str, list[float]], medians: dict[str, float], ratios: Any) -> None:
    print(f"{count} processes, {gib:g} GiB")
    for way, values in seconds.items():
        print(
            f"  {way:16} median {gib / medians[way]:6.2f} GiB/s  best {gib / min(values):6.2f} GiB/s  "
            f"ratio to raw {ratios[way]:.3f}"
        )


def measure(count: int, gib: float, bucket_size: int, repeats: int) -> dict[str, list[float]]:
    """Run all ways in ``count`` processes and return the sender's seconds by way."""
    import multiprocessing

    import verl.checkpoint_engine  # noqa: F401 - imported once, before the fork

    import verl_hw_core.weight_sync.engine  # noqa: F401

    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(count)]
    processes = [
        context.Process(target=_work, args=(rank, pipes[rank][1], gib, bucket_size, repeats), daemon=True)
        for rank in range(count)
    ]
    for process in processes:
        process.start()
    try:
        _introduce([pipe for pipe, _ in pipes])
        if not pipes[0][0].poll(STEP_SECONDS * repeats):
            raise TimeoutError("the sender did not end")
        seconds: dict[str, list[float]] = pipes[0][0].recv()
    finally:
        for process in processes:
            process.kill()
            process.join()
    return seconds


def _introduce(pipes: list[Any]) -> None:
    """What verl's CheckpointEngineManager does before an update; the ZeroMQ port goes along."""
    from verl_hw_core.weight_sync.engine import HostEngine

    said = []
    for pipe in pipes:
        if not pipe.poll(120):
            raise TimeoutError("a process did not start")
        said.append(pipe.recv())
    sender, receivers = HostEngine.build_topology(1, len(pipes) - 1, [metadata for metadata, _ in said])
    for rank, pipe in enumerate(pipes):
        part, index = (sender, 0) if rank == 0 else (receivers, rank - 1)
        pipe.send(({name: values[index] for name, values in part.items()}, said[0][1]))


def _work(rank: int, pipe: Any, gib: float, bucket_size: int, repeats: int) -> None:
    import torch
    import zmq

    from verl_hw_core.weight_sync.engine import HostEngine

    torch.set_num_threads(1)
    engine = HostEngine(bucket_size=bucket_size, is_master=rank == 0, address=ADDRESS)
    socket = zmq.Context().socket(zmq.PUB if rank == 0 else zmq.SUB)
    port = socket.bind_to_random_port(f"tcp://{ADDRESS}") if rank == 0 else None
    pipe.send((engine.prepare(), port))
    arguments, port = pipe.recv()
    if rank > 0:
        socket.connect(f"tcp://{ADDRESS}:{port}")
        socket.setsockopt(zmq.SUBSCRIBE, b"")
    engine.init_process_group(**arguments)
    group: Any = vars(vars(engine)["_session"].broadcaster)["_backend"]  # the same group for all ways
    shapes = _shapes(gib, bucket_size)
    content = torch.empty(sum(shapes), dtype=torch.bfloat16)
    if rank == 0:
        content.fill_(0.5)  # elsewhere its pages are never touched
    model = [(f"model.layers.{index}.weight", one) for index, one in enumerate(content.split(shapes))]
    buffers = [torch.empty(bucket_size, dtype=torch.uint8) for _ in range(2)]
    ways: dict[str, Callable[[], Any]] = {
        "raw": lambda: _raw(group, rank, content.view(torch.uint8), buffers),
        "verl-hw": lambda: asyncio.run(_ours(engine, rank, model)),
        "verl's algorithm": lambda: asyncio.run(_verls(group, rank, model, buffers, bucket_size, socket)),
    }
    time.sleep(1)  # PUB/SUB loses what is sent before the subscription has arrived
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    shuffle = random.Random(0)  # noqa: S311 - the same in all processes
    for number in range(repeats + 1):
        for way in shuffle.sample(WAYS, len(WAYS)):
            group.barrier().wait()
            began = time.perf_counter()
            ways[way]()
            group.barrier().wait()
            if number > 0:  # the first one warms up
                seconds[way].append(time.perf_counter() - began)
    pipe.send(seconds)
    time.sleep(5)  # the others may still be in the last barrier


def _shapes(gib: float, bucket_size: int) -> list[int]:
    """Elements of each tensor: one of one and a half buckets, the others equal."""
    elements = int(gib * 2**30) // 2
    large = bucket_size * 3 // 4
    return [large] + [(elements - large) // (TENSORS - 1)] * (TENSORS - 1)


def _raw(group: Any, rank: int, content: Any, buffers: list[Any]) -> None:
    import torch.distributed as dist

    options = dist.BroadcastOptions()
    for number, part in enumerate(content.split(buffers[0].numel())):
        group.broadcast([part if rank == 0 else buffers[number % 2][: part.numel()]], options).wait()


async def _ours(engine: Any, rank: int, model: list[tuple[str, Any]]) -> None:
    if rank == 0:
        await engine.send_weights(iter(model))
    else:
        async for _ in engine.receive_weights():
            pass


async def _verls(
    group: Any, rank: int, model: list[tuple[str, Any]], buffers: list[Any], bucket_size: int, socket: Any
) -> None:
    from verl.checkpoint_engine.base import merge_weight_chunks

    if rank == 0:
        await _verls_sender(group, model, buffers, bucket_size, socket)
    else:
        async for _ in merge_weight_chunks(_verls_pieces(group, buffers, socket), bucket_size):
            pass


async def _verls_sender(
    group: Any, model: list[tuple[str, Any]], buffers: list[Any], bucket_size: int, socket: Any
) -> None:
    from verl.checkpoint_engine.base import split_weight_chunks

    loop = asyncio.get_running_loop()
    turn, offset, pending = 0, 0, None
    pieces: dict[str, Any] = {}

    def send(content: Any, metadata: dict[str, Any]) -> None:
        import torch.distributed as dist

        socket.send_pyobj(metadata)
        group.broadcast([content], dist.BroadcastOptions()).wait()

    def flush(last: bool) -> Any:
        said = {"bucket_meta": pieces, "is_last": last, "length": offset}
        return loop.run_in_executor(None, send, buffers[turn][:offset], said)

    async for piece, content in split_weight_chunks(iter(model), bucket_size):
        if offset + piece.chunk_size > bucket_size:
            if pending is not None:
                await pending
            pending = flush(last=False)
            turn, offset, pieces = 1 - turn, 0, {}
        piece.offset = offset
        pieces[piece.name] = piece
        buffers[turn][offset : offset + piece.chunk_size] = content
        offset += piece.chunk_size
    if pending is not None:
        await pending
    await flush(last=True)


async def _verls_pieces(group: Any, buffers: list[Any], socket: Any) -> AsyncIterator[tuple[Any, Any]]:
    loop = asyncio.get_running_loop()

    def take(buffer: Any) -> dict[str, Any]:
        import torch.distributed as dist

        metadata: dict[str, Any] = socket.recv_pyobj()
        group.broadcast([buffer[: metadata["length"]]], dist.BroadcastOptions()).wait()
        return metadata

    turn, metadata = 0, await loop.run_in_executor(None, take, buffers[0])
    while True:
        last = metadata["is_last"]
        following = None if last else loop.run_in_executor(None, take, buffers[1 - turn])
        for piece in metadata["bucket_meta"].values():
            yield piece, buffers[turn][piece.offset : piece.offset + piece.chunk_size]
        if following is None:
            return
        metadata, turn = await following, 1 - turn


if __name__ == "__main__":
    sys.exit(main())
