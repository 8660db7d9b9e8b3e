# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's handle of one replica: starts the server on the node, and on the device, of the replica's worker.

The server gets the worker's visibility variables as they are and takes the worker's ordinal, so that no mask has to be
composed and both processes number the devices alike.
"""

import os
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from verl.plugin.platform import get_platform
from verl.workers.rollout.replica import RolloutReplica

from verl_hw_core.errors import RolloutConfigError
from verl_hw_core.platform.table import PLATFORM_ENVVAR
from verl_hw_core.rollout import NAME
from verl_hw_core.rollout.actor import BringupActor
from verl_hw_core.rollout.sampling import PromptCounter
from verl_hw_core.rollout.settings import check_config


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


COUNTER = f"{NAME}_prompt_counter"


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
