"""Figures of experiment 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from orcast.plots import GREY, INK
from research.experiments.methods import EXPERT, LAST, OURS
from research.experiments.recalibration import ORCA, Chance, Setting, perfect_qce
from research.experiments.recalibration_tables import ISOTONIC, LEARNING, TITLES, learning_curve
from research.output import styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
SHAPES = {"gradient-tree": "s", "network": "o", "hoeffding-tree": "^", "marginal": "D"}
DASHED = (0, (4, 2))


def _size(points: float, shape: str) -> float:
    """Size of a marker; a star must be larger to look as large."""
    return 1.6 * points if shape == "*" else points


def _line(label: str, **style: Any) -> Any:
    """Entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)


def _band(label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=GREY, alpha=0.3, lw=0, label=label)


Panel = tuple["Axes", list[Setting]]


@contextmanager
def _figure(settings: Sequence[Setting], perfect: Chance, height: float) -> Iterator[tuple[Figure, list[Panel]]]:
    """Figure with a panel for each series by QCE, and the QCE of a perfect forecaster."""
    own = {o.series: [each for each in settings if each.series == o.series] for o in settings}
    with styled_figure(height) as figure:
        grid = figure.subplots(1, len(own), sharey=True, sharex=True, squeeze=False)[0]
        for axes, series in zip(grid, own, strict=True):
            axes.set(title=series, xlabel="QCE", xscale="log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.axvspan(perfect.low, perfect.high, color=GREY, alpha=0.18, lw=0)
        yield figure, list(zip(grid, own.values(), strict=True))


def qce_figure(settings: Sequence[Setting], perfect: Chance) -> Figure:
    """QCE by setting and method: means with the range of the runs, beside chance and the paper's ORCA."""
    with _figure(settings, perfect, 5.6) as (figure, panels):
        for axes, own in panels:
            axes.axvline(perfect.mean, color=GREY, lw=1.0, ls=DASHED)
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
        handles = [
            _line(method, color=color, marker=shape, ls="", ms=_size(7.0, shape), mec="white")
            for method, (color, shape) in MARKERS.items()
        ]
        if any(o.paper for o in settings):
            handles.append(_line("ORCA in the paper", color=MARKERS[ORCA][0], marker="x", ls="", mew=1.6))
        handles.append(_band("a perfect forecaster: mean, and 90% of cases"))
        figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.6)
    return figure


def trade_figure(settings: Sequence[Setting], perfect: Chance) -> Figure:
    """CRPS relative to the expert against QCE, means over the runs: left is calibrated, down is accurate."""
    with _figure(settings, perfect, 5.4) as (figure, panels):
        for axes, own in panels:
            axes.axhline(1.0, color=GREY, lw=0.8)
            for setting in own:
                for method, (color, _) in MARKERS.items():
                    x, y = setting.mean(method, "qce"), setting.relative(setting.of(method), "crps")
                    axes.plot(x, y, SHAPES[setting.learner], color=color, ms=7.5, mec="white", mew=0.7)
            axes.set_yscale("log")
            _tick_ratios(axes)
        panels[0][0].set_ylabel("CRPS relative to the expert's")
        handles = [
            _line(method, color=color, marker="o", ls="", ms=7.0, mec="white") for method, (color, _) in MARKERS.items()
        ]
        handles += [
            _line(f"on {TITLES[learner]}", color="white", marker=SHAPES[learner], ls="", ms=7.0, mec=INK)
            for learner in dict.fromkeys(o.learner for o in settings)
        ]
        handles.append(_band("a perfect forecaster, 90% of cases"))
        figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.6)
    return figure


def learning_figure(settings: Sequence[Setting]) -> Figure:
    """QCE and relative CRPS of the first rounds, by series, beside chance."""
    names = list(dict.fromkeys(setting.series for setting in settings))
    with styled_figure(7.4) as figure:
        panels = figure.subplots(2, len(names), sharex=True, sharey="row", squeeze=False)
        for name, (error, score) in zip(names, panels.T, strict=True):
            own = [setting for setting in settings if setting.series == name]
            for axes, what in ((error, "qce"), (score, "crps")):
                axes.set(xscale="log", yscale="log")
                for method in LEARNING:
                    curve = learning_curve(own, method, what)
                    color, shape = MARKERS[method]
                    look = {"color": color, "marker": shape, "ms": _size(4.5, shape), "mew": 0.0}
                    axes.plot(list(curve), list(curve.values()), lw=2.0 if method == OURS else 1.3, **look)
            times = np.array(list(curve))
            error.plot(times, [perfect_qce(t) for t in times], color=INK, lw=1.2, ls=DASHED)
            error.set(title=name)
            score.set(xlabel="rounds so far, T", xlim=(0.93 * times[0], 1.07 * times[-1]))
            ticks = [t for t in (20, 50, 100, 200, 500, 1000) if times[0] <= t <= times[-1]]
            score.set_xticks(ticks, [f"{t:,}" for t in ticks])
            score.set_xticks([], minor=True)
            error.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        _tick_ratios(panels[1, 0])
        panels[0, 0].set_ylabel("QCE of the first T rounds")
        panels[1, 0].set_ylabel("CRPS relative to the expert's")
        handles = [_line(name, color=MARKERS[name][0], marker=MARKERS[name][1], lw=1.5) for name in LEARNING]
        handles.append(_line("a perfect forecaster, mean", color=INK, lw=1.2, ls=DASHED))
        figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.6)
    return figure


def _tick_ratios(axes: Axes) -> None:
    low, high = axes.get_ylim()
    ticks = [tick for tick in (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
