# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that update weights as verl's CheckpointEngineManager lets its workers do, with faults on request."""

import asyncio
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from machine_speed import scaled
from verl.checkpoint_engine import CheckpointEngineRegistry

BUCKET = 40_000
PATIENCE = 60.0
FORK = multiprocessing.get_context("fork")


def model(version: int = 0) -> list[tuple[str, torch.Tensor]]:
    """Every kind of tensor that a model may hold; ``version`` changes the values."""
    generator = torch.Generator().manual_seed(version)

    def floats(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    embedding = floats(64, 32)
    nan = floats(9, dtype=torch.float32)
    nan[3] = float("nan")
    return [
        ("embed", embedding),
        ("head, tied", embedding),
        ("scalar", torch.tensor(version + 0.5, dtype=torch.float64)),
        ("empty", torch.empty(0, 7)),
        ("odd bytes", torch.arange(13, dtype=torch.uint8)),
        ("transposed", floats(300, 70, dtype=torch.float32).t()),  # 84,000 bytes: split
        ("every other", floats(50, 60)[::2, ::3]),
        ("permuted", floats(20, 31, 37).permute(2, 0, 1)),  # 45,880 bytes: split
        ("int64", torch.arange(version, version + 1500, dtype=torch.int64)),
        ("int8", torch.arange(-20, 20, dtype=torch.int8)),
        ("bool", torch.tensor([True, False, True])),
        ("fp8", floats(33, 9).to(torch.float8_e4m3fn)),
        ("fp8 transposed", floats(33, 9).to(torch.float8_e5m2).t()),
        ("fp16", floats(11, dtype=torch.float16)),
        ("nan", nan),
        ("large", floats(250, 300)),  # 150,000 bytes: four buckets
        ("exactly a bucket", floats(BUCKET // 2)),
        ("grad", torch.nn.Parameter(floats(5, dtype=torch.float32))),
        ("last", floats(3)),
    ]


def bits(tensor: torch.Tensor) -> bytes:
    """dtype, shape and bytes."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return pickle.dumps((str(tensor.dtype), tuple(tensor.shape), flat.view(torch.uint8).numpy().tobytes()))


@dataclass
class Fault:
    """What a worker does wrong in one update.

    Attributes:
        kind: ``die``, ``stop`` (as SIGSTOP does), ``raise``, ``dawdle`` (a second, then raise), ``late`` (before
            joining), ``reshape``, ``rename`` or ``corrupt``.
        after: Number of tensors before it, or seconds for ``late``.
    """

    kind: str
    after: float = 0


@dataclass
class Worker:
    """A process with one engine."""

    pipe: Any
    process: Any
    trainer: bool
    options: dict[str, Any] = field(default_factory=dict)

    def call(self, command: str, **arguments: Any) -> None:
        self.pipe.send((command, arguments))

    def answer(self) -> dict[str, Any]:
        """What the command came to; ``{"dead": True}`` when the process has ended or is stopped."""
        try:
            if self.pipe.poll(scaled(PATIENCE)):
                return self.pipe.recv()
        except (EOFError, ConnectionError):
            return {"dead": True}
        return {"silent": True}


class Crew:
    """Trainer and rollout workers. Closing it ends them all."""

    def __init__(self, backend: str, trainers: int = 1, rollouts: int = 2, device: bool = True, **options: Any) -> None:
        self._settings = {"address": "127.0.0.1", "bucket_timeout": scaled(30.0), "rendezvous_timeout": scaled(30.0)}
        self._settings |= options
        self._backend = backend
        self._device = device
        self.trainers = [self._start(index, trainer=True) for index in range(trainers)]
        self.rollouts = [self._start(index + trainers, trainer=False) for index in range(rollouts)]

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.trainers + self.rollouts:
            self.end(worker)

    def end(self, worker: Worker) -> None:
        worker.process.kill()
        worker.process.join(scaled(10))
        worker.pipe.close()

    def add_rollout(self) -> None:
        self.rollouts.append(self._start(len(self.trainers) + len(self.rollouts), trainer=False))

    def remove_rollout(self, index: int) -> None:
        self.end(self.rollouts.pop(index))

    def _start(self, index: int, *, trainer: bool) -> Worker:
        ours, theirs = FORK.Pipe()
        arguments = (theirs, ours, self._backend, index, self._device, trainer and index == 0, self._settings)
        process = FORK.Process(target=_work, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return Worker(ours, process, trainer)

    def update(
        self, version: int = 0, faults: dict[str, Fault] | None = None, **sending: Any
    ) -> dict[str, dict[str, Any]]:
        """One update as verl's manager makes it; answers by worker, as ``trainer 0`` or ``rollout 1``."""
        faults = faults or {}
        workers = {f"trainer {index}": one for index, one in enumerate(self.trainers)}
        workers |= {f"rollout {index}": one for index, one in enumerate(self.rollouts)}
        for one in workers.values():
            one.call("prepare")
        metadata = [one.answer()["metadata"] for one in workers.values()]
        engine = CheckpointEngineRegistry.get(self._backend)
        kinds = engine.build_topology(len(self.trainers), len(self.rollouts), metadata)
        for kind, members in zip(kinds, (self.trainers, self.rollouts), strict=True):
            for index, one in enumerate(members):
                name = f"{'trainer' if one.trainer else 'rollout'} {index}"
                arguments = {key: values[index] for key, values in kind.items()}
                one.call("join", fault=faults.get(name), **arguments)
        joined = {name: one.answer() for name, one in workers.items()}
        if any("error" in answer for answer in joined.values()):
            return joined
        for name, one in workers.items():
            options = sending if one.trainer else {}
            one.call("send" if one.trainer else "receive", version=version, fault=faults.get(name), **options)
        answers = {name: one.answer() for name, one in workers.items()}
        for name, one in workers.items():
            if "error" not in answers[name] and not {"dead", "silent"} & set(answers[name]):
                one.call("finalize")
                one.answer()
        return answers


def _work(pipe: Any, other_end: Any, backend: str, index: int, device: bool, master: bool, settings: dict) -> None:
    other_end.close()
    torch.set_num_threads(1)
    if device:
        from verl.plugin.platform import get_platform

        platform = get_platform()
        platform.set_device(index % platform.device_count())
    engine = CheckpointEngineRegistry.new(backend, bucket_size=BUCKET, is_master=master, **settings)
    while True:
        try:
            command, arguments = pipe.recv()
        except EOFError:
            os._exit(0)
        began = time.monotonic()
        try:
            answer = _COMMANDS[command](engine, **arguments)
        except Exception as error:  # noqa: BLE001 - which one it is, is the question
            names = ("rank", "bucket", "tensor")
            answer = {"error": f"{type(error).__name__}: {error}"} | {
                name: getattr(error, name, None) for name in names
            }
        pipe.send(answer | {"seconds": time.monotonic() - began})


def _prepare(engine: Any) -> dict[str, Any]:
    return {"metadata": engine.prepare()}


def _join(engine: Any, fault: Fault | None, **arguments: Any) -> dict[str, Any]:
    if fault is not None and fault.kind == "late":
        time.sleep(fault.after)
    engine.init_process_group(**arguments)
    return {"group": arguments["group"], "default group": dist.is_initialized()}


def _send(engine: Any, version: int, fault: Fault | None, *, overwritten: bool = False) -> dict[str, Any]:
    """Send the model; ``overwritten``: from host memory that is used anew after each tensor."""
    yielded = 0

    def weights() -> Any:
        nonlocal yielded
        for name, tensor in _overwritten(model(version)) if overwritten else _on_device(model(version)):
            _trip(fault, yielded, ("die", "stop", "raise"))
            if fault is not None and fault.kind == "reshape" and name == "large":
                tensor = tensor[:-1]
            if fault is not None and fault.kind == "rename" and name == "large":
                name = "renamed"
            yielded += 1
            yield name, tensor

    metrics = asyncio.run(engine.send_weights(weights(), global_steps=version))
    return {"metrics": metrics, "yielded": yielded, "rank": engine.rank}


def _overwritten(tensors: list[tuple[str, torch.Tensor]]) -> Any:
    for name, tensor in tensors:
        scratch = tensor.detach().clone()
        yield name, scratch
        scratch.zero_()


def _on_device(tensors: list[tuple[str, torch.Tensor]]) -> Any:
    from verl.plugin.platform import get_platform

    platform = get_platform()
    for name, tensor in tensors:
        yield name, tensor.to(platform.device_name) if platform.is_available() else tensor


def _receive(engine: Any, version: int, fault: Fault | None) -> dict[str, Any]:
    if fault is not None and fault.kind == "corrupt":
        _corrupt(engine)
    found = {}
    memory = _memory()
    if memory is not None:
        memory.reset_peak_memory_stats()
        before = memory.memory_allocated()

    async def consume() -> None:
        async for name, tensor in engine.receive_weights(global_steps=version):
            _trip(fault, len(found), ("die", "stop", "raise", "dawdle"))
            found[name] = bits(tensor)

    asyncio.run(consume())
    peak = None if memory is None else memory.max_memory_allocated() - before
    wanted = {name: bits(tensor) for name, tensor in model(version)}
    differing = [name for name in wanted if found.get(name) != wanted[name]]
    return {
        "differing": differing,
        "in order": list(found) == list(wanted),
        "default group": dist.is_initialized(),
        "device of the thread": _device_of_thread(engine),
        "peak": peak,
    }


def _memory() -> Any:
    from verl.plugin.platform import get_platform

    platform = get_platform()
    return platform.device_module if platform.is_available() else None


def _device_of_thread(engine: Any) -> list[int]:
    """Current device in this thread and in the one that transfers."""
    from verl.plugin.platform import get_platform

    current = get_platform().current_device
    return [current(), engine._session.broadcaster.thread.submit(current).result(scaled(10))]


def _corrupt(engine: Any) -> None:
    """Flip a bit of what comes, as a faulty network would."""
    broadcaster = engine._session.broadcaster
    right = broadcaster.submit

    def wrong(begin: Callable[[], torch.Tensor | None], end: Callable[[], Any]) -> Any:
        contents = []

        def begin_and_keep() -> torch.Tensor | None:
            contents.append(begin())
            return contents[0]

        def corrupt_and_end() -> Any:
            contents[0][5] ^= 1
            return end()

        return right(begin_and_keep, corrupt_and_end)

    broadcaster.submit = wrong


def _trip(fault: Fault | None, done: int, kinds: tuple[str, ...]) -> None:
    if fault is None or fault.kind not in kinds or done != fault.after:
        return
    if fault.kind == "dawdle":
        time.sleep(scaled(1))
    if fault.kind in ("raise", "dawdle"):
        raise RuntimeError("planted")
    os.kill(os.getpid(), signal.SIGKILL if fault.kind == "die" else signal.SIGSTOP)


def _finalize(engine: Any) -> dict[str, Any]:
    engine.finalize()
    return {}


_COMMANDS = {"prepare": _prepare, "join": _join, "send": _send, "receive": _receive, "finalize": _finalize}
