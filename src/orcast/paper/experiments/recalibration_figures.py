"""The figures of experiment 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from orcast.paper.experiments.methods import OURS, WINDOW
from orcast.paper.experiments.output import styled_figure
from orcast.paper.experiments.recalibration_runs import EXPERT, ISOTONIC, LAST, ORCA, Chance, SettingResult, perfect_qce
from orcast.paper.experiments.recalibration_tables import LEARNING, TITLES, learning_curve
from orcast.plots import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, each with a shape of its own.
MARKERS: dict[str, tuple[str, str]] = {
    EXPERT: (INK, "o"),
    LAST: ("#8A8A8A", "P"),
    ISOTONIC: ("#E69F00", "s"),
    f"isotonic, last {WINDOW}": ("#CC79A7", "D"),
    "ACI per level": ("#56B4E9", "^"),
    "conformal PID": ("#009E73", "v"),
    ORCA: ("#D55E00", "h"),
    OURS: ("#0072B2", "*"),
}
SHAPES = {"gradient-tree": "s", "network": "o", "hoeffding-tree": "^", "marginal": "D"}
STAR = 1.6  # a star must be larger to look as large


def qce_figure(outcomes: Sequence[SettingResult], perfect: Chance) -> Figure:
    """QCE by setting and method: means with the range of the runs, beside chance and the paper's ORCA."""
    from matplotlib.lines import Line2D

    with _figure(outcomes, perfect, height=5.6) as (figure, panels):
        for axes, (_, own) in panels:
            axes.axvline(perfect.mean, color=GREY, lw=1.0, ls=(0, (4, 2)))
            for row, outcome in enumerate(own):
                for place, (method, (color, shape)) in enumerate(MARKERS.items()):
                    at = row + 0.105 * (place - (len(MARKERS) - 1) / 2)
                    values = [s.qce for s in outcome.of(method)]
                    axes.plot([min(values), max(values)], [at, at], color=color, lw=1.6, alpha=0.55)
                    size = 6.0 * (STAR if shape == "*" else 1.0)
                    axes.plot(np.mean(values), at, shape, color=color, ms=size, mec="white", mew=0.6)
                    theirs = outcome.paper.get(method)
                    if method == ORCA and theirs is not None:
                        axes.plot(theirs[0], at, "x", color=color, ms=6.5, mew=1.6)
                if row:
                    axes.axhline(row - 0.5, color=GREY, lw=0.4)
            axes.set_ylim(len(own) - 0.5, -0.5)
            axes.set_yticks(range(len(own)), [TITLES[o.learner] for o in own])
            axes.tick_params(axis="y", length=0)
        handles = _method_handles()
        if any(o.paper for o in outcomes):
            color = MARKERS[ORCA][0]
            handles.append(Line2D([], [], color=color, marker="x", ls="", mew=1.6, label="ORCA in the paper"))
        handles += [_band("a perfect forecaster: mean, and 90% of cases")]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.6)
    return figure


def trade_figure(outcomes: Sequence[SettingResult], perfect: Chance) -> Figure:
    """CRPS relative to the expert against QCE, means over the runs: left is calibrated, down is accurate."""
    from matplotlib.lines import Line2D

    with _figure(outcomes, perfect, height=5.4) as (figure, panels):
        for axes, (_, own) in panels:
            axes.axhline(1.0, color=GREY, lw=0.8)
            for outcome in own:
                for method, (color, _) in MARKERS.items():
                    x, y = outcome.mean(method, "qce"), outcome.relative(outcome.of(method), "crps")
                    axes.plot(x, y, SHAPES[outcome.learner], color=color, ms=7.5, mec="white", mew=0.7)
            axes.set_yscale("log")
            _tick_ratios(axes)
        panels[0][0].set_ylabel("CRPS relative to the expert's")
        handles = _method_handles(round_markers=True)
        handles += [
            Line2D([], [], color="white", marker=SHAPES[learner], ls="", ms=7.0, mec=INK, label=f"on {TITLES[learner]}")
            for learner in dict.fromkeys(o.learner for o in outcomes)
        ]
        handles += [_band("a perfect forecaster, 90% of cases")]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.6)
    return figure


def learning_figure(outcomes: Sequence[SettingResult]) -> Figure:
    """QCE and relative CRPS of the first rounds, by series, beside chance: how fast each method learns."""
    names = list(dict.fromkeys(outcome.series for outcome in outcomes))
    with styled_figure(7.4) as figure:
        panels = figure.subplots(2, len(names), sharex=True, sharey="row", squeeze=False)
        for name, (error, score) in zip(names, panels.T, strict=True):
            own = [outcome for outcome in outcomes if outcome.series == name]
            for axes, what in ((error, "qce"), (score, "crps")):
                axes.set(xscale="log", yscale="log")
                for method in LEARNING:
                    curve = learning_curve(own, method, what)
                    color, shape = MARKERS[method]
                    size, width = 4.5 * (STAR if shape == "*" else 1.0), 2.0 if method == OURS else 1.3
                    axes.plot(list(curve), list(curve.values()), color=color, marker=shape, ms=size, mew=0.0, lw=width)
            times = np.array(list(curve))
            error.plot(times, [perfect_qce(t) for t in times], color=INK, lw=1.2, ls=(0, (4, 2)))
            error.set(title=name)
            score.set(xlabel="rounds so far, T", xlim=(0.93 * times[0], 1.07 * times[-1]))
            ticks = [t for t in (20, 50, 100, 200, 500, 1000) if times[0] <= t <= times[-1]]
            score.set_xticks(ticks, [f"{t:,}" for t in ticks])
            score.set_xticks([], minor=True)
            error.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        _tick_ratios(panels[1, 0])
        panels[0, 0].set_ylabel("QCE of the first T rounds")
        panels[1, 0].set_ylabel("CRPS relative to the expert's")
        figure.legend(handles=_curve_handles(), loc="outside lower center", ncols=5, columnspacing=1.6)
    return figure


def _curve_handles() -> list[Any]:
    from matplotlib.lines import Line2D

    chance = Line2D([], [], color=INK, lw=1.2, ls=(0, (4, 2)), label="a perfect forecaster, mean")
    return [
        *(
            Line2D([], [], color=MARKERS[method][0], marker=MARKERS[method][1], lw=1.5, label=method)
            for method in LEARNING
        ),
        chance,
    ]


Panel = tuple["Axes", tuple[str, list[SettingResult]]]


@contextmanager
def _figure(
    outcomes: Sequence[SettingResult], perfect: Chance, *, height: float
) -> Iterator[tuple[Figure, list[Panel]]]:
    """A figure with a panel for each series and its outcomes, by QCE, with the QCE of a perfect forecaster."""
    own = {o.series: [each for each in outcomes if each.series == o.series] for o in outcomes}
    with styled_figure(height) as figure:
        grid = figure.subplots(1, len(own), sharey=True, sharex=True, squeeze=False)[0]
        for axes, series in zip(grid, own, strict=True):
            axes.set(title=series, xlabel="QCE", xscale="log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.axvspan(perfect.low, perfect.high, color=GREY, alpha=0.18, lw=0)
        yield figure, list(zip(grid, own.items(), strict=True))


def _tick_ratios(axes: Axes) -> None:
    low, high = axes.get_ylim()
    ticks = [tick for tick in (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)


def _method_handles(*, round_markers: bool = False) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=color, marker=mark, ls="", ms=7.0 * (STAR if mark == "*" else 1.0), mec="white",
               label=method)
        for method, (color, shape) in MARKERS.items()
        for mark in ["o" if round_markers else shape]
    ]  # fmt: skip


def _band(label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=GREY, alpha=0.3, lw=0, label=label)
