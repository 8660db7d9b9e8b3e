# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The reward's curve as a picture; drawn with matplotlib, which may be missing."""

import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from verl_hw_tools.demo.rl.metrics import RlStep

HOW_TO_GET = "pip install matplotlib"
_SUBTITLE_WIDTH = 110
_INK, _QUIET, _BAND, _OTHER = "#1f4e79", "#666666", "#c9dcef", "#b5542b"


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(steps: Sequence[RlStep], title: str, subtitle: str, path: Path) -> None:
    """Draw mean reward with the range of single answers, and below it gradient norm and KL divergence.

    Args:
        steps: What was logged.
        title: First line.
        subtitle: Second line, smaller.
        path: The PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    numbers = [step.number for step in steps]
    figure = Figure(figsize=(8, 6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.2))
    figure.suptitle(title, x=0.02, ha="left", fontsize=13, fontweight="bold")

    upper.set_title(textwrap.fill(subtitle, _SUBTITLE_WIDTH), loc="left", fontsize=9, color=_QUIET)
    upper.fill_between(
        numbers,
        [step.lowest for step in steps],
        [step.highest for step in steps],
        color=_BAND,
        alpha=0.6,
        label="lowest to highest answer",
        linewidth=0,
    )
    upper.plot(numbers, [step.reward for step in steps], color=_INK, marker="o", markersize=4, label="mean reward")
    for step, offset in ((steps[0], (0, 9)), (steps[-1], (0, -17))):
        place = {"textcoords": "offset points", "xytext": offset, "ha": "center"}
        upper.annotate(f"{step.reward:.2f}", (step.number, step.reward), color=_INK, **place)
    upper.set_ylim(-0.03, 1.05)
    upper.set_ylabel("reward")
    upper.legend(loc="lower right", frameon=False, fontsize=9)

    lower.plot(numbers, [step.grad_norm for step in steps], color=_INK, label="gradient norm")
    lower.plot(numbers, [step.kl for step in steps], color=_OTHER, linestyle="--", label="KL from the first policy")
    lower.set_ylim(bottom=0)
    lower.set_xlabel("training step")
    lower.legend(loc="lower left", bbox_to_anchor=(0, 0.96), ncols=2, frameon=False, fontsize=9)
    lower.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    lower.set_xlim(numbers[0] - 0.5, numbers[-1] + 0.5)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
        axes.set_axisbelow(True)
    with path.open("wb") as file:
        figure.savefig(file, format="png")
