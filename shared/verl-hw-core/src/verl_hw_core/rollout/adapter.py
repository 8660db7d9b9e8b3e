# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The trainer's side: sends the weights of the training engine to the server of this rank's replica."""

import os
from collections.abc import AsyncIterator
from typing import Any

import ray
import torch
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.utils import ensure_async_iterator

from verl_hw_core.errors import RolloutConfigError
from verl_hw_core.rollout import NAME
from verl_hw_core.rollout.replica import server_name
from verl_hw_core.rollout.settings import check_config
from verl_hw_core.rollout.weights import buckets

WIRE_FORMAT = "named_tensors"


class BringupAdapter(BaseRollout):
    """Lives in verl's training worker, or in its checkpoint engine worker when the rollout has devices of its own."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
        super().__init__(config, model_config, device_mesh)
        check_config(self.config, self.model_config)
        # A replica is one device, so every rank leads its own.
        self.replica_rank = int(os.environ["RANK"]) if replica_rank == -1 else replica_rank
        self.is_leader_rank = True
        self._server: Any = None

    @property
    def server(self) -> Any:
        """Handle of the server, which verl starts after this object."""
        if self._server is None:
            self._server = ray.get_actor(server_name(self.replica_rank))
        return self._server

    async def resume(self, tags: list[str]) -> None:
        """Wake the server's weights or cache."""
        if self.config.free_cache_engine:
            await self.server.wake_up.remote(tags=tags)

    async def release(self) -> None:
        """Put the server to sleep."""
        if self.config.free_cache_engine:
            await self.server.sleep.remote()

    async def update_weights(
        self,
        weights: Any,
        wire_format: str = WIRE_FORMAT,
        global_steps: int | None = None,
        peft_config: Any = None,
        **_: Any,
    ) -> None:
        """Send the weights.

        The iterator is read to its end whatever happens: each of its steps gathers a tensor from all ranks, and one
        rank that stops would leave the others waiting.

        Args:
            weights: Names and whole tensors, as an iterator or asynchronous iterator.
            wire_format: Must be ``"named_tensors"``.
            global_steps: Step of the weights.
            peft_config: Must be None: adapters are merged by the trainer.

        Raises:
            RolloutConfigError: Another wire format or an adapter was sent.
            WeightSyncError: The tensors are not those of the rollout's model.
        """
        if wire_format != WIRE_FORMAT:
            raise RolloutConfigError(
                f"rollout.name={NAME} takes whole tensors (wire format {WIRE_FORMAT!r}), the checkpoint engine sends "
                f"{wire_format!r}: use checkpoint_engine.backend=naive, or one that sends whole tensors"
            )
        if peft_config is not None:
            raise RolloutConfigError(
                f"rollout.name={NAME} takes merged weights only: set +actor_rollout_ref.model.lora.merge=True"
            )
        stream = ensure_async_iterator(weights)
        try:
            await self._send(stream, global_steps)
        except Exception as error:
            try:
                async for _rest in stream:
                    pass
            finally:
                await self.server.cancel_weights.remote(str(error))
            raise

    async def _send(self, stream: AsyncIterator[tuple[str, torch.Tensor]], global_steps: int | None) -> None:
        await self.server.begin_weights.remote()
        limit = self.config.checkpoint_engine.update_weights_bucket_megabytes << 20
        sent: Any = None
        async for bucket in buckets(stream, limit):
            if sent is not None:
                await sent  # so that at most two buckets are in host memory
            sent = self.server.load_weights.remote(bucket)
        if sent is not None:
            await sent
        await self.server.finish_weights.remote(global_steps)
