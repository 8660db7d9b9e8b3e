# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The replica's model: built empty or loaded, put to sleep, filled by syncs; it generates only when that is right."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from verl_hw_core.errors import RolloutNotReadyError
from verl_hw_core.rollout.batching import Request
from verl_hw_core.rollout.generation import Generator
from verl_hw_core.rollout.weights import Piece, WeightSync

_NEVER_SYNCED = "no weights have come from the trainer yet (rollout.load_format=dummy): sync them before generating"
_ASLEEP = "the rollout is asleep: wake it before generating"
_DROPPED = "sleeping dropped the weights: sync them from the trainer before generating"
_SYNCING = "a weight sync has begun and not ended"


class BringupModel:
    """A model on one device, and whether its weights are what the trainer meant. All calls come from one thread.

    Args:
        module: A causal language model of transformers. Its parameters may be on the meta device.
        dtype: The parameters' dtype.
        device: Where the model lives when awake.
        generator: Makes the generator for the module.
        empty_cache: Returns memory that torch keeps for later to the device, where another process needs it.
        loaded: Whether the module has weights to generate with.
    """

    def __init__(
        self,
        module: Any,
        dtype: torch.dtype,
        device: torch.device,
        generator: Callable[[Any], Generator],
        empty_cache: Callable[[], None],
        *,
        loaded: bool,
    ) -> None:
        self._device = device
        self._empty_cache = empty_cache
        self._module = module.eval()
        # Not module.to(dtype): that would round the buffers of the position embedding too.
        _replace_parameters(self._module, lambda one: one.to(dtype) if one.is_floating_point() else one)
        self._sync: WeightSync | None = None
        self._unready = None if loaded else _NEVER_SYNCED
        self._bring_to_device()
        self._generator = generator(self._module)

    @property
    def unready(self) -> str | None:
        """Why the model cannot generate, or None."""
        return self._unready

    def generate(self, batch: Sequence[Request]) -> None:
        """Answer the requests.

        Raises:
            RolloutNotReadyError: The weights are not there.
            GenerationError: The model's output is not finite.
        """
        if self._unready is not None:
            raise RolloutNotReadyError(f"rollout cannot generate: {self._unready}")
        self._generator.generate(batch, self._device)

    def begin_sync(self) -> None:
        """Expect the weights of another step."""
        self.wake()
        self._unready = _SYNCING
        self._sync = WeightSync(self._module)

    def load(self, pieces: Sequence[Piece]) -> None:
        """Take a bucket of the sync.

        Raises:
            RolloutNotReadyError: No sync has begun.
            WeightSyncError: See :class:`~verl_hw_core.rollout.weights.WeightSync`; the model cannot generate then.
        """
        with self._running_sync() as sync:
            sync.load(pieces)

    def finish_sync(self) -> int:
        """End the sync and return the number of tensors that came.

        Raises:
            RolloutNotReadyError: No sync has begun.
            WeightSyncError: Parameters are missing; the model cannot generate then.
        """
        with self._running_sync() as sync:
            count = sync.finish()
        self._sync = self._unready = None
        return count

    def cancel_sync(self, reason: str) -> None:
        """Give the sync up; the weights are partly new, so that the model cannot generate."""
        self._sync = None
        self._unready = f"the last weight sync failed: {reason}"

    def sleep(self, level: int) -> None:
        """Free the device: level 1 keeps the weights on the host, level 2 drops them."""
        if level == 1:
            self._move(torch.device("cpu"))
            self._unready = self._unready or _ASLEEP
        else:
            _replace_parameters(self._module, lambda one: torch.empty_like(one, device="meta"))
            self._unready = _DROPPED
        self.release_memory()

    def release_memory(self) -> None:
        """Return what earlier batches used to the device."""
        self._empty_cache()

    def wake(self) -> None:
        """Bring the weights back to the device, or make room for new ones. Awake, it changes nothing."""
        self._bring_to_device()
        if self._unready == _ASLEEP:
            self._unready = None

    @contextmanager
    def _running_sync(self) -> Iterator[WeightSync]:
        """The sync that has begun; what fails in it ends it."""
        if self._sync is None:
            raise RolloutNotReadyError(f"no weight sync is running: {self._unready or 'begin one first'}")
        try:
            yield self._sync
        except Exception as error:
            self.cancel_sync(str(error))
            raise

    def _bring_to_device(self) -> None:
        if any(parameter.is_meta for parameter in self._module.parameters()):
            _replace_parameters(self._module, lambda one: torch.empty_like(one, device=self._device))
        self._move(self._device)

    def _move(self, device: torch.device) -> None:
        _replace_parameters(self._module, lambda one: one.to(device))
        for module in self._module.modules():
            for name, buffer in list(module.named_buffers(recurse=False, remove_duplicate=False)):
                setattr(module, name, buffer.to(device))


def _replace_parameters(module: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Put ``change(parameter)`` in every parameter's place; what is tied stays tied."""
    changed: dict[int, torch.nn.Parameter] = {}
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False, remove_duplicate=False)):
            if id(parameter) not in changed:
                value = change(parameter.data)
                changed[id(parameter)] = torch.nn.Parameter(value, requires_grad=False)
            setattr(part, name, changed[id(parameter)])
