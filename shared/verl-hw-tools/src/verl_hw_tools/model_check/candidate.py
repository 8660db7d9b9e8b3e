# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The Megatron side: the same model, built and loaded by the bridge that verl's engine uses, on one device.

Imports megatron; the device's migration must have been loaded.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from megatron.core import tensor_parallel
from verl.models.mcore import get_mcore_engine_forward_fn
from verl.models.mcore.mbridge import AutoBridge, make_value_model
from verl.utils.megatron_utils import get_hf_rope_theta

from verl_hw_core.megatron import bridges, settings
from verl_hw_tools.model_check.places import megatron_places, recorded

_FORMATS = {"packed": "thd", "padded": "bshd"}


class Candidate:
    """A Megatron model in float32.

    Attributes:
        bridge: Its bridge.
        model: Megatron-core's GPTModel.
    """

    def __init__(self, hf_config: Any, device: str, *, value: bool) -> None:
        self._device, self._value = device, value
        self._hf_config = hf_config
        if value:
            hf_config.tie_word_embeddings = False  # as verl's engine does
        _set_rope_theta(hf_config)
        self.bridge = AutoBridge.from_config(hf_config, dtype=torch.float32)
        self.bridge.set_extra_args(**settings.transformer_overrides())
        bridges.complete_experts(self.bridge, self.bridge.config)
        (self.model,) = self.bridge.get_model(
            wrap_with_ddp=False,
            fp16=False,
            bf16=False,
            post_model_creation_callbacks=[make_value_model] if value else [],
        )
        self.model.to(device).eval()

    def load(self, folder: Path) -> None:
        """Load a checkpoint through the bridge."""
        self.bridge.load_weights([self.model], str(folder))

    def exported(self) -> dict[str, torch.Tensor]:
        """What weight sync and checkpoints would get, on the CPU."""
        return {name: tensor.detach().cpu() for name, tensor in self.bridge.export_weights([self.model])}

    def output(self, sequences: Sequence[torch.Tensor], batches: str) -> torch.Tensor:
        """Logits, or values, of all tokens, one sequence after the other; as verl's engine computes them.

        Args:
            sequences: Token ids of each.
            batches: ``packed`` or ``padded``.
        """
        ids = torch.nested.as_nested_tensor([one.to(self._device) for one in sequences], layout=torch.jagged)
        forward = get_mcore_engine_forward_fn(self._hf_config)
        found = forward(self.model, ids, {}, value_model=self._value, pad_token_id=0, data_format=_FORMATS[batches])
        rows: torch.Tensor = found.values()
        return rows.unsqueeze(-1) if self._value else rows

    def gradients(self, output: torch.Tensor, direction: torch.Tensor) -> dict[str, torch.Tensor]:
        """Gradients of ``(output * direction).sum()``, under the names of the checkpoint.

        The bridge itself translates them, as if they were the weights. What is frozen has none.
        """
        self.model.zero_grad(set_to_none=True)
        (output * direction.to(output.device)).sum().backward()
        frozen = set(self.frozen())
        own = [(parameter, parameter.data) for parameter in self.model.parameters()]
        for parameter, _ in own:
            parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        gradients = self.exported()
        for parameter, data in own:
            parameter.data = data
        return {name: tensor for name, tensor in gradients.items() if name not in frozen}

    def frozen(self) -> list[str]:
        """Names in the checkpoint of what is not trained."""
        return [
            hf_name
            for name, tensor in self.model.state_dict(keep_vars=True).items()
            if "_extra_state" not in name and not getattr(tensor, "requires_grad", False)
            for hf_name in self.names(name)
        ]

    def names(self, name: str) -> list[str]:
        """The checkpoint's names of a tensor of this model."""
        names: list[str] = self.bridge._weight_name_mapping_mcore_to_hf(name)
        return names

    def activations(self, sequence: torch.Tensor, batches: str) -> dict[str, torch.Tensor]:
        """What one sequence is on its way, (tokens, channels) by place."""
        found: dict[str, torch.Tensor] = {}
        with torch.no_grad(), recorded(megatron_places(self.model), found):
            self.output([sequence], batches)
        return {name: tensor[: len(sequence), 0] for name, tensor in found.items()}

    def norm_epsilons(self) -> dict[str, float]:
        """Epsilon of every norm, by module name."""
        found = {}
        for name, module in self.model.named_modules():
            if hasattr(module, "layer_norm_weight"):
                found[name] = getattr(module, "eps", self.bridge.config.layernorm_epsilon)
            elif "norm" in type(module).__name__.lower() and isinstance(getattr(module, "eps", None), float):
                found[name] = module.eps
        return found


def _set_rope_theta(hf_config: Any) -> None:
    """As verl's engine does before it builds the model."""
    try:
        hf_config.rope_theta = get_hf_rope_theta(hf_config)
    except AttributeError:
        return  # a model without rotary positions


def seed() -> None:
    """Seed Megatron's generators, which it needs to build anything."""
    tensor_parallel.model_parallel_cuda_manual_seed(0)
