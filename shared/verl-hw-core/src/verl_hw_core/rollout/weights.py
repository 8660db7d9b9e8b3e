# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A weight sync from trainer to server: every tensor of the model arrives whole, once, and fits, or the sync fails.

On their way are pieces of tensors, in buckets of bounded size. A piece is a run of a tensor's elements as raw bytes, so
that a tensor larger than a bucket simply has several pieces and bfloat16, which numpy does not know, needs no
conversion.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from verl_hw_core.errors import WeightSyncError
from verl_hw_core.rollout.weight_names import other_names


@dataclass(frozen=True)
class Piece:
    """A run of the elements of one tensor.

    Attributes:
        name: The tensor's name.
        shape: Shape of the whole tensor.
        dtype: Its dtype, as ``"float32"``.
        start: First element of the run in the flattened tensor.
        data: The bytes, a one-dimensional numpy array of uint8; Ray passes it through shared memory.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: int
    data: Any

    def tensor(self) -> torch.Tensor:
        """The run as a one-dimensional host tensor."""
        if not self.data.size:
            return torch.empty(0, dtype=getattr(torch, self.dtype))
        # Ray's arrays are read-only, which torch warns of.
        return torch.from_numpy(self.data.copy()).view(getattr(torch, self.dtype))


async def buckets(weights: AsyncIterator[tuple[str, torch.Tensor]], limit: int) -> AsyncIterator[list[Piece]]:
    """Copy tensors to the host, at most ``limit`` bytes at a time.

    Args:
        weights: Names and whole tensors. The next one is asked for only when the one before was copied.
        limit: Bytes of a bucket; at least one element goes into each.

    Yields:
        Pieces that belong to nobody else: the trainer may change its tensors at once.
    """
    bucket: list[Piece] = []
    size = 0
    async for name, tensor in weights:
        for piece in _pieces(name, tensor, limit):
            if bucket and size + piece.data.nbytes > limit:
                yield bucket
                bucket, size = [], 0
            bucket.append(piece)
            size += piece.data.nbytes
    if bucket:
        yield bucket


def _pieces(name: str, tensor: torch.Tensor, limit: int) -> Iterable[Piece]:
    flat = tensor.detach().reshape(-1)
    step = max(1, limit // flat.element_size())
    for start in range(0, max(1, flat.numel()), step):
        run = flat[start : start + step].to("cpu", copy=True).view(torch.uint8).numpy()
        yield Piece(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), start, run)


_NAMED = 8


class _Place(NamedTuple):
    """Where a tensor's elements lie; two names of one tensor have one place."""

    storage: int
    offset: int
    size: int

    def covers(self, other: "_Place") -> bool:
        """Whether the other place, of the same storage, begins inside this one."""
        return self.offset <= other.offset < self.offset + self.size


class WeightSync:
    """The server's side of one sync to a model, from its first bucket to its last.

    A parameter may come under any of its names (:mod:`~verl_hw_core.rollout.weight_names`), or in parts that have names
    of their own: experts, which transformers 5 keeps packed, one by one. What comes twice under two names (tied
    embeddings) must hold the same numbers. Floating-point tensors are converted to the rollout's dtype, as vLLM does:
    the trainer keeps its weights in fp32 where the rollout has bf16. Persistent buffers may come, parameters must.
    """

    def __init__(self, model: Any) -> None:
        self._own: dict[str, torch.Tensor] = dict(model.state_dict())
        self._targets = {**other_names(model, self._own), **self._own}
        self._places = {name: _place(tensor) for name, tensor in self._targets.items()}
        self._names: dict[_Place, list[str]] = {}
        for name, place in self._places.items():
            self._names.setdefault(place, []).append(name)
        parameters = {_place(parameter.data) for parameter in model.parameters()}
        self._required = [name for name in self._own if self._places[name] in parameters]
        self._received: dict[str, int] = {}
        self._gathered: dict[str, torch.Tensor] = {}

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
            twins = [twin for twin in self._names[self._places[piece.name]] if twin in self._received]
            self._received[piece.name] = end
            self._write(piece, target, run, [twin for twin in twins if twin != piece.name])

    def finish(self) -> int:
        """Check that everything has come, and return the number of the model's tensors that did.

        Raises:
            WeightSyncError: Parameters are missing; the text names them.
        """
        partial = [name for name, count in self._received.items() if count != self._targets[name].numel()]
        if partial:
            raise WeightSyncError(f"the sync ended in the middle of {_listed(partial)}")
        came = self._elements()
        twice = [name for name in self._own if came[name] > self._own[name].numel()]
        if twice:
            raise WeightSyncError(f"{_listed(twice)}: came twice in one sync, whole and in parts")
        missing = [
            name + (" (a part of it came)" if came[name] else "")
            for name in self._required
            if came[name] < self._own[name].numel()
        ]
        if missing:
            raise WeightSyncError(
                f"the trainer did not send {_listed(missing)}: the rollout would generate with weights of an earlier "
                "step. Trainer and rollout must load the same model (actor_rollout_ref.model.path)"
            )
        named = self._received.keys() & self._own.keys()
        others = {self._places[name] for name in self._own if came[name]} - {self._places[name] for name in named}
        return len(named) + len(others)

    def _elements(self) -> dict[str, int]:
        """How many elements of each tensor of the model came, under whatever names; what has two counts once."""
        came = {self._places[name] for name in self._received}
        inside: dict[int, list[_Place]] = {}
        for place in came:
            inside.setdefault(place.storage, []).append(place)
        return {
            name: sum(part.size for part in inside.get(whole.storage, ()) if whole.covers(part))
            for name, whole in ((name, self._places[name]) for name in self._own)
        }

    def _write(self, piece: Piece, target: torch.Tensor, run: torch.Tensor, twins: list[str]) -> None:
        end = piece.start + run.numel()
        if target.is_contiguous():
            place = target.view(-1)[piece.start : end]
        else:  # a part that lies apart in its tensor is put together first
            if piece.start == 0:
                self._gathered[piece.name] = target.reshape(-1) if twins else torch.empty_like(target).reshape(-1)
            place = self._gathered[piece.name][piece.start : end]
        if not twins:
            place.copy_(run)
        elif not torch.equal(place, run.to(dtype=place.dtype, device=place.device)):
            raise WeightSyncError(
                f"{piece.name} and {_listed(twins)} are one tensor in the rollout's model (tied embeddings), but "
                "the trainer sent different values: train them tied, or set tie_word_embeddings to false in the "
                "model's config"
            )
        if piece.name in self._gathered and end == target.numel():
            target.copy_(self._gathered.pop(piece.name).view(target.shape))

    def _refuse_unknown(self, pieces: Sequence[Piece]) -> None:
        unknown = list(dict.fromkeys(piece.name for piece in pieces if piece.name not in self._targets))
        if unknown:
            raise WeightSyncError(
                f"the trainer sent {_listed(unknown)}, which the rollout's model does not have. It has names such as "
                f"{_listed(list(self._own)[:3])}; trainer and rollout must load the same model "
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


def _place(tensor: torch.Tensor) -> _Place:
    return _Place(tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.numel())


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
