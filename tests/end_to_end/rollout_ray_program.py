# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The bring-up rollout in verl's own hands on a real Ray: two FSDP2 ranks, two hybrid replicas, one standalone replica.

Usage: ``python rollout_ray_program.py MODEL_FOLDER``; prints what was seen as JSON in the last line.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import ray
import torch
import verl
from hydra import compose, initialize_config_dir
from own_ray import own_ray
from verl import DataProto
from verl.checkpoint_engine.base import CheckpointEngineManager
from verl.plugin.platform import get_platform
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.model import compute_position_id_with_mask
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl.workers.rollout.llm_server import LLMServerManager
from verl.workers.rollout.replica import get_rollout_replica_class
from verl.workers.utils.padding import left_right_2_no_padding, no_padding_2_padding

PROMPT, RESPONSE, TEMPERATURE = 8, 12, 0.8
PROMPTS = [list(range(20 + row, 20 + row + length)) for row, length in enumerate((3, 8, 5, 6))]


def settings(model: Path, device: str, **changes: Any) -> Any:
    """verl's configuration; ``changes`` are options of the rollout."""
    rollout, actor = "actor_rollout_ref.rollout", "actor_rollout_ref.actor"
    precision = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
    overrides = {
        "actor_rollout_ref.model.path": model,
        "actor_rollout_ref.model.use_remove_padding": False,
        "actor_rollout_ref.model.enable_gradient_checkpointing": False,
        "+actor_rollout_ref.model.override_config.attn_implementation": "sdpa",
        f"{actor}.strategy": "fsdp2",
        f"{actor}.use_torch_compile": False,
        f"{actor}.fsdp_config.use_torch_compile": False,
        f"{actor}.ppo_mini_batch_size": 4,
        f"{actor}.ppo_micro_batch_size_per_gpu": 2,
        f"{rollout}.name": "hf_bringup",
        f"{rollout}.tensor_model_parallel_size": 1,
        f"{rollout}.dtype": "float32",
        f"{rollout}.prompt_length": PROMPT,
        f"{rollout}.response_length": RESPONSE,
        f"{rollout}.log_prob_micro_batch_size_per_gpu": 2,
        f"{rollout}.checkpoint_engine.update_weights_bucket_megabytes": 1,
        "trainer.n_gpus_per_node": 2,
        "trainer.device": device,
        **{f"+{actor}.fsdp_config.mixed_precision.{name}": value for name, value in precision.items()},
        **{f"++{rollout}.{name}": value for name, value in changes.items()},
    }
    folder = str(Path(verl.__file__).parent / "trainer" / "config")
    with initialize_config_dir(folder, version_base=None):
        return compose("ppo_trainer", overrides=[f"{name}={value}" for name, value in overrides.items()])


def generate(client: Any, **given: Any) -> list[Any]:
    """Answers to the prompts through verl's client, which spreads them over the replicas."""
    params = {"temperature": TEMPERATURE, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}

    async def ask() -> list[Any]:
        requests = [
            client.generate(f"request-{number}", prompt_ids=prompt, sampling_params={**params, **given})
            for number, prompt in enumerate(PROMPTS)
        ]
        return await asyncio.gather(*requests)

    return asyncio.run(ask())


def trainer_log_probs(trainers: Any, answers: list[Any]) -> list[list[float]]:
    """What verl's actor computes for the answers."""
    ids = torch.zeros(len(answers), PROMPT + RESPONSE, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (prompt, answer) in enumerate(zip(PROMPTS, answers, strict=True)):
        start, end = PROMPT - len(prompt), PROMPT + len(answer.token_ids)
        ids[row, start:end] = torch.tensor(prompt + answer.token_ids)
        mask[row, start:end] = 1
    columns = {
        "input_ids": ids,
        "prompts": ids[:, :PROMPT],
        "responses": ids[:, PROMPT:],
        "attention_mask": mask,
        "response_mask": mask[:, PROMPT:],
        "position_ids": compute_position_id_with_mask(mask),
    }
    batch = left_right_2_no_padding(DataProto.from_single_dict(columns).to_tensordict())
    tu.assign_non_tensor(batch, calculate_entropy=False, compute_loss=False, temperature=TEMPERATURE)
    output = trainers.compute_log_prob(batch)
    found = no_padding_2_padding(output["log_probs"], batch)
    return [found[row, : len(answer.token_ids)].tolist() for row, answer in enumerate(answers)]


def gap(trainers: Any, answers: list[Any]) -> float:
    """Largest difference between the rollout's log-probs and the trainer's."""
    pairs = zip(trainer_log_probs(trainers, answers), answers, strict=True)
    return max(abs(a - b) for theirs, one in pairs for a, b in zip(theirs, one.log_probs, strict=True))


def change_weights(worker: Any) -> None:
    with torch.no_grad():
        for parameter in worker.actor.engine.module.parameters():
            parameter.mul_(1.25)


def leave_out(worker: Any, word: str) -> None:
    """Have the engine send all tensors but those with the word in their name; an empty word sends all again."""
    engine = worker.actor.engine
    own = type(engine).get_per_tensor_param

    def without(**kwargs: Any) -> Any:
        tensors, peft = own(engine, **kwargs)
        return ((name, one) for name, one in tensors if not word or word not in name), peft

    engine.get_per_tensor_param = without


def device_of(worker: Any) -> str:
    return str(next(worker.actor.engine.module.parameters()).to_local().device)


def server_device(server: Any) -> str:
    return str(next(server._model._module.parameters()).device)


def said(function: Any) -> str:
    try:
        function()
    except Exception as error:  # noqa: BLE001 - the test judges it
        return f"{type(error).__name__}: {error}"
    return "no error"


class FromFolder:
    """Stands for a checkpoint engine of a disaggregated trainer: the tensors of a model folder, asynchronously."""

    wire_format = "named_tensors"

    def __init__(self, folder: str) -> None:
        self.folder = folder

    async def receive_weights(self, global_steps: int | None = None) -> Any:
        from safetensors.torch import load_file

        for name, tensor in load_file(f"{self.folder}/model.safetensors").items():
            yield name, tensor.to(get_platform().device_name)


def receive_from(worker: Any, folder: str) -> None:
    worker.checkpoint_engine = FromFolder(folder)


def each(workers: Any, function: Any, *args: Any) -> list[Any]:
    return ray.get([worker.__ray_call__.remote(function, *args) for worker in workers])


def standalone(config: Any, model: Path) -> dict[str, Any]:
    """A replica with a device of its own, filled through verl's checkpoint engine worker."""
    replica = get_rollout_replica_class("hf_bringup")(
        replica_rank=2, config=config.actor_rollout_ref.rollout, model_config=config.actor_rollout_ref.model,
        gpus_per_node=1,
    )  # fmt: skip
    asyncio.run(replica.init_standalone())
    each(replica.workers, receive_from, str(model))
    ray.get([worker.update_weights.remote(global_steps=7) for worker in replica.workers])
    asyncio.run(replica.sleep())
    answer = ray.get(
        replica.server_handle.generate.remote(
            prompt_ids=PROMPTS[0], sampling_params={"logprobs": True, "temperature": 0}, request_id="one"
        )
    )
    return {
        "tokens": answer.token_ids,
        "log_probs": answer.log_probs,
        "step": answer.extra_fields["global_steps"],
        "device": each([replica.server_handle], server_device)[0],
    }


def scenario(model: Path) -> dict[str, Any]:
    config = settings(model, get_platform().device_name)
    pool = RayResourcePool([2], use_gpu=True, max_colocate_count=3)
    actor = RayClassWithInitArgs(
        ray.remote(ActorRolloutRefWorker), config=config.actor_rollout_ref, role="actor_rollout"
    )
    trainers = RayWorkerGroup(pool, actor, device_name=get_platform().device_name)
    trainers.init_model()
    servers = LLMServerManager.create(config, worker_group=trainers)
    checkpoint_config = omega_conf_to_dataclass(config.actor_rollout_ref.rollout.checkpoint_engine)
    manager = CheckpointEngineManager(checkpoint_config, trainers, servers.get_replicas())
    client = servers.get_client()
    facts: dict[str, Any] = {"addresses": servers.get_addresses()}
    manager.sleep_replicas()
    facts["before_sync"] = said(lambda: generate(client))
    manager.update_weights(global_steps=1)
    facts["trainer_devices"] = each(trainers.workers, device_of)
    facts["server_devices"] = each(servers.server_handles, server_device)
    answers = generate(client)
    facts["first"] = [[one.token_ids, one.stop_reason, one.extra_fields["global_steps"]] for one in answers]
    facts["gap"] = gap(trainers, answers)
    each(trainers.workers, change_weights)
    facts["gap_stale"] = gap(trainers, generate(client))
    manager.sleep_replicas()
    facts["asleep"] = said(lambda: generate(client))
    manager.update_weights(global_steps=2)
    answers = generate(client)
    facts["second"] = [[one.token_ids, one.stop_reason, one.extra_fields["global_steps"]] for one in answers]
    facts["gap_synced"] = gap(trainers, answers)
    each(trainers.workers, leave_out, "layers.1.mlp.up_proj")
    facts["sync_with_a_tensor_missing"] = said(lambda: manager.update_weights(global_steps=3))
    facts["after_failed_sync"] = said(lambda: generate(client))
    each(trainers.workers, leave_out, "")
    manager.update_weights(global_steps=3)
    facts["gap_again"] = gap(trainers, generate(client))
    facts["unknown_parameter"] = said(lambda: generate(client, beam_width=3))
    facts["standalone"] = standalone(config, model)
    return facts


if __name__ == "__main__":
    with own_ray(devices=3, cpus=8, log_to_driver=False):
        print(json.dumps(scenario(Path(sys.argv[1]))))
