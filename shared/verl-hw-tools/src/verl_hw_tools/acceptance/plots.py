# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Overlay plots of a run and its references: the reward large, below it what the reward can hide."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verl_hw_tools.acceptance.criterion import Status
from verl_hw_tools.acceptance.judge import Verdict
from verl_hw_tools.acceptance.metrics import (
    ENTROPY,
    GRAD_NORM,
    KL_LOSS,
    PPO_KL,
    PROBS_CORRELATION,
    PROBS_DIFF,
    RESPONSE_LENGTH,
    REWARD,
    ROLLOUT_KL,
)
from verl_hw_tools.acceptance.requirements import needed
from verl_hw_tools.acceptance.run import Run
from verl_hw_tools.errors import OutputFolderError

with needed("matplotlib and scipy"):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from verl_hw_tools.acceptance.statistics import smoothed

PNG_NAME = "verl-hw-accept.png"

_TITLES = {
    REWARD: "mean reward",
    GRAD_NORM: "gradient norm",
    KL_LOSS: "KL to the first weights",
    ENTROPY: "entropy",
    RESPONSE_LENGTH: "response length",
    PROBS_DIFF: "rollout: probabilities apart",
    ROLLOUT_KL: "rollout: divergence (k3)",
    PROBS_CORRELATION: "rollout: correlation",
    PPO_KL: "KL of one update",
}
# Sizes that span orders of magnitude between a good and a bad run.
_LOGARITHMIC = (GRAD_NORM, ROLLOUT_KL, PROBS_DIFF)
# The Okabe-Ito colours: told apart by colour-blind people too.
_OURS, _THEIRS = "#0072B2", "#E69F00"
_GOOD, _BAD, _INK, _PALE = "#1a7f37", "#b42318", "#24292f", "#8c959f"
_COLUMNS = 4


def write_png(verdict: Verdict, path: Path) -> Path:
    """Write the plots as PNG; return the file.

    Args:
        verdict: What is drawn.
        path: A file, or a folder in which it is named ``verl-hw-accept.png``.

    Raises:
        OutputFolderError: It cannot be written.
    """
    target = path / PNG_NAME if path.is_dir() else path
    figure = _figure(verdict)
    colour = _GOOD if verdict.accepted else _BAD
    figure.suptitle(_plain(verdict.headline), color=colour, fontweight="bold", fontsize=16, x=0.01, ha="left")
    FigureCanvasAgg(figure)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=130)
    try:
        target.write_bytes(image.getvalue())
    except OSError as error:
        raise OutputFolderError(f"--png {target} cannot be written: {error.strerror or error}") from error
    return target


def svg(verdict: Verdict) -> str:
    """Return the plots as SVG."""
    figure = _figure(verdict)
    FigureCanvasSVG(figure)
    image = io.StringIO()
    figure.savefig(image, format="svg", metadata={"Date": None})
    return image.getvalue()


def _figure(verdict: Verdict) -> Figure:
    others = [metric for metric in _TITLES if metric != REWARD and verdict.run.has(metric)]
    rows = -(-len(others) // _COLUMNS)
    figure = Figure(figsize=(14, 5.0 + 2.5 * rows), layout="constrained", facecolor="white")
    grid = figure.add_gridspec(rows + 1, _COLUMNS, height_ratios=[1.9, *[1.0] * rows])
    reward = figure.add_subplot(grid[0, :])
    _draw(reward, verdict, REWARD)
    _decorate_reward(reward, verdict)
    for number, metric in enumerate(others):
        _draw(figure.add_subplot(grid[1 + number // _COLUMNS, number % _COLUMNS]), verdict, metric)
    return figure


def _draw(axes: Any, verdict: Verdict, metric: str) -> None:
    for reference in verdict.references:
        if reference.has(metric):
            _curve(axes, reference, metric, verdict, (_THEIRS, 1.6))
    _curve(axes, verdict.run, metric, verdict, (_OURS, 1.9))
    if metric in _LOGARITHMIC and _spread(verdict, metric) > 20:
        axes.set_yscale("log")
    failed = any(one.metric == metric and one.status is Status.FAILED for one in verdict.criteria)
    title = f"FAIL  {_TITLES[metric]}" if failed else _TITLES[metric]
    axes.set_title(title, loc="left", fontsize=10.5, color=_BAD if failed else _INK, fontweight="bold")
    axes.set_xlim(0, max(run.last_step for run in _drawn(verdict, metric)) * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.grid(color="#eaeef2", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8.5, color=_PALE, labelcolor=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_BAD if failed else "#d0d7de")


def _curve(axes: Any, run: Run, metric: str, verdict: Verdict, style: tuple[str, float]) -> None:
    colour, width = style
    broken = set(run.broken(metric))
    # One NaN would take all later steps out of a moving average: smoothed without it, and marked.
    drawn = {step: value for step, value in run.columns[metric].items() if step not in broken}
    for number, step in enumerate(sorted(broken)):
        label = f"{_name(run, verdict)}: no finite number" if number == 0 else None
        axes.axvline(step, color=_BAD, linewidth=0.9, linestyle=(0, (1, 2)), label=label)
    if not drawn:
        return
    steps, values = list(drawn), list(drawn.values())
    axes.plot(steps, values, color=colour, linewidth=0.7, alpha=0.35)
    axes.plot(
        steps, smoothed(values, verdict.limits.smoothing), color=colour, linewidth=width, label=_name(run, verdict)
    )


def _decorate_reward(axes: Any, verdict: Verdict) -> None:
    limits = verdict.limits
    axes.axvspan(0, limits.onset_step, color="#ddf4ff", alpha=0.55, linewidth=0, zorder=0)
    axes.axvline(limits.steps, color=_PALE, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        f"the rise begins by step {limits.onset_step}",
        (limits.onset_step, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, -11),
        textcoords="offset points",
        fontsize=8,
        color=_PALE,
    )
    axes.set_xlabel("training step", fontsize=9, color=_INK)
    axes.legend(loc="lower right", fontsize=9, frameon=True, framealpha=0.9, edgecolor="none")


def _name(run: Run, verdict: Verdict) -> str:
    kind = "run" if run is verdict.run else "reference"
    return _plain(f"{kind}: {Path(run.source).name}")


def _spread(verdict: Verdict, metric: str) -> float:
    logged = [value for run in _drawn(verdict, metric) for value in run.columns[metric].values()]
    values = [value for value in logged if 0 < value < math.inf]
    return max(values) / min(values) if values else 1.0


def _drawn(verdict: Verdict, metric: str) -> Sequence[Run]:
    return [run for run in (verdict.run, *verdict.references) if run.has(metric)]


def _plain(text: str) -> str:
    """Keep matplotlib from reading a file's name as mathematics."""
    return text.replace("$", r"\$")
