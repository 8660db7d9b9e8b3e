# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Transformer modules from torch operations, with TransformerEngine's interfaces and parameter names.

Because the names are TransformerEngine's, the bridges' weight mappings and Megatron's checkpoints fit as they are.
Imports megatron; only a process that builds a Megatron engine does.
"""

from collections.abc import Callable
from typing import Any

import torch
from megatron.core.dist_checkpointing.utils import replace_prefix_for_sharding
from megatron.core.tensor_parallel.layers import ColumnParallelLinear, set_tensor_model_parallel_attributes
from megatron.core.tensor_parallel.random import get_cuda_rng_tracker, get_expert_parallel_rng_tracker_name
from megatron.core.transformer.utils import make_sharded_tensors_for_checkpoint
from megatron.core.utils import get_pg_rank, get_pg_size
from torch.nn import functional

from verl_hw_core.errors import UnsupportedModelSettingError


def _placement(config: Any) -> dict[str, Any]:
    """Device and dtype of new parameters, as Megatron's own layers choose them."""
    device = "cpu" if config.use_cpu_initialization else "cuda"  # the migration's "cuda"
    return {"device": device, "dtype": config.params_dtype}


class Norm:
    """RMSNorm or LayerNorm of torch; unlike Megatron's own wrapper also under sequence parallelism."""

    def __new__(cls, config: Any, hidden_size: int, eps: float = 1e-5, **_: Any) -> Any:
        """Build the norm; each rank's part of its gradient is marked for the sum over the tensor-parallel ranks.

        Raises:
            UnsupportedModelSettingError: Another norm, or one whose weight is stored minus one.
        """
        kinds = {"RMSNorm": torch.nn.RMSNorm, "LayerNorm": torch.nn.LayerNorm}
        if config.normalization not in kinds or config.layernorm_zero_centered_gamma:
            raise UnsupportedModelSettingError(
                f"Megatron without TransformerEngine has {', '.join(kinds)} with ordinary weights; the model wants "
                f"normalization={config.normalization!r}, "
                f"layernorm_zero_centered_gamma={config.layernorm_zero_centered_gamma}. Use strategy fsdp2"
            )
        norm = kinds[config.normalization](hidden_size, eps=eps, **_placement(config))
        for parameter in norm.parameters():
            parameter.sequence_parallel = config.sequence_parallel
        return norm


class NormColumnParallelLinear(ColumnParallelLinear):
    """A norm and the column-parallel linear layer after it, with parameter ``layer_norm_weight``.

    Under sequence parallelism the norm sees the rank's part of the sequence, and the linear layer gathers the rest.
    """

    def __init__(self, input_size: int, output_size: int, *, config: Any, **arguments: Any) -> None:
        super().__init__(input_size, output_size, config=config, **arguments)
        norm = Norm(config, input_size, config.layernorm_epsilon)
        self.layer_norm_weight = norm.weight
        self.register_parameter("layer_norm_bias", getattr(norm, "bias", None))

    def forward(self, input_: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        """Return (output, bias or None) for ``input_`` of shape (sequence, batch, input_size)."""
        shape, eps = (self.input_size,), self.config.layernorm_epsilon
        if self.config.normalization == "RMSNorm":
            normed = functional.rms_norm(input_, shape, self.layer_norm_weight, eps)
        else:
            normed = functional.layer_norm(input_, shape, self.layer_norm_weight, self.layer_norm_bias, eps)
        return super().forward(normed, *arguments, **named)


class ReplicatedLinear(torch.nn.Module):
    """A linear layer of which every tensor-parallel rank has the whole (latent attention's down projections)."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        config: Any,
        init_method: Callable[[torch.Tensor], Any],
        bias: bool = False,
        **_: Any,
    ) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(output_size, input_size, **_placement(config)))
        self.bias = torch.nn.Parameter(torch.zeros(output_size, **_placement(config))) if bias else None
        if config.perform_initialization:
            init_method(self.weight)
        for parameter in self.parameters():
            parameter.sequence_parallel = config.sequence_parallel

    def forward(self, input_: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return (output, None)."""
        return functional.linear(input_, self.weight, self.bias), None

    def sharded_state_dict(self, prefix: str = "", sharded_offsets: Any = (), metadata: Any = None) -> Any:
        """Megatron's checkpoint entries: the same on every tensor-parallel rank."""
        return make_sharded_tensors_for_checkpoint(
            self.state_dict(keep_vars=True), prefix, {}, sharded_offsets, dp_cp_group=metadata["dp_cp_group"]
        )

    def backward_dw(self) -> None:
        """Nothing to do: weight gradients are not delayed here."""


class _GroupedLinear(torch.nn.Module):
    """One linear layer an expert, one after the other, with parameters ``weight0``, ``weight1``, ..."""

    split_dimension: int

    def __init__(
        self,
        num_gemms: int,
        input_size: int,
        output_size: int,
        *,
        config: Any,
        init_method: Callable[[torch.Tensor], Any],
        bias: bool,
        pg_collection: Any,
        **_: Any,
    ) -> None:
        super().__init__()
        if bias:
            raise UnsupportedModelSettingError(
                "Megatron without TransformerEngine has no experts with a bias: use strategy fsdp2"
            )
        self.num_gemms = num_gemms
        self._groups = pg_collection
        parts = get_pg_size(pg_collection.expt_tp)
        shape = [output_size, input_size]
        shape[self.split_dimension] //= parts
        parallel = config.expert_model_parallel_size > 1
        for index in range(num_gemms):
            weight = torch.nn.Parameter(torch.empty(shape, **_placement(config)))
            if config.perform_initialization:
                with get_cuda_rng_tracker().fork(get_expert_parallel_rng_tracker_name()):
                    init_method(weight)
            set_tensor_model_parallel_attributes(weight, True, self.split_dimension, 1)
            weight.allreduce = not parallel  # Megatron's DDP reads it
            self.register_parameter(f"weight{index}", weight)

    def forward(self, tokens: torch.Tensor, tokens_per_expert: list[int]) -> tuple[torch.Tensor, None]:
        """Return (output, None).

        Args:
            tokens: (tokens, input size), the first expert's first.
            tokens_per_expert: How many of them each expert has.
        """
        outputs = [
            functional.linear(part, getattr(self, f"weight{index}"))
            for index, part in enumerate(tokens.split(tokens_per_expert))
        ]
        return torch.cat(outputs), None

    def sharded_state_dict(self, prefix: str = "", sharded_offsets: Any = (), metadata: Any = None) -> Any:
        """Megatron's checkpoint entries: one tensor over all experts, as its other expert layers write it."""
        single = (metadata or {}).get("singleton_local_shards", False)
        first = get_pg_rank(self._groups.ep) * self.num_gemms
        experts = get_pg_size(self._groups.ep) * self.num_gemms
        entries = {}
        for index in range(self.num_gemms):
            offsets = sharded_offsets
            if not single:
                offsets = (*sharded_offsets, (len(sharded_offsets), first + index, experts))
            entry = make_sharded_tensors_for_checkpoint(
                {f"{index}.weight": getattr(self, f"weight{index}")},
                "",
                {f"{index}.weight": self.split_dimension},
                offsets,
                tp_group=self._groups.expt_tp,
                dp_cp_group=metadata["dp_cp_group"],
            )
            replace_prefix_for_sharding(entry, f"{index}.", f"{first + index}.{prefix}" if single else prefix)
            tensor = entry[f"{index}.weight"]
            tensor.replica_id = (*tensor.replica_id[:2], get_pg_rank(self._groups.expt_dp))
            entries[f"{prefix}weight{index}"] = tensor
        return entries

    def backward_dw(self) -> None:
        """Nothing to do: weight gradients are not delayed here."""


class ColumnParallelGroupedLinear(_GroupedLinear):
    """The experts' first layers, split by output."""

    split_dimension = 0


class RowParallelGroupedLinear(_GroupedLinear):
    """The experts' second layers, split by input; the token dispatcher sums the parts."""

    split_dimension = 1
