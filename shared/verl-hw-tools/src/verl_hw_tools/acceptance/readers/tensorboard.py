# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard event files, read with tensorboard's own loader."""

import struct
from pathlib import Path

from verl_hw_tools.acceptance.requirements import needed
from verl_hw_tools.acceptance.run import RunBuilder
from verl_hw_tools.errors import DamagedLogError

# A TFRecord: length (8 bytes), its checksum (4), the data, its checksum (4).
_HEADER, _CHECKSUM = 8, 4


def is_event_file(path: Path, head: bytes) -> bool:
    """Whether this is an event file, by its first record or, where that is broken, by its name."""
    return b"brain.Event:" in head[:64] or "tfevents" in path.name


def read(path: Path, builder: RunBuilder) -> None:
    """Add all scalars of one event file."""
    with needed("tensorboard"):
        from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
    expected = _records(path)
    loaded = 0
    for event in LegacyEventFileLoader(str(path)).Load():
        loaded += 1
        for value in event.summary.value:
            number = _scalar(value)
            if number is not None:
                builder.add(event.step, {value.tag: number})
    # The loader stops silently at a record whose checksum is wrong.
    if loaded < expected:
        raise DamagedLogError(
            f"{path}: record {loaded + 1} of {expected} is damaged (its checksum is wrong). Copy the file again from "
            "where it was written"
        )


def _scalar(value: object) -> float | None:
    kind = value.WhichOneof("value")  # type: ignore[attr-defined] # a protobuf message
    if kind == "simple_value":
        return float(value.simple_value)  # type: ignore[attr-defined]
    if kind == "tensor":
        numbers = value.tensor.float_val or value.tensor.double_val  # type: ignore[attr-defined]
        return float(numbers[0]) if len(numbers) == 1 else None
    return None


def _records(path: Path) -> int:
    """Count the records by their lengths.

    Raises:
        DamagedLogError: The file ends within a record.
    """
    size, at, count = path.stat().st_size, 0, 0
    with path.open("rb") as file:
        while at < size:
            file.seek(at)
            header = file.read(_HEADER)
            if len(header) == _HEADER:
                at += _HEADER + struct.unpack("<Q", header)[0] + 2 * _CHECKSUM
                count += 1
            if len(header) < _HEADER or at > size:
                raise DamagedLogError(
                    f"{path} ends within its record {count}: it is cut off, or training still writes it. Copy it "
                    "again when training has ended"
                )
    return count
