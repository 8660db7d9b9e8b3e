# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's handle of one replica: starts the server beside the replica's worker."""

from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from verl.workers.rollout.replica import RolloutReplica

from verl_hw_core.errors import RolloutConfigError
from verl_hw_core.rollout import NAME
from verl_hw_core.rollout.actor import BringupActor
from verl_hw_core.rollout.placement import Place, describe_worker
from verl_hw_core.rollout.seeds import PromptCounter
from verl_hw_core.rollout.settings import check_config

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
