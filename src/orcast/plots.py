"""Pictures for notebooks and papers: the same as in the report, drawn by matplotlib.

Each takes an `evidence.Evidence` and the axes to draw on, makes a figure if it is given none, and
returns the axes.  matplotlib is imported when a picture is drawn, not before.

>>> import numpy as np
>>> from orcast.evidence import Evidence
>>> y = np.random.default_rng(0).normal(size=200)
>>> evidence = Evidence.of(np.tile([-1.0, 0.0, 1.0], (200, 1)), y, levels=[0.05, 0.5, 0.95])
>>> from matplotlib.figure import Figure
>>> axes = pit(evidence, Figure().add_subplot())
>>> axes.get_title().splitlines()
['Bins beyond what chance allows:', 'as given 4 of 4']
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast import evidence as facts
from orcast.evidence import Evidence
from orcast.evidence.statistics import place_of
from orcast.metrics import LEVELS
from orcast.report import selection as choices
from orcast.report.text import clean, level, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Record",
    "coverage",
    "fan",
    "guarantee",
    "picture",
    "pit",
    "reliability",
    "rolling",
    "save_picture",
    "sharpness",
]

Vector = NDArray[np.float64]

# Orange and blue are told apart with any colour vision; in grey by their dashes.
BLUE, ORANGE, INK, GREY = "#0072B2", "#D55E00", "#222222", "#7a7a7a"
STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.handlelength": 1.9,
}
RESOLUTION = 160
WORDS = {"before": "as given", "after": "recalibrated"}
LINES: dict[str, dict[str, Any]] = {
    "before": {"color": ORANGE, "linestyle": (0, (4, 1.5))},
    "after": {"color": BLUE, "linestyle": "-"},
}
CHANCE: dict[str, Any] = {"color": GREY, "alpha": 0.25, "lw": 0, "label": "chance"}
RIGHT: dict[str, Any] = {"color": INK, "lw": 0.9, "ls": ":"}


@contextmanager
def _drawing(axes: Axes | None) -> Iterator[Axes]:
    """The axes given, as they are, or new ones in the style of the report."""
    _need_matplotlib()
    if axes is not None:
        if not hasattr(axes, "plot"):
            raise TypeError(f"expected matplotlib axes, got {axes!r}")
        yield axes
        return
    from matplotlib import pyplot, rc_context

    with rc_context(STYLE):
        yield pyplot.subplots(figsize=(7.0, 4.2), layout="constrained")[1]


def _need_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            "expected matplotlib for the picture, got none installed: pip install 'orcast[demo]' brings it"
        )


def pit(evidence: Evidence, axes: Axes | None = None, *, bins: int = 20) -> Axes:
    """PIT histogram before and after: where in the forecast the outcomes fell; flat is calibrated.

    >>> from matplotlib.figure import Figure
    >>> from orcast.evidence import Evidence
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    >>> evidence = Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95])
    >>> axes = pit(evidence, Figure().add_subplot())
    >>> print(axes.get_title())
    Bins beyond what chance allows:
    as given 4 of 4, recalibrated 0 of 4
    """
    found = {side: facts.pit(evidence, side, bins=bins) for side in evidence.sides}
    one = found["before"]
    width = np.diff(one.edges)
    with _drawing(axes) as ax:
        ax.fill_between(
            np.repeat(one.edges, 2)[1:-1], np.repeat(one.low / width, 2), np.repeat(one.high / width, 2), **CHANCE
        )
        for side, histogram in found.items():
            ax.stairs(histogram.density, one.edges, lw=1.8, baseline=None, label=WORDS[side], **LINES[side])
        ax.set_title(_beyond("Bins", found))
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(0.0, 1.28 * max(float((one.high / width).max()), *(float(h.density.max()) for h in found.values())))
        ax.set_xlabel("where in the forecast the outcome fell (PIT)")
        ax.set_ylabel("density")
        ax.legend(loc="upper center", ncols=3, columnspacing=1.0, handletextpad=0.5)
    return ax


def _beyond(what: str, found: dict[str, Any]) -> str:
    counts = ", ".join(f"{WORDS[side]} {each.outside} of {each.low.size}" for side, each in found.items())
    return f"{what} beyond what chance allows:\n{counts}"


def reliability(evidence: Evidence, axes: Axes | None = None) -> Axes:
    """How often the outcome was below each quantile, or came, against what was said; on the diagonal is calibrated.

    >>> from matplotlib.figure import Figure
    >>> from orcast.evidence import Evidence
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    >>> evidence = Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95])
    >>> axes = reliability(evidence, Figure().add_subplot())
    >>> print(axes.get_title())
    Levels beyond what chance allows:
    as given 2 of 3, recalibrated 0 of 3
    """
    found = {side: facts.reliability(evidence, side) for side in evidence.sides}
    one = found["before"]
    quantiles = evidence.kind == "quantiles"
    with _drawing(axes) as ax:
        ax.plot([0, 1], [0, 1], **RIGHT)
        if quantiles:
            ax.fill_between(one.said, one.low, one.high, **CHANCE)
        for side, r in found.items():
            ax.plot(
                r.said,
                r.frequency,
                lw=1.8,
                label=WORDS[side],
                marker="o" if r.said.size <= 25 else "",
                ms=4,
                **LINES[side],
            )
            if not quantiles:
                color = {"color": LINES[side]["color"], "alpha": 0.25}
                ax.vlines(r.said, r.low, r.high, lw=6, label=f"chance, {WORDS[side]}", **color)
        ax.set_title(_beyond("Levels" if quantiles else "Bins", found))
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(0.0, 1.0)
        ax.set_aspect("equal")
        ax.set_xlabel("level of the quantile" if quantiles else "probability said")
        ax.set_ylabel("share of outcomes below it" if quantiles else "how often it came")
        ax.legend(loc="upper left")
    return ax


def rolling(
    evidence: Evidence, axes: Axes | None = None, *, share: float | None = None, window: int | None = None
) -> Axes:
    """Coverage of a central interval over the last `window` outcomes, as time goes.

    >>> from matplotlib.figure import Figure
    >>> from orcast.evidence import Evidence
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    >>> evidence = Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95])
    >>> axes = rolling(evidence, Figure().add_subplot())
    >>> axes.get_title()
    'Share of the last 100 outcomes in the 90% interval'
    """
    found = facts.rolling(evidence, choices.main_share(evidence) if share is None else share, window=window)
    with _drawing(axes) as ax:
        x = _across(ax, found.time)
        ax.axhspan(found.low, found.high, **CHANCE)
        ax.axhline(found.share, **RIGHT)
        for side, values in (("before", found.before), ("after", found.after)):
            if values is not None:
                ax.plot(x, values, lw=1.8, label=WORDS[side], **LINES[side])
        ax.set_title(f"Share of the last {found.window:,} outcomes in the {level(found.share)} interval")
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")
        ax.legend(loc="lower left", ncols=3)
    return ax


def fan(
    evidence: Evidence,
    axes: Axes | None = None,
    *,
    series: str | None = None,
    last: int = 150,
    share: float | None = None,
) -> Axes:
    """The last forecasts of a series, of the worst one if none is named: bands, median, and what happened.

    `share` is the outer central interval.

    >>> from matplotlib.figure import Figure
    >>> from orcast.evidence import Evidence
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    >>> evidence = Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95])
    >>> axes = fan(evidence, Figure().add_subplot())
    >>> axes.get_title()
    'The last 150 of 200 outcomes'
    """
    facts.pit(evidence)  # says in one sentence if there are no quantiles
    part = choices.stretch(evidence, name=series, last=last)
    who = evidence.sides[-1]
    own = evidence.side(who)[part.rows]
    bands, median = choices.spreads(evidence, share), place_of(evidence, 0.5)
    with _drawing(axes) as ax:
        x = _across(ax, part.time)
        color = LINES[who]["color"]
        for band, alpha in zip(bands, (0.20, 0.38), strict=False):
            label = band.words.replace("interval", WORDS[who])
            ax.fill_between(x, own[:, band.lower], own[:, band.upper], color=color, alpha=alpha, lw=0, label=label)
        if median is not None:
            ax.plot(x, own[:, median], color=color, lw=1.3, label="median")
        if who == "after" and bands:
            given = bands[0].words.replace("interval", WORDS["before"])
            for end, label in ((bands[0].lower, given), (bands[0].upper, "")):
                ax.plot(x, evidence.before[part.rows][:, end], lw=0.9, label=label, **LINES["before"])
        ax.plot(x, evidence.y[part.rows], ".", color=INK, ms=4.0, label="outcome")
        name = f"{_literal(shortened(part.name, 40))}: the" if part.name else "The"
        ax.set_title(f"{name} last {part.rows.size:,} of {part.total:,} outcomes")
        ax.margins(x=0.01)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=5, columnspacing=1.6)
    return ax


def sharpness(evidence: Evidence, axes: Axes | None = None) -> Axes:
    """Mean widths of the central intervals before and after, with the range of 8 of 10.

    >>> from matplotlib.figure import Figure
    >>> from orcast.evidence import Evidence
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    >>> evidence = Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95])
    >>> axes = sharpness(evidence, Figure().add_subplot())
    >>> axes.get_title()
    'Mean widths of the central intervals'
    """
    found = choices.widths(evidence)
    if not found.shares:
        raise ValueError(f"expected evidence with central intervals, got {evidence.kind} without any")
    with _drawing(axes) as ax:
        many = len(evidence.sides)
        for j, side in enumerate(evidence.sides):
            mean, low, high = found.sides[side]
            x = np.arange(len(found.shares)) + (j - (many - 1) / 2) * 0.38
            ax.bar(x, mean, 0.34, color=LINES[side]["color"], label=WORDS[side])
            ax.vlines(x, low, high, color=INK, lw=1.2, label="8 of 10" if j == 0 else "")
        ax.set_title("Mean widths of the central intervals")
        ax.set_xticks(range(len(found.shares)), [level(share) for share in found.shares])
        ax.set_ylim(bottom=0.0)
        ax.set_ylabel("width")
        ax.legend()
    return ax


def guarantee(evidence: Evidence, axes: Axes | None = None) -> Axes:
    """The miscalibration under the bound that was known before each outcome, on logarithmic axes.

    Of several series together the worst and the middle are drawn by what was promised.

    >>> from matplotlib.figure import Figure
    >>> from orcast.evidence import Evidence
    >>> t, y = np.arange(1, 201), np.random.default_rng(0).random(200)
    >>> rows = np.tile([0.05, 0.5, 0.95], (200, 1))
    >>> promise = {"holds": np.ones(200, bool), "promised": 2 / np.sqrt(t), "miscalibration": 1 / np.sqrt(t)}
    >>> evidence = Evidence.of(rows, y, after=rows, levels=[0.05, 0.5, 0.95], **promise)
    >>> axes = guarantee(evidence, Figure().add_subplot())
    >>> axes.get_xscale()
    'log'
    """
    found = choices.promise(evidence)
    if found is None:
        raise ValueError("expected evidence with a promise, got evidence without one")
    with _drawing(axes) as ax:
        promised = found.promised if found.rounds else found.place
        ax.loglog(found.place, promised, color=INK, lw=1.5, ls=(0, (4, 2)), label="promised at most")
        ax.loglog(
            found.place,
            found.miscalibration,
            lw=1.6,
            label="recalibrated" if found.rounds else "the worst",
            **LINES["after"],
        )
        if found.given is not None:
            ax.loglog(found.place, found.given, lw=1.3, label="as given, its quantiles alone", **LINES["before"])
        if found.middle is not None:
            ax.loglog(found.place, found.middle, lw=1.2, color=GREY, label="the middle")
        title = found.words
        if found.last is not None:
            size, bound = found.last
            title = f"Miscalibration {size:.4f}, promised at most {bound:.4f}.\n{title}"
        ax.set_title(title)
        ax.margins(x=0.01)
        # the first few rounds are all noise, and may be 0
        seen = [v[min(4, v.size - 1) :] for v in (found.miscalibration, found.given) if v is not None]
        least = min(float(v[v > 0.0].min(initial=np.inf)) for v in seen)
        most = max(float(v.max()) for v in (promised, found.miscalibration, *seen))
        ax.set_ylim(0.6 * min(max(least, 1e-6), most), 1.6 * most)
        ax.set_xlabel("round" if found.rounds else "promised at most")
        ax.set_ylabel("miscalibration")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}")
            axis.set_minor_formatter(lambda value, _: "")
        ax.legend(loc="lower left" if found.rounds else "upper left")
    return ax


def _across(ax: Axes, time: NDArray[Any]) -> NDArray[Any]:
    """The horizontal places of times; text stands in the order of the rows, with a few labels."""
    if time.dtype.kind == "M":
        ax.xaxis.axis_date()
        _few_dates(ax)
        return time
    if time.dtype.kind in "iuf":
        return time
    rows = np.arange(time.size)
    few = np.unique(np.linspace(0, time.size - 1, min(5, time.size)).round().astype(int)) if time.size else rows
    ax.set_xticks(few, [_literal(clean(str(time[i]))[:12]) for i in few])
    return rows


def _literal(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def _few_dates(ax: Axes) -> None:
    from matplotlib import dates

    locator = dates.AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


# --- a whole run ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Record:
    """What a run recorded, a row a round.

    `expert` and `played` hold quantiles at the 99 levels 0.01, ..., 0.99; `miscalibration` and `promised` what
    the guarantee said after each round, and `held` the share of rounds whose certificate held.

    >>> t, y = np.arange(1, 201), np.random.default_rng(0).random(200)
    >>> even = np.tile(LEVELS, (200, 1))
    >>> record = Record("even", "share", 0.0, 1.0, y, even, even, 1 / np.sqrt(t), 2 / np.sqrt(t), held=1.0, seconds=1.0)
    >>> record.played.shape, bool((record.miscalibration <= record.promised).all())
    ((200, 99), True)
    """

    name: str
    unit: str
    low: float
    high: float
    y: Vector
    expert: Vector
    played: Vector
    miscalibration: Vector
    promised: Vector
    held: float
    seconds: float

    def __post_init__(self) -> None:
        rounds = self.y.size
        for what in ("expert", "played"):
            if getattr(self, what).shape != (rounds, LEVELS.size):
                raise ValueError(
                    f"expected {what} of shape {(rounds, LEVELS.size)}, one row a round, "
                    f"got {getattr(self, what).shape}"
                )
        for what in ("miscalibration", "promised"):
            if getattr(self, what).shape != (rounds,):
                raise ValueError(f"expected {rounds} numbers as {what}, got shape {getattr(self, what).shape}")

    def evidence(self) -> Evidence:
        """The same as evidence."""
        return Evidence.of(
            self.expert,
            self.y,
            after=self.played,
            levels=LEVELS,
            low=self.low,
            high=self.high,
            promised=self.promised,
            miscalibration=self.miscalibration,
        )


def coverage(quantiles: ArrayLike, y: ArrayLike, share: float = 0.9, *, low: float, high: float) -> float:
    """How often the outcome was in the central band of quantiles at the 99 levels, as in `orcast.evidence.coverage`.

    Examples:
        >>> q = np.tile(LEVELS, (100, 1))
        >>> round(coverage(q, (np.arange(100) + 0.5) / 100, low=0.0, high=1.0), 6)
        0.9
    """
    return facts.coverage(Evidence.of(quantiles, y, levels=LEVELS, low=low, high=high), share)


def picture(record: Record, *, last: int = 150, bins: int = 20) -> Figure:
    """Fan chart, PIT histogram and guarantee of a run in one figure.

    >>> t, y = np.arange(1, 201), np.random.default_rng(0).random(200)
    >>> even = np.tile(LEVELS, (200, 1))
    >>> record = Record("even", "share", 0.0, 1.0, y, even, even, 1 / np.sqrt(t), 2 / np.sqrt(t), held=1.0, seconds=1.0)
    >>> figure = picture(record, last=100)
    >>> len(figure.axes)
    3
    """
    _need_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    evidence = record.evidence()
    with rc_context(STYLE):
        figure = Figure(figsize=(10.0, 7.2), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
        grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1.0))
        top = fan(evidence, figure.add_subplot(grid[0, :]), last=last, share=0.9)
        before, after = (facts.coverage(evidence, 0.9, side) for side in evidence.sides)
        was, now = (facts.width(evidence, 0.9, side) for side in evidence.sides)
        top.set_title(
            f"{record.name}\nAs given: {before:.0%} in the 90% interval. Recalibrated: {after:.0%}, "
            f"at {now / was:.0%} of the width."
        )
        top.set_xlabel(f"round (the last {min(last, record.y.size)} of {record.y.size:,})")
        top.set_ylabel(record.unit)
        pit(evidence, figure.add_subplot(grid[1, 0]), bins=bins)
        guarantee(evidence, figure.add_subplot(grid[1, 1]))
    return figure


def save_picture(record: Record, path: str | os.PathLike[str], *, last: int = 150, bins: int = 20) -> None:
    """Draw a run and write it to a file, whose ending says the format.

    >>> import tempfile
    >>> from pathlib import Path
    >>> t, y = np.arange(1, 201), np.random.default_rng(0).random(200)
    >>> even = np.tile(LEVELS, (200, 1))
    >>> record = Record("even", "share", 0.0, 1.0, y, even, even, 1 / np.sqrt(t), 2 / np.sqrt(t), held=1.0, seconds=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_picture(record, Path(folder) / "run.png")
    ...     (Path(folder) / "run.png").stat().st_size > 10_000
    True
    """
    picture(record, last=last, bins=bins).savefig(path, dpi=RESOLUTION)
