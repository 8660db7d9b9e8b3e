# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's bucketed weight transfer on this platform's device: through shared memory, between processes, and by IPC.

The simulator cannot share device memory between processes, so the IPC case has both ends in one process and a handle of
the layout that verl expects. Prints what arrived as JSON.
"""

import asyncio
import json
import multiprocessing
import sys
import tempfile
import threading
import time
import types
from pathlib import Path
from typing import Any

import torch
import verl
from verl.plugin.platform import get_platform
from verl.utils.device import is_support_ipc

# verl's package needs vLLM, its transfer does not.
package = types.ModuleType("verl.workers.rollout.vllm_rollout")
package.__path__ = [str(Path(verl.__file__).parent / "workers" / "rollout" / "vllm_rollout")]
sys.modules[package.__name__] = package
from verl.workers.rollout.vllm_rollout import bucketed_weight_transfer as transfer  # noqa: E402

BUCKET_MIB = 1
LEFT_SECONDS = 60
FORK = multiprocessing.get_context("fork")


def model() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "small": torch.randn(33, 7, generator=generator),
        "large": torch.randn(1000, 700, generator=generator),  # 2.8 MB
        "half": torch.randn(300, 400, generator=generator).to(torch.bfloat16),
        "large, transposed": torch.randn(600, 900, generator=generator).to(torch.bfloat16).t(),
        "last": torch.arange(50, dtype=torch.int32),
    }


def send(handle: str, use_shm: bool, ordinal: int) -> None:
    platform = get_platform()
    platform.set_device(ordinal)
    sender = transfer.BucketedWeightSender(handle, BUCKET_MIB, use_shm=use_shm)
    asyncio.run(sender.async_send_weights((name, one.to(platform.device_name)) for name, one in model().items()))


def receive(handle: str, use_shm: bool, ordinal: int) -> dict[str, Any]:
    platform = get_platform()
    platform.set_device(ordinal)
    device = torch.device(platform.device_name, ordinal)
    wanted, found, ends = model(), {}, []

    def take(weights: list[tuple[str, torch.Tensor]], is_last: bool) -> None:
        for name, one in weights:
            right = torch.equal(one.cpu(), wanted[name]) and one.dtype == wanted[name].dtype
            found[name] = [right, str(one.device)]
        ends.append(is_last)

    transfer.BucketedWeightReceiver(handle, device, use_shm=use_shm).receive_weights(take)
    return {"found": found, "ends": ends, "complete": sorted(found) == sorted(wanted)}


def left_of(before: set[str]) -> set[str]:
    """Shared memory that came and stays; what a test beside this one uses goes again."""
    left = {path.name for path in Path("/dev/shm").glob("psm_*")} - before
    end = time.monotonic() + LEFT_SECONDS
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left &= {path.name for path in Path("/dev/shm").glob("psm_*")}
    return left


def through_shared_memory(folder: Path) -> dict[str, Any]:
    before = {path.name for path in Path("/dev/shm").glob("*")}
    handle = f"ipc://{folder}/shm"
    sender = FORK.Process(target=send, args=(handle, True, 0))
    sender.start()
    try:
        facts = receive(handle, True, 1)
        sender.join(30)
        return {**facts, "sender": sender.exitcode, "left in /dev/shm": sorted(left_of(before))}
    finally:
        sender.kill()


def by_ipc(folder: Path) -> dict[str, Any]:
    kept: list[torch.Tensor] = []
    asked: list[int] = []

    def rebuild(number: int, *rest: Any) -> torch.Tensor:
        asked.append(rest[5])
        return kept[number]

    def reduce_tensor(tensor: torch.Tensor) -> tuple[Any, tuple[Any, ...]]:
        kept.append(tensor)
        return "rebuild", (len(kept) - 1, None, None, None, None, None, tensor.device.index)

    own = transfer.rebuild_ipc
    transfer.reduce_tensor = reduce_tensor
    transfer.rebuild_ipc = lambda handle, ordinal=None: own((rebuild, handle[1]), ordinal)
    handle = f"ipc://{folder}/ipc"
    sender = threading.Thread(target=send, args=(handle, False, 1))
    sender.start()
    facts = receive(handle, False, 1)
    sender.join(30)
    return {**facts, "ordinals asked for": asked}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        facts = {
            "supported": is_support_ipc(),
            "shared memory": through_shared_memory(Path(folder)),
            "ipc": by_ipc(Path(folder)),
        }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
