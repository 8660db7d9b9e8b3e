# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The options of actor, reference policy and critic, for each of verl's training engines."""

LEARNING_RATE = 5e-3
CRITIC_LEARNING_RATE = 1e-3
KL_COEFFICIENT = 0.001
MEGATRON = "megatron"
# Tokens of a micro batch: a step of two processes has two to three of them each.
_MICRO_BATCH_TOKENS = 1024
_ROLES = "actor_rollout_ref"


def options(*, strategy: str, workers: int, seed: int, model: str, prompts: int, critic: bool) -> list[str]:
    """verl's options for all engines of a run.

    Args:
        strategy: verl's name of the training engine, ``"fsdp"``, ``"fsdp2"`` or ``"megatron"``.
        workers: Number of training processes.
        seed: Decides the order within a step.
        model: The checkpoint.
        prompts: Prompts of an optimizer step.
        critic: Whether there is a critic.
    """
    return [
        *([f"model_engine={MEGATRON}"] if strategy == MEGATRON else []),
        *_model(f"{_ROLES}.model", model),
        *_actor(f"{_ROLES}.actor", strategy, workers, seed, prompts),
        *_reference(f"{_ROLES}.ref", strategy),
        *(_critic("critic", strategy, workers, seed, model) if critic else ()),
    ]


def _model(at: str, path: str) -> list[str]:
    return [
        f"{at}.path={path}",
        f"{at}.use_remove_padding=True",
        f"{at}.enable_gradient_checkpointing=False",
        f"+{at}.override_config.attn_implementation=eager",
    ]


def _actor(at: str, strategy: str, workers: int, seed: int, prompts: int) -> list[str]:
    return [
        *_trained(at, "fsdp_config", strategy, workers, seed, LEARNING_RATE),
        # Compiling takes longer than training a model this small.
        f"{at}.use_torch_compile=False",
        f"{at}.ppo_mini_batch_size={prompts}",
        f"{at}.use_dynamic_bsz=True",
        f"{at}.use_kl_loss=True",
        f"{at}.kl_loss_coef={KL_COEFFICIENT}",
        f"{at}.kl_loss_type=low_var_kl",
    ]


def _reference(at: str, strategy: str) -> list[str]:
    # Megatron's takes offload and parallelism over from the actor's.
    return [] if strategy == MEGATRON else _fsdp(f"{at}.fsdp_config")


def _critic(at: str, strategy: str, workers: int, seed: int, model: str) -> list[str]:
    return [
        *_model(f"{at}.model", model),
        *_trained(at, "fsdp", strategy, workers, seed, CRITIC_LEARNING_RATE),
    ]


def _trained(at: str, fsdp: str, strategy: str, workers: int, seed: int, learning_rate: float) -> list[str]:
    """Options of a role that is trained; ``fsdp`` is verl's name of its FSDP options."""
    engine = f"{at}.{'megatron' if strategy == MEGATRON else fsdp}"
    return [
        f"{at}.strategy={strategy}",
        *(_megatron(engine, workers) if strategy == MEGATRON else _fsdp(engine)),
        f"{engine}.optimizer_offload=True",
        f"{engine}.seed={seed}",
        f"{at}.optim.lr={learning_rate}",
        f"{at}.ppo_max_token_len_per_gpu={_MICRO_BATCH_TOKENS}",
        f"{at}.data_loader_seed={seed}",
    ]


def _fsdp(at: str) -> list[str]:
    return [
        f"{at}.param_offload=True",
        f"{at}.use_torch_compile=False",
        f"+{at}.mixed_precision={{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}}",
    ]


def _megatron(at: str, workers: int) -> list[str]:
    return [
        f"{at}.param_offload=True",
        f"{at}.vanilla_mbridge=True",
        # Two ways of being parallel where the processes allow it: within a layer, and over the data.
        f"{at}.tensor_model_parallel_size={2 if workers % 2 == 0 else 1}",
    ]
