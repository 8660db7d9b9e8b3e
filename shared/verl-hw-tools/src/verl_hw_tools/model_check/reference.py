# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The Hugging Face side: a model with random weights, its checkpoint, and what it computes on the CPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from verl_hw_tools.model_check.places import hugging_face_places, recorded

LENGTHS = (9, 5, 12)
SCORE, HEAD = "score.weight", "lm_head.weight"


class Reference:
    """A transformers model in float32 on the CPU.

    Attributes:
        folder: Its checkpoint.
        value_folder: The checkpoint of a critic of the same weights, with a value head.
        weights: The tensors of the checkpoint.
        sequences: Token ids.
    """

    def __init__(self, config: Any, folder: Path) -> None:
        import transformers

        self.model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        self._generator = torch.Generator().manual_seed(0)
        self._randomize()
        self.folder, self.value_folder, self._scratch = folder / "model", folder / "critic", folder / "scratch"
        self.model.save_pretrained(self.folder)
        self.weights = _tensors(self.folder)
        self.sequences = [self._random_ids(length, config.vocab_size) for length in LENGTHS]
        self.score = torch.nn.Parameter(self._random(1, config.hidden_size))
        self._save_critic()

    def _random(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=self._generator)

    def _random_ids(self, length: int, vocabulary: int) -> torch.Tensor:
        return torch.randint(1, vocabulary, (length,), generator=self._generator)

    def _randomize(self) -> None:
        """Every tensor its own: norms around what they begin with, biases not zero."""
        with torch.no_grad():
            for parameter in self.model.parameters():
                noise = 0.1 * self._random(*parameter.shape)
                parameter.copy_(parameter + noise if parameter.dim() == 1 else noise)
            for name, buffer in self.model.named_buffers():
                if name in self.model.state_dict() and buffer.is_floating_point():
                    buffer.add_(0.01 * self._random(*buffer.shape))

    def _save_critic(self) -> None:
        self.value_folder.mkdir()
        self.model.config.save_pretrained(self.value_folder)
        weights = {name: tensor for name, tensor in self.weights.items() if name != HEAD}
        save_file(
            {**weights, SCORE: self.score.detach().clone()},
            self.value_folder / "model.safetensors",
            metadata={"format": "pt"},
        )

    def logits(self) -> torch.Tensor:
        """Logits of all tokens, one sequence after the other."""
        return self._over_sequences(lambda ids: self.model(ids, use_cache=False).logits)

    def values(self) -> torch.Tensor:
        """Values of all tokens, likewise."""
        return self._over_sequences(
            lambda ids: self.model.base_model(ids, use_cache=False).last_hidden_state @ self.score.T
        )

    def _over_sequences(self, compute: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        return torch.cat([compute(ids[None])[0] for ids in self.sequences])

    def gradients(self, output: torch.Tensor, direction: torch.Tensor) -> dict[str, torch.Tensor]:
        """Gradients of ``(output * direction).sum()``, under the names of the checkpoint.

        transformers itself translates its names to the checkpoint's, so the gradients are saved as if they were the
        weights.
        """
        parameters = [*self.model.parameters()]
        found = torch.autograd.grad(
            (output * direction).sum(), [*parameters, self.score], allow_unused=True, retain_graph=False
        )
        own = [parameter.data for parameter in parameters]
        for parameter, gradient in zip(parameters, found[:-1], strict=True):
            parameter.data = torch.zeros_like(parameter) if gradient is None else gradient
        self.model.save_pretrained(self._scratch)
        for parameter, data in zip(parameters, own, strict=True):
            parameter.data = data
        gradients = _tensors(self._scratch)
        buffers = {name for name, _ in self.model.named_buffers()}
        gradients = {name: tensor for name, tensor in gradients.items() if name not in buffers}
        return gradients | ({} if found[-1] is None else {SCORE: found[-1]})

    def activations(self) -> dict[str, torch.Tensor]:
        """What the first sequence is on its way, (tokens, channels) by place."""
        found: dict[str, torch.Tensor] = {}
        with torch.no_grad(), recorded(hugging_face_places(self.model, self.model.config.num_hidden_layers), found):
            self.model(self.sequences[0][None], use_cache=False)
        return {name: tensor[0] for name, tensor in found.items()}

    def norm_epsilons(self) -> dict[str, float]:
        """Epsilon of every norm, by module name."""
        found = {}
        for name, module in self.model.named_modules():
            epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None))
            if "norm" in type(module).__name__.lower() and isinstance(epsilon, float):
                found[name] = epsilon
        return found


def _tensors(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= load_file(path)
    return found
