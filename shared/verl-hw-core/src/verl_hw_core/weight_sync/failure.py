# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""One failure as all ranks tell it: which rank, which bucket, which tensor, and why."""

from dataclasses import asdict, dataclass
from typing import Any

from verl_hw_core.errors import WeightTransferError

_LONGEST_TEXT = 2000  # of what a peer sent


@dataclass(frozen=True)
class Failure:
    """What went wrong, in a form that travels as JSON.

    Attributes:
        reason: What was wanted and what was found.
        rank: Rank in the weight-sync group that failed, None when unknown.
        bucket: Number of the bucket, counted from 0; None before the first one.
        tensor: Name of the tensor, or of the first and last one of the bucket.
    """

    reason: str
    rank: int | None = None
    bucket: int | None = None
    tensor: str | None = None

    def error(self, roster: list[str]) -> WeightTransferError:
        """Return the exception that every rank raises; ``roster`` says who each rank is."""
        if self.rank is not None and 0 <= self.rank < len(roster):
            who = f"rank {self.rank} ({roster[self.rank]})"
        else:
            who = "an unknown rank"
        where = "before the first bucket" if self.bucket is None else f"bucket {self.bucket}"
        tensor = f", tensor {self.tensor}" if self.tensor else ""
        return WeightTransferError(
            f"weight sync failed at {who}, {where}{tensor}: {self.reason}",
            rank=self.rank,
            bucket=self.bucket,
            tensor=self.tensor,
        )

    def as_message(self) -> dict[str, Any]:
        """Return the JSON object that peers get."""
        return {"error": asdict(self)}

    @classmethod
    def from_message(cls, fields: Any) -> "Failure":
        """Read what :meth:`as_message` wrote; anything malformed becomes unknown."""
        found = fields if isinstance(fields, dict) else {}
        numbers = {name: found.get(name) if type(found.get(name)) is int else None for name in ("rank", "bucket")}
        tensor = found.get("tensor")
        return cls(
            reason=str(found.get("reason", "no reason given"))[:_LONGEST_TEXT],
            tensor=tensor[:_LONGEST_TEXT] if isinstance(tensor, str) else None,
            **numbers,
        )


class FailureFoundError(Exception):
    """Carries a :class:`Failure` to where the engine tells all ranks of it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure
