# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout's settings: its own, and what of verl's configuration it refuses before anything runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from verl_hw_core.errors import RolloutConfigError
from verl_hw_core.rollout import NAME

LogProbs = Literal["processed_logprobs", "raw_logprobs"]
DEVICE_CHOICES = ("worker", "cpu")
REAL_LOAD_FORMATS = ("auto", "safetensors", "hf", "pt")
_WHERE = f"actor_rollout_ref.rollout.engine_kwargs.{NAME}"


@dataclass(frozen=True)
class Settings:
    """Settings of our own, from ``actor_rollout_ref.rollout.engine_kwargs.hf_bringup``.

    Attributes:
        device: ``"worker"``: the accelerator of the replica's worker. ``"cpu"``: the host's processors.
        batch_window_seconds: A batch starts when no request has arrived for this long.
        max_padded_tokens: Bound of a batch: sequences times its longest prompt plus its longest answer. It bounds the
            key-value cache. A single request may exceed it.
        sleep_level: What sleeping does with the weights in hybrid mode: 1 keeps them in host memory, 2 drops them,
            since the next sync brings new ones.
    """

    device: str = "worker"
    batch_window_seconds: float = 0.01
    max_padded_tokens: int = 131072
    sleep_level: int = 2

    def __post_init__(self) -> None:
        if self.device not in DEVICE_CHOICES:
            raise RolloutConfigError(f"{_WHERE}.device={self.device!r}: use one of {', '.join(DEVICE_CHOICES)}")
        if self.sleep_level not in (1, 2):
            raise RolloutConfigError(f"{_WHERE}.sleep_level={self.sleep_level!r}: use 1 (host memory) or 2 (dropped)")
        if self.batch_window_seconds < 0 or self.max_padded_tokens < 1:
            raise RolloutConfigError(
                f"{_WHERE}: batch_window_seconds={self.batch_window_seconds} must not be negative and "
                f"max_padded_tokens={self.max_padded_tokens} must be positive"
            )


def read_settings(rollout: Any) -> Settings:
    """Read our own settings from verl's rollout configuration.

    Raises:
        RolloutConfigError: A setting is unknown or has a value that cannot be right.
    """
    given: Mapping[str, Any] = (rollout.engine_kwargs or {}).get(NAME) or {}
    known = {field.name: field.type for field in fields(Settings)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise RolloutConfigError(f"{_WHERE} has no {', '.join(unknown)}; it has {', '.join(known)}")
    return Settings(**given)


def check_config(rollout: Any, model: Any) -> None:
    """Refuse what this rollout cannot do.

    Args:
        rollout: verl's ``RolloutConfig``.
        model: verl's ``HFModelConfig``, or the part of the configuration that becomes one.

    Raises:
        RolloutConfigError: A setting asks for something that is not there; the text names the setting.
    """
    for found, problem in (*_of_the_rollout(rollout), *_of_the_model(model)):
        if found:
            raise RolloutConfigError(f"rollout.name={NAME}: {problem}")
    read_settings(rollout)


def _of_the_rollout(rollout: Any) -> Iterator[tuple[Any, str]]:
    for name in ("tensor_model_parallel_size", "data_parallel_size", "pipeline_model_parallel_size"):
        ranks = getattr(rollout, name)
        remedy = "set it to 1 for as many replicas as there are devices"
        yield ranks > 1, f"rollout.{name}={ranks}, but a replica is one device; {remedy}"
    backend, bucket = rollout.checkpoint_engine.backend, rollout.checkpoint_engine.update_weights_bucket_megabytes
    modes, formats = get_args(LogProbs), ("dummy", *REAL_LOAD_FORMATS)
    yield from (
        (rollout.logprobs_mode not in modes,
         f"rollout.logprobs_mode={rollout.logprobs_mode!r}; it has {', '.join(modes)}"),
        (rollout.load_format not in formats,
         f"rollout.load_format={rollout.load_format!r}; it has {', '.join(formats)}"),
        (not rollout.do_sample,
         "rollout.do_sample=False: verl's agent loop never reads it and would sample; set rollout.temperature=0"),
        (rollout.repetition_penalty != 1,
         f"rollout.repetition_penalty={rollout.repetition_penalty}: verl's agent loop sends 1.0 with every request, "
         "whatever this says; leave it at 1.0"),
        (rollout.quantization is not None, f"rollout.quantization={rollout.quantization!r} is not supported"),
        ((rollout.qat or {}).get("enable"), "quantization-aware training (rollout.qat) is not supported"),
        (rollout.enable_rollout_routing_replay,
         "rollout.enable_rollout_routing_replay=True: it does not record the experts' routing"),
        (backend == "delta_sharded",
         f"rollout.checkpoint_engine.backend={backend} sends changes only; use naive, or a backend that sends whole "
         "tensors"),
        (bucket < 1, "rollout.checkpoint_engine.update_weights_bucket_megabytes must be at least 1"),
        (rollout.prometheus.enable, "rollout.prometheus.enable=True: it serves no metrics"),
    )  # fmt: skip


def _of_the_model(model: Any) -> Iterator[tuple[Any, str]]:
    lora = model.get("lora") or {}
    rank = max(model.get("lora_rank") or 0, lora.get("rank") or 0)
    yield (
        rank > 0 and not lora.get("merge", False),
        f"LoRA (rank {rank}) as an adapter is not supported: set +actor_rollout_ref.model.lora.merge=True, so that "
        "the trainer merges the adapter into the weights that it sends",
    )
