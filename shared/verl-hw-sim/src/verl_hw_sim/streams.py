# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Streams, events and device contexts of ``torch.<device>``. Their names and signatures are torch's."""

# ruff: noqa: D102 - torch documents these functions.

from types import ModuleType
from typing import Any

import torch

from verl_hw_sim.device_api import OrdinalBase
from verl_hw_sim.profiles import Profile


class _InstanceOfBase(type):
    """``isinstance`` by device type: torch._C checks streams and events for their exact base class."""

    base: type
    device_name: str

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, cls.base)
            and getattr(instance, "device", None) is not None
            and (
                instance.device.type == cls.device_name  # type: ignore[attr-defined]
            )
        )


class StreamFunctions(OrdinalBase):
    """Streams and events. Work is done when a call returns; they keep the identities and times."""

    def current_stream(self, device: Any = None) -> torch.Stream:
        ordinal = self._ordinal(device)
        return self._stream(ordinal, self._native.current_stream_id(ordinal))

    def default_stream(self, device: Any = None) -> torch.Stream:
        ordinal = self._ordinal(device)
        self._native.check_device(ordinal)
        return self._stream(ordinal, 0)

    def set_stream(self, stream: torch.Stream | None) -> None:
        if stream is not None:
            self._native.set_device(stream.device_index)
            self._native.set_stream_id(stream.device_index, stream.stream_id)

    def _stream(self, ordinal: int, stream_id: int) -> torch.Stream:
        return torch.Stream(stream_id=stream_id, device_index=ordinal, device_type=self._native.device_type)


def make_classes(native: ModuleType, profile: Profile) -> dict[str, Any]:
    """``Stream``, ``Event``, ``stream``, ``device`` and the like, which are classes in torch's modules."""
    functions = StreamFunctions(native, profile)
    return {
        **_stream_classes(profile.device_name, functions),
        **_device_contexts(native, profile.device_name, functions),
        **_stream_contexts(native, functions),
    }


def _stream_classes(name: str, functions: StreamFunctions) -> dict[str, Any]:
    class Stream(metaclass=_InstanceOfBase):
        base = torch.Stream
        device_name = name

        def __new__(cls, device: Any = None, priority: int = 0, **known_stream: Any) -> Any:
            if known_stream:
                return torch.Stream(**known_stream)
            ordinal = functions._ordinal(device)
            return torch.Stream(device=torch.device(name, ordinal), priority=priority)

    class Event(metaclass=_InstanceOfBase):
        base = torch.Event
        device_name = name

        def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Any:
            return torch.Event(device=name, enable_timing=enable_timing, blocking=blocking, interprocess=False)

    return {"Stream": Stream, "Event": Event}


def _device_contexts(native: ModuleType, name: str, functions: StreamFunctions) -> dict[str, Any]:
    class device:  # noqa: N801 - torch's name
        def __init__(self, device: Any) -> None:
            self._ordinal = functions._ordinal(device)
            self._previous = -1

        def __enter__(self) -> None:
            self._previous = native.exchange_device(self._ordinal)

        def __exit__(self, *_: object) -> None:
            native.exchange_device(self._previous)

    class device_of(device):  # noqa: N801 - torch's name
        def __init__(self, tensor: torch.Tensor) -> None:
            super().__init__(tensor.get_device() if tensor.device.type == name else None)

    return {"device": device, "device_of": device_of}


def _stream_contexts(native: ModuleType, functions: StreamFunctions) -> dict[str, Any]:
    class StreamContext:
        def __init__(self, stream: torch.Stream | None) -> None:
            self._stream = stream

        def __enter__(self) -> None:
            if self._stream is None:
                return
            self._device_before = native.current_device()
            self._stream_before = functions.current_stream(self._stream.device_index)
            functions.set_stream(self._stream)

        def __exit__(self, *_: object) -> None:
            if self._stream is not None:
                functions.set_stream(self._stream_before)
                native.set_device(self._device_before)

    def stream(stream: torch.Stream | None) -> StreamContext:
        return StreamContext(stream)

    return {"stream": stream, "StreamContext": StreamContext}
