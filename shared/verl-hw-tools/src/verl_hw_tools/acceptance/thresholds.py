# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The thresholds of acceptance: each with its reason, adjustable by ``--set NAME=VALUE`` or a TOML file."""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from verl_hw_tools.acceptance.requirements import needed
from verl_hw_tools.acceptance.run import LEAST_STEPS
from verl_hw_tools.errors import AcceptanceSettingError


def _threshold(value: float, reason: str, low: float = 0.0, high: float = math.inf) -> Any:
    return field(default=value, metadata={"reason": reason, "low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What a run is held against; the reason of each stands beside it and in every report."""

    steps: int = _threshold(100, "the field's criterion speaks of the first 100 steps", LEAST_STEPS)
    onset_step: int = _threshold(20, "the field's criterion: the trend starts within the first 20 steps", 1)
    trend_p: float = _threshold(
        0.01,
        "one flat curve in a hundred may look like a trend when neighbouring steps are independent; up to 1 in 20 when "
        "they hang together (measured: first-order autocorrelation 0.7)",
        0.0,
        0.5,
    )
    least_rise: float = _threshold(
        0.05, "a rise that one sees, for a reward between 0 and 1; set it for a reward of another range"
    )
    noise_factor: float = _threshold(3.0, "differences below three standard errors are noise")
    collapse_share: float = _threshold(
        0.3, "a dip of less than a third of what had been gained is common on the way up", 0.0, 1.0
    )
    level_tolerance: float = _threshold(
        0.15, "final level: share of the reference's rise by which seeds of a healthy run may differ"
    )
    shape_tolerance: float = _threshold(
        0.15, "distance of the curves (root mean square): share of the reference's rise, as above"
    )
    grad_norm_factor: float = _threshold(
        1.4, "the smallest error of a world size is a factor of 2; its square root lies halfway to no error", 1.0
    )
    kl_factor: float = _threshold(3.0, "the divergence grows over orders of magnitude and differs between seeds", 1.0)
    entropy_tolerance: float = _threshold(0.25, "mean distance as a share of the reference's mean entropy")
    length_tolerance: float = _threshold(0.25, "mean distance as a share of the reference's mean response length")
    most_update_kl: float = _threshold(
        0.05, "one batch must not move the policy further than the clip range of 0.2 is made for (0.2 squared is 0.04)"
    )
    most_probs_diff: float = _threshold(
        0.02, "bf16 rollout against bf16 training stays below about 0.01; stale weights exceed it"
    )
    least_probs_correlation: float = _threshold(
        0.99, "0.999 is reported for a matching rollout; stale weights fall well below", -1.0, 1.0
    )
    most_rollout_kl: float = _threshold(
        0.01, "rollout and trainer compute the same policy: only rounding is left, 0.001 or less"
    )
    gap_growth: float = _threshold(
        10.0,
        "the gap of a healthy stack is rounding and stays of one size; it grows when the rollout stops getting weights",
        1.0,
    )
    gap_floor: float = _threshold(0.001, "growth below this divergence (k3) is of no consequence")
    smoothing: int = _threshold(9, "steps in the moving average: long against the noise, short against 100 steps", 1)

    def __post_init__(self) -> None:
        for one in fields(self):
            _check(one.name, getattr(self, one.name), one.metadata)

    def changed(self, values: Mapping[str, float]) -> "Thresholds":
        """Return a copy with other values.

        Raises:
            AcceptanceSettingError: A name is unknown or a value cannot be right.
        """
        unknown = [name for name in values if name not in names()]
        if unknown:
            near = get_close_matches(unknown[0], names(), n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise AcceptanceSettingError(f"unknown threshold {unknown[0]!r}: {hint}There are {', '.join(names())}")
        whole = {one.name for one in fields(self) if one.type is int}
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise AcceptanceSettingError(f"threshold {name} must be a number, found {value!r}")
            if name in whole and not float(value).is_integer():
                raise AcceptanceSettingError(f"threshold {name} must be a whole number, found {value}")
        typed: dict[str, Any] = {name: int(one) if name in whole else float(one) for name, one in values.items()}
        return replace(self, **typed)

    @property
    def adjusted(self) -> dict[str, float]:
        """The values that differ from the defaults."""
        return {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}


def names() -> list[str]:
    """Return the names of all thresholds."""
    return [one.name for one in fields(Thresholds)]


def reasons() -> dict[str, str]:
    """Return the reason of each threshold."""
    return {one.name: one.metadata["reason"] for one in fields(Thresholds)}


def from_file(path: Path) -> dict[str, float]:
    """Read values from a TOML file with lines ``name = value``.

    Raises:
        AcceptanceSettingError: It cannot be read, or is no such file.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        with needed("tomli"):
            import tomli as tomllib
    try:
        return dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise AcceptanceSettingError(
            f"{path} cannot be used: wanted TOML with lines such as least_rise = 0.1, found: {error}"
        ) from error


def from_words(words: Iterable[str]) -> dict[str, float]:
    """Read values from words ``name=value``.

    Raises:
        AcceptanceSettingError: A word is of another form.
    """
    values = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            values[name.strip()] = float(value)
        except ValueError as error:
            raise AcceptanceSettingError(f"wanted NAME=NUMBER as in least_rise=0.1, found {word!r}") from error
    return values


def _check(name: str, value: float, limits: Mapping[str, Any]) -> None:
    if not limits["low"] <= value <= limits["high"] or not math.isfinite(value):
        upper = f" and {limits['high']}" if math.isfinite(limits["high"]) else ""
        joined = "between" if upper else "at least"
        raise AcceptanceSettingError(f"threshold {name} must be {joined} {limits['low']}{upper}, found {value}")
