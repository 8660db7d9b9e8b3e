# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A replay buffer that gives the trainer each batch in an order that does not depend on which answer came first.

Chosen by ``trainer.v1.sampler.custom_sampler``. verl's own returns a batch in the order of arrival, so that sums over
it are rounded differently in every run; it also looks for answers every two seconds, longer than a step takes here.
"""

from typing import Any

import transfer_queue
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

_POLL_SECONDS = 0.1


class OrderedReplayBuffer(ReplayBuffer):  # type: ignore[misc] # verl's classes are Any to the checker
    """verl's replay buffer for synchronous training, with batches ordered by what they hold."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"poll_interval": _POLL_SECONDS, **kwargs})

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        """Wait for a batch as verl does, and order it by prompt and answer."""
        batch, metrics = super().sample(global_steps=global_steps, partition_id=partition_id, batch_size=batch_size)
        fields = transfer_queue.kv_batch_get(
            keys=batch.keys, partition_id=partition_id, select_fields=["prompts", "responses"]
        )
        prompts, responses = ([row.tolist() for row in fields[name].unbind()] for name in ("prompts", "responses"))
        batch.reorder(sorted(range(len(batch.keys)), key=lambda row: (prompts[row], responses[row])))
        return batch, metrics
