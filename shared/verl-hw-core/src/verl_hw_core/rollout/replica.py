# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's two handles of a server: the replica starts it, the trainer's adapter sends it weights.

It runs on the node, and on the device, of the replica's worker: it gets the worker's visibility variables as they are
and takes the worker's ordinal, so that no mask has to be composed and both processes number the devices alike.
"""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import ray
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from verl.plugin.platform import get_platform
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica
from verl.workers.rollout.utils import ensure_async_iterator

from verl_hw_core.errors import RolloutConfigError
from verl_hw_core.platform.table import PLATFORM_ENVVAR
from verl_hw_core.rollout import NAME
from verl_hw_core.rollout.actor import BringupActor
from verl_hw_core.rollout.sampling import PromptCounter
from verl_hw_core.rollout.settings import check_config
from verl_hw_core.rollout.weights import buckets

COUNTER = f"{NAME}_prompt_counter"
WIRE_FORMAT = "named_tensors"


@dataclass(frozen=True)
class Place:
    """A worker's node and device.

    Attributes:
        node_id: Ray's id of the node.
        ordinal: The device's ordinal among those that the worker sees.
        environment: Variables with which another process on the node sees the same devices and works alike on them.
    """

    node_id: str
    ordinal: int
    environment: dict[str, str]


def describe_worker(_worker: Any) -> Place:
    """Say where this process's device is; runs inside verl's worker."""
    from verl_hw_core.ray_support.environment import variables

    platform = get_platform()
    spec = getattr(platform, "spec", None)
    masks = [platform.visible_devices_envvar()]
    if spec is not None:
        masks += spec.overriding_visible_envvars
    environment = {name: os.environ[name] for name in masks if name in os.environ}
    if spec is not None:
        # Where the job's own driver started Ray, workers alone have these: both must patch the model alike.
        environment |= variables(spec)
    environment |= dict.fromkeys(platform.ray_noset_envvars(), "1")  # Ray hides all devices from a CPU-only actor
    environment |= platform.rollout_env_vars()
    if spec is None and os.environ.get(PLATFORM_ENVVAR):
        environment[PLATFORM_ENVVAR] = os.environ[PLATFORM_ENVVAR]
    # verl's worker selects this ordinal, and writes it there where Ray gave it the whole node's mask.
    ordinal = int(os.environ.get("LOCAL_RANK", "0"))
    return Place(ray.get_runtime_context().get_node_id(), ordinal, environment)


def server_name(replica_rank: int) -> str:
    """Ray name of the server that a trainer's weights go to."""
    return f"{NAME}_server_{replica_rank}_0"


class BringupReplica(RolloutReplica):
    """One server on one device, in verl's hybrid and standalone modes.

    verl's third mode, colocated without a trainer, is for reward models and teachers alone, which are refused.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        check_config(self.config, self.model_config)
        if self.is_reward_model:
            raise RolloutConfigError(
                f"reward_model.rollout.name={NAME}: verl asks a reward model over HTTP, which this rollout does not "
                "serve; use a reward function, or a rollout that has an HTTP server"
            )
        if self.is_teacher_model:
            raise RolloutConfigError(
                f"distillation.teacher_models.<teacher>.inference.name={NAME}: verl asks a teacher for the log-probs "
                "of a given answer (prompt_logprobs), which this rollout does not compute; use vllm or sglang for it"
            )

    async def launch_servers(self) -> None:
        """Start the server and wait until its model is built."""
        (worker,) = self.workers
        place: Place = await worker.__ray_call__.remote(describe_worker)
        name = f"{server_name(self.replica_rank)}{self.name_suffix}"
        counter = ray.remote(PromptCounter).options(name=COUNTER, get_if_exists=True, num_cpus=0).remote()
        server = (
            ray.remote(BringupActor)
            .options(
                name=name,
                num_cpus=0,
                max_concurrency=self.max_concurrency,
                runtime_env={"env_vars": place.environment},
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=place.node_id, soft=False),
            )
            .remote(self.config, self.model_config, self.rollout_mode, place.ordinal, counter)
        )
        await server.launch.remote()
        self.servers = [server]
        self._server_handle = server
        self._server_address = name  # verl tells servers apart by it; nothing listens there


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
