"""Pictures for notebooks and papers: those of the report, drawn by matplotlib.

Each takes an `evidence.Evidence` and the axes to draw on, makes a figure if it gets none, and returns the axes.
What is drawn is described in `report.pictures`.  matplotlib is imported when a picture is drawn, not before.

>>> import numpy as np
>>> from orcast.evidence import Evidence
>>> y = np.random.default_rng(0).normal(size=200)
>>> evidence = Evidence.of(np.tile([-1.0, 0.0, 1.0], (200, 1)), y, levels=[0.05, 0.5, 0.95])
>>> from matplotlib.figure import Figure
>>> axes = pit(evidence, Figure().add_subplot())
>>> axes.get_title()
'As given: 4 of 4 beyond chance'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast import evidence as facts
from orcast.evidence import Evidence
from orcast.report import pictures
from orcast.report.axes import Axis
from orcast.report.pictures import Mark, Picture, legend
from orcast.report.text import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as DrawnAxis
    from matplotlib.figure import Figure

__all__ = ["fan", "groups", "guarantee", "overview", "pit", "reliability", "rolling", "sharpness"]

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
COLOURS = {"before": ORANGE, "after": BLUE, "chance": GREY, "median": GREY}
LINES: dict[str, dict[str, Any]] = {
    "before": {"linestyle": (0, (4, 1.5))},
    "target": {"linestyle": ":", "lw": 0.9},
    "promised": {"linestyle": (0, (4, 2)), "lw": 1.5},
    "median": {"lw": 1.2},
}
OPACITY = {"outer": 0.2, "inner": 0.38, "shade": 0.25, "over": 0.3}
BELOW: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 3, "columnspacing": 1.6}
# Axes narrower than so many inches do without the optional ticks.
NARROW = 4.0


def _example() -> Evidence:
    """Evidence of 200 standard normal outcomes, with intervals that are too narrow before."""
    y = np.random.default_rng(0).normal(size=200)
    narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    return Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95])


def pit(evidence: Evidence, axes: Axes | None = None, *, bins: int = 20) -> Axes:
    """PIT histogram before and after: where in the forecast the outcomes fell; flat is calibrated.

    >>> from matplotlib.figure import Figure
    >>> evidence = _example()
    >>> axes = pit(evidence, Figure().add_subplot())
    >>> print(axes.get_title())
    Bins beyond what chance allows:
    as given 4 of 4, recalibrated 0 of 4
    """
    return _draw(pictures.pit(evidence, bins=bins), axes, headroom=1.3, loc="upper center", ncols=2)


def reliability(evidence: Evidence, axes: Axes | None = None) -> Axes:
    """How often the outcome was below each quantile, or came, against its level; on the diagonal is calibrated.

    >>> from matplotlib.figure import Figure
    >>> evidence = _example()
    >>> axes = reliability(evidence, Figure().add_subplot())
    >>> print(axes.get_title())
    Levels beyond what chance allows:
    as given 2 of 3, recalibrated 0 of 3
    """
    return _draw(pictures.reliability(evidence), axes, loc="upper left")


def rolling(
    evidence: Evidence, axes: Axes | None = None, *, share: float | None = None, window: int | None = None
) -> Axes:
    """Coverage of a central interval over the last `window` outcomes, as time goes.

    >>> from matplotlib.figure import Figure
    >>> evidence = _example()
    >>> axes = rolling(evidence, Figure().add_subplot())
    >>> axes.get_title()
    'Share of the last 100 outcomes in the 90% interval'
    """
    return _draw(pictures.rolling(evidence, share=share, window=window), axes, **BELOW)


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
    >>> evidence = _example()
    >>> axes = fan(evidence, Figure().add_subplot())
    >>> axes.get_title()
    'The last 150 of 200 outcomes'
    """
    return _draw(pictures.fan(evidence, series=series, last=last, share=share), axes, **BELOW)


def sharpness(evidence: Evidence, axes: Axes | None = None) -> Axes:
    """Mean widths of the central intervals before and after, with the range of 8 of 10.

    >>> from matplotlib.figure import Figure
    >>> evidence = _example()
    >>> axes = sharpness(evidence, Figure().add_subplot())
    >>> axes.get_title()
    'Mean widths of the central intervals'
    """
    return _draw(pictures.sharpness(evidence), axes, headroom=1.1, loc="upper left")


def groups(evidence: Evidence, axes: Axes | None = None, *, by: str | None = None) -> Axes:
    """How the loss changed by horizon, hour or another group of the evidence, the first if none is named.

    Without forecasts after recalibration it is the coverage of the central interval nearest to 90%.

    >>> from matplotlib.figure import Figure
    >>> from orcast.evidence import Evidence, Grouping
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> hours = Grouping("hour", np.arange(200) % 2, ("0", "12"))
    >>> evidence = Evidence.of(np.tile([-1.0, 0.0, 1.0], (200, 1)), y, levels=[0.05, 0.5, 0.95], by=(hours,))
    >>> groups(evidence, Figure().add_subplot()).get_title()
    'Share of the outcomes in the 90% interval'
    """
    found = [group for group in evidence.by if by is None or group.name == by]
    if not found:
        known = ", ".join(group.name for group in evidence.by) or "none"
        raise ValueError(f"expected a way to group the rows that the evidence has ({known}), got {by!r}")
    draw = pictures.group_coverage if evidence.after is None else pictures.group_change
    return _draw(draw(evidence, found[0]), axes, **BELOW)


def guarantee(evidence: Evidence, axes: Axes | None = None) -> Axes:
    """The miscalibration under the bound that was known before each outcome, on logarithmic axes.

    Of several series together the worst and the median are drawn by what was promised.

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
    return _draw(pictures.promise(evidence), axes, loc="best")


def overview(evidence: Evidence, *, unit: str = "", last: int = 150, bins: int = 20) -> Figure:
    """Fan chart, PIT histogram and guarantee of a recalibrated stream in one figure, under the name of its model.

    >>> from orcast.evidence import Evidence
    >>> t, y = np.arange(1, 201), np.random.default_rng(0).random(200)
    >>> rows = np.tile([0.05, 0.5, 0.95], (200, 1))
    >>> promise = {"promised": 2 / np.sqrt(t), "miscalibration": 1 / np.sqrt(t)}
    >>> figure = overview(Evidence.of(rows, y, after=rows, levels=[0.05, 0.5, 0.95], **promise))
    >>> len(figure.axes)
    3
    """
    _need_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with rc_context(STYLE):
        figure = Figure(figsize=(10.0, 7.2), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
        grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1.0))
        top = fan(evidence, figure.add_subplot(grid[0, :]), last=last, share=0.9)
        before, after = (facts.coverage(evidence, 0.9, side) for side in evidence.sides)
        was, now = (facts.width(evidence, 0.9, side) for side in evidence.sides)
        top.set_title(
            f"{_literal(clean(evidence.model))}\nAs given: {before:.0%} in the 90% interval. "
            f"Recalibrated: {after:.0%}, at {now / was:.0%} of the width."
        )
        top.set_xlabel(f"round (the last {min(last, evidence.rows)} of {evidence.rows:,})")
        top.set_ylabel(_literal(unit))
        pit(evidence, figure.add_subplot(grid[1, 0]), bins=bins)
        guarantee(evidence, figure.add_subplot(grid[1, 1]))
    return figure


# --- drawing --------------------------------------------------------------------------------------


def _need_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            "expected matplotlib for the picture, got none installed: pip install 'orcast[demo]' brings it"
        )


@contextmanager
def _axes(axes: Axes | None) -> Iterator[Axes]:
    """The axes themselves, as they are, or new ones in the style of the report."""
    _need_matplotlib()
    if axes is not None:
        if not hasattr(axes, "plot"):
            raise TypeError(f"expected matplotlib axes, got {axes!r}")
        yield axes
        return
    from matplotlib import pyplot, rc_context

    with rc_context(STYLE):
        yield pyplot.subplots(figsize=(7.0, 4.2), layout="constrained")[1]


def _draw(picture: Picture, axes: Axes | None, *, headroom: float = 1.0, **key: Any) -> Axes:
    """The picture on axes; `headroom` stretches the upright axis so that the key has a place."""
    with _axes(axes) as ax:
        for kind, axis in (("x", picture.x), ("y", picture.y)):
            if axis.scale.log:
                ax.set(**{f"{kind}scale": "log"})
        handles = {id(mark): _draw_mark(ax, mark, picture, 2 + k / 100) for k, mark in enumerate(picture.marks)}
        narrow = ax.get_window_extent().width < NARROW * ax.figure.dpi
        _finish(ax.xaxis, picture.x, narrow)
        _finish(ax.yaxis, picture.y, narrow)
        scale = picture.y.scale
        if scale.high > scale.low:
            ax.set_ylim(scale.low, scale.high * headroom)
        if picture.x.scale.high > picture.x.scale.low:
            ax.set_xlim(*_units(picture.x, np.array([picture.x.scale.low, picture.x.scale.high])))
        if picture.height is None:
            ax.set_aspect("equal")
        ax.set_title(_literal(picture.finding))
        shown = legend(picture)
        ax.legend([handles[id(mark)] for mark in shown], [mark.label for mark in shown], **key)
    return ax


def _draw_mark(ax: Axes, mark: Mark, picture: Picture, depth: float) -> Any:
    """The artist of a mark."""
    colour = COLOURS.get(mark.role, INK)
    alpha = OPACITY.get(mark.variant, 0.25 if mark.role == "chance" else 1.0)
    x, base = _units(picture.x, mark.x), 0.0 if mark.base is None else mark.base
    common: dict[str, Any] = {"color": colour, "label": mark.label or "_nolegend_", "zorder": depth}
    if mark.shape == "line":
        style = {"lw": 1.2 if mark.variant == "thin" else 1.8, **LINES.get(mark.role, {})}
        return ax.plot(x, mark.y, **common, **style)[0]
    if mark.shape == "dot":
        size = 4.0 if mark.role == "outcome" else 8.0
        return ax.plot(x, mark.y, ".", ms=size, **common)[0]
    if mark.shape == "area":
        return ax.fill_between(x, base, mark.y, alpha=alpha, lw=0, **common)
    if mark.shape == "range":
        return ax.vlines(x, base, mark.y, lw=1.2, **common)
    wide = np.zeros_like(mark.x) if mark.right is None else mark.right - mark.x
    return ax.bar(mark.x, mark.y - base, wide, base, align="edge", alpha=alpha, lw=0, **common)


def _units(axis: Axis, values: NDArray[np.float64]) -> NDArray[Any]:
    """Dates as dates, so that matplotlib knows them."""
    return values.astype("datetime64[us]") if axis.dates else values


def _finish(drawn: DrawnAxis, axis: Axis, narrow: bool) -> None:
    """The ticks and the label of an axis."""
    ticks = [tick for tick in axis.ticks if not (narrow and tick.optional)]
    drawn.set_ticks(_units(axis, np.array([tick.value for tick in ticks])))
    drawn.set_ticklabels([_literal(clean(tick.text)) for tick in ticks])
    drawn.set_ticks([], minor=True)
    drawn.set_label_text(_literal(clean(axis.label)))


def _literal(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")
