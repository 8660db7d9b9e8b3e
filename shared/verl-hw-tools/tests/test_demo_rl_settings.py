# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

from verl_hw_tools.demo.rl.settings import RlSettings, launch_command, overrides
from verl_hw_tools.demo.workspace import Workspace


def settings(**changes: object) -> RlSettings:
    values = {"algorithm": "grpo", "steps": 5, "nodes": 1, "processes": 2, "seed": 7, **changes}
    return RlSettings(**values)  # type: ignore[arg-type]


def options(**changes: object) -> dict[str, str]:
    workspace = Workspace(Path("/a folder, with=odd{characters}"))
    found = [text.partition("=") for text in overrides(settings(**changes), workspace, workspace.training)]
    assert len({name for name, _, _ in found}) == len(found), "hydra refuses an option that is given twice"
    return {name.lstrip("+"): value for name, _, value in found}


def test_grpo_trains_with_everything_that_the_demo_is_to_show() -> None:
    given = options()
    assert given["algorithm.adv_estimator"] == "grpo"
    for part in (
        "actor.fsdp_config.param_offload",
        "actor.fsdp_config.optimizer_offload",
        "ref.fsdp_config.param_offload",
    ):
        assert given[f"actor_rollout_ref.{part}"] == "True"
    for part in ("model.use_remove_padding", "actor.use_dynamic_bsz", "actor.use_kl_loss"):
        assert given[f"actor_rollout_ref.{part}"] == "True"
    assert given["actor_rollout_ref.actor.strategy"] == "fsdp2"
    assert given["actor_rollout_ref.rollout.name"] == "hf_bringup"
    assert not any(name.startswith("critic.") for name in given)


def test_ppo_has_a_critic_of_the_same_kind() -> None:
    given = options(algorithm="ppo")
    assert given["algorithm.adv_estimator"] == "gae"
    assert given["critic.strategy"] == "fsdp2"
    assert given["critic.fsdp.param_offload"] == given["critic.model.use_remove_padding"] == "True"
    assert (settings().engines, settings(algorithm="ppo").engines) == (4, 6)


@pytest.mark.parametrize(("processes", "tensor_parallel"), [(1, "1"), (2, "2"), (3, "1"), (4, "2")])
def test_megatron_replaces_fsdp_in_actor_reference_and_critic(processes: int, tensor_parallel: str) -> None:
    given = options(algorithm="ppo", strategy="megatron", processes=processes)
    assert given["model_engine"] == "megatron"
    assert not [name for name in given if "fsdp" in name]
    for engine in ("actor_rollout_ref.actor", "critic"):
        assert given[f"{engine}.strategy"] == "megatron"
        assert given[f"{engine}.megatron.tensor_model_parallel_size"] == tensor_parallel
        for part in ("vanilla_mbridge", "param_offload", "optimizer_offload"):
            assert given[f"{engine}.megatron.{part}"] == "True"
    # verl's Megatron engine has no float32, and the rollout is to round as it does.
    assert given["actor_rollout_ref.rollout.dtype"] == "bfloat16"
    assert options()["actor_rollout_ref.rollout.dtype"] == "float32"


def test_no_path_is_absolute_so_that_no_folder_breaks_hydras_grammar() -> None:
    assert not [value for value in options(algorithm="ppo").values() if "odd" in value or value.startswith("/")]


def test_every_seed_follows_the_demos() -> None:
    given = options(algorithm="ppo")
    seeds = {name: value for name, value in given.items() if name.endswith("seed")}
    assert set(seeds.values()) == {"7"}
    assert {"data.seed", "actor_rollout_ref.rollout.seed", "actor_rollout_ref.actor.fsdp_config.seed"} <= set(seeds)


def test_one_node_gets_a_cluster_of_its_own_whatever_else_runs_here() -> None:
    command = launch_command(settings(processes=3), ["a=1"])
    assert command[:4] == [sys.executable, "-m", "verl.trainer.main_ppo", "a=1"]
    assert {"+ray_kwargs.ray_init.address=local", "+ray_kwargs.ray_init.num_gpus=3"} <= set(command)


def test_several_nodes_are_started_before_the_trainer() -> None:
    command = launch_command(settings(nodes=2, processes=1), ["a=1"])
    assert command[1:3] == ["-m", "verl_hw_tools.demo.rl.simulated_nodes"]
    assert {"--nodes=2", "--devices=1"} <= set(command)
    assert command[-2:] == ["verl.trainer.main_ppo", "a=1"]
    assert settings(nodes=2, processes=1).workers == 2


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_ray_is_offered_enough_processors_for_verls_workers(processes: int) -> None:
    # verl reserves three for each worker of a placement group.
    assert settings(processes=processes).cpus >= 3 * processes + 4
