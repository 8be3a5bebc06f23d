"""Figures of experiment 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from research.experiments.methods import EXPERT, LAST, OURS
from research.experiments.recalibration import ORCA, Chance, Setting
from research.experiments.recalibration_tables import ISOTONIC, TITLES
from research.output import GREY, INK, styled_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, each with a shape of its own.
MARKERS: dict[str, tuple[str, str]] = {
    EXPERT: (INK, "o"),
    LAST: ("#8A8A8A", "P"),
    ISOTONIC: ("#E69F00", "s"),
    "isotonic, last 200": ("#CC79A7", "D"),
    "ACI per level": ("#56B4E9", "^"),
    "conformal PID": ("#009E73", "v"),
    ORCA: ("#D55E00", "h"),
    OURS: ("#0072B2", "*"),
}


def _size(points: float, shape: str) -> float:
    """Size of a marker; a star must be larger to look as large."""
    return 1.6 * points if shape == "*" else points


def qce_figure(settings: Sequence[Setting], perfect: Chance) -> Figure:
    """QCE by setting and method: means with the range of the runs, beside chance and the paper's ORCA."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    by_series = {o.series: [each for each in settings if each.series == o.series] for o in settings}
    with styled_figure(5.6) as figure:
        grid = figure.subplots(1, len(by_series), sharey=True, sharex=True, squeeze=False)[0]
        for axes, (series, own) in zip(grid, by_series.items(), strict=True):
            axes.set(title=series, xlabel="QCE", xscale="log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.axvspan(perfect.low, perfect.high, color=GREY, alpha=0.18, lw=0)
            axes.axvline(perfect.mean, color=GREY, lw=1.0, ls=(0, (4, 2)))
            for row, setting in enumerate(own):
                for place, (method, (color, shape)) in enumerate(MARKERS.items()):
                    at = row + 0.105 * (place - (len(MARKERS) - 1) / 2)
                    values = [s.qce for s in setting.of(method)]
                    axes.plot([min(values), max(values)], [at, at], color=color, lw=1.6, alpha=0.55)
                    axes.plot(np.mean(values), at, shape, color=color, ms=_size(6.0, shape), mec="white", mew=0.6)
                    if method == ORCA and method in setting.paper:
                        axes.plot(setting.paper[method][0], at, "x", color=color, ms=6.5, mew=1.6)
                if row:
                    axes.axhline(row - 0.5, color=GREY, lw=0.4)
            axes.set_ylim(len(own) - 0.5, -0.5)
            axes.set_yticks(range(len(own)), [TITLES[o.learner] for o in own])
            axes.tick_params(axis="y", length=0)
        handles: list[Any] = [
            Line2D([], [], label=method, color=color, marker=shape, ls="", ms=_size(7.0, shape), mec="white")
            for method, (color, shape) in MARKERS.items()
        ]
        if any(o.paper for o in settings):
            color = MARKERS[ORCA][0]
            handles.append(Line2D([], [], label="ORCA in the paper", color=color, marker="x", ls="", mew=1.6))
        handles.append(Patch(color=GREY, alpha=0.3, lw=0, label="a perfect forecaster: mean, and 90% of cases"))
        figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.6)
    return figure
