# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The server's side of a weight sync: every tensor of the model arrives whole, once, and fits, or the sync fails."""

from collections.abc import Sequence
from typing import Any

import torch

from verl_hw_core.errors import WeightSyncError
from verl_hw_core.rollout.transfer import Piece

_NAMED = 8


class WeightSync:
    """One sync, from its first bucket to its last.

    A parameter that the model knows under two names (tied embeddings) may come under one of them or under both; then
    both must hold the same numbers. Floating-point tensors are converted to the rollout's dtype, as vLLM does: the
    trainer keeps its weights in fp32 where the rollout has bf16. Persistent buffers may come, parameters must.

    Args:
        model: The model to write to.
    """

    def __init__(self, model: Any) -> None:
        self._targets: dict[str, torch.Tensor] = dict(model.state_dict())
        storage = {name: _place(tensor) for name, tensor in self._targets.items()}
        self._twins = {name: [other for other in storage if storage[other] == storage[name]] for name in storage}
        parameters = {_place(parameter.data) for parameter in model.parameters()}
        self._required = [name for name in storage if storage[name] in parameters]
        self._received: dict[str, int] = {}

    def load(self, pieces: Sequence[Piece]) -> None:
        """Write a bucket to the model.

        Raises:
            WeightSyncError: A tensor is unknown, or differs in shape or kind of dtype; the text names the tensors.
        """
        self._refuse_unknown(pieces)
        for piece in pieces:
            target = self._target(piece)
            run = piece.tensor()
            end = piece.start + run.numel()
            if piece.start != self._received.get(piece.name, 0):
                raise WeightSyncError(f"{piece.name}: came twice in one sync, or its pieces came in another order")
            self._received[piece.name] = end
            place = target.view(-1)[piece.start : end]
            if self._written_under_another_name(piece.name):
                self._require_equal(piece.name, place, run)
            else:
                place.copy_(run)

    def finish(self) -> int:
        """Check that everything has come, and return the number of tensors.

        Raises:
            WeightSyncError: Parameters are missing; the text names them.
        """
        partial = [name for name, count in self._received.items() if count != self._targets[name].numel()]
        if partial:
            raise WeightSyncError(f"the sync ended in the middle of {_listed(partial)}")
        missing = [name for name in self._required if not any(twin in self._received for twin in self._twins[name])]
        if missing:
            raise WeightSyncError(
                f"the trainer did not send {_listed(missing)}: the rollout would generate with weights of an earlier "
                "step. Trainer and rollout must load the same model (actor_rollout_ref.model.path)"
            )
        return len(self._received)

    def _refuse_unknown(self, pieces: Sequence[Piece]) -> None:
        unknown = list(dict.fromkeys(piece.name for piece in pieces if piece.name not in self._targets))
        if unknown:
            raise WeightSyncError(
                f"the trainer sent {_listed(unknown)}, which the rollout's model does not have. It has names such as "
                f"{_listed(list(self._targets)[:3])}; trainer and rollout must load the same model "
                "(actor_rollout_ref.model.path)"
            )

    def _target(self, piece: Piece) -> torch.Tensor:
        target = self._targets[piece.name]
        if piece.shape != tuple(target.shape):
            raise WeightSyncError(
                f"{piece.name}: the trainer sent shape {piece.shape}, the rollout's model has {tuple(target.shape)}"
            )
        dtype = getattr(torch, piece.dtype)
        if dtype != target.dtype and not (dtype.is_floating_point and target.dtype.is_floating_point):
            raise WeightSyncError(f"{piece.name}: the trainer sent {dtype}, the rollout's model has {target.dtype}")
        return target

    def _written_under_another_name(self, name: str) -> bool:
        return any(twin in self._received for twin in self._twins[name] if twin != name)

    def _require_equal(self, name: str, place: torch.Tensor, run: torch.Tensor) -> None:
        if not torch.equal(place, run.to(dtype=place.dtype, device=place.device)):
            twins = [twin for twin in self._twins[name] if twin != name and twin in self._received]
            raise WeightSyncError(
                f"{name} and {_listed(twins)} are one tensor in the rollout's model (tied embeddings), but the trainer "
                "sent different values: train them tied, or set tie_word_embeddings to false in the model's config"
            )


def _place(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.untyped_storage().data_ptr(), tensor.storage_offset()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
