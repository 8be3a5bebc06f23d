"""Pictures of a run: fan chart, PIT histogram before and after, miscalibration against the promise.

Everything is a pure function of arrays.  matplotlib is imported when a picture is drawn, not before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.metrics import LEVELS, fair_indicators

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Record",
    "consistency_band",
    "coverage",
    "draw_fan",
    "draw_pit",
    "draw_promise",
    "picture",
    "pit_shares",
    "running_error",
    "save_picture",
]

Vector = NDArray[np.float64]

# Okabe and Ito's colours: told apart with any colour vision, and by their lightness in grey.
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
    "legend.handlelength": 1.6,
}
RESOLUTION = 160


@dataclass(frozen=True, eq=False)
class Record:
    """What a run recorded, a row a round.

    ``expert`` and ``played`` hold quantiles at the 99 levels 0.01, ..., 0.99; ``miscalibration`` and ``promised`` what
    the guarantee said after each round, and ``held`` the share of rounds whose certificate held.
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


# --- numbers --------------------------------------------------------------------------------------


def coverage(quantiles: ArrayLike, y: ArrayLike, share: float = 0.9, *, low: float, high: float) -> float:
    """How often the outcome was in the central band, where an outcome on a point mass counts with its part.

        mean_t ( I_{(1 + share)/2} - I_{(1 - share)/2} ),    I as in `fair_indicators`

    Examples:
        >>> q = np.tile(LEVELS, (100, 1))
        >>> round(coverage(q, (np.arange(100) + 0.5) / 100, low=0.0, high=1.0), 6)
        0.9
    """
    hits = fair_indicators(quantiles, y, low=low, high=high).mean(axis=0)
    upper, lower = _column(0.5 + share / 2), _column(0.5 - share / 2)
    return float(hits[upper] - hits[lower])


def pit_shares(quantiles: ArrayLike, y: ArrayLike, bins: int = 20, *, low: float, high: float) -> Vector:
    """Share of the outcomes whose PIT falls in each of ``bins`` equal bins, from quantiles at 99 levels.

    An outcome on a point mass is spread over the levels of that mass, so that a calibrated forecast with atoms has a
    flat histogram too.

    Reference: Czado, Gneiting and Held (2009), "Predictive model assessment for count data", Biometrics 65.

    Examples:
        >>> q = np.tile(LEVELS, (100, 1))
        >>> pit_shares(q, (np.arange(100) + 0.5) / 100, 4, low=0.0, high=1.0)
        array([0.25, 0.25, 0.25, 0.25])
    """
    if bins < 2 or 100 % bins:
        raise ValueError(f"expected a number of bins that divides 100, at least 2, got {bins!r}")
    hits = fair_indicators(quantiles, y, low=low, high=high).mean(axis=0)
    ends = np.concatenate(([0.0], hits[100 // bins - 1 :: 100 // bins], [1.0]))
    return np.diff(ends)


def consistency_band(rounds: int, bins: int, share: float = 0.95) -> tuple[float, float]:
    """Between which shares a bin of a calibrated forecast's histogram lies with this probability.

    Quantiles of Binomial(rounds, 1 / bins), each bin by itself, divided by the rounds.

    Examples:
        >>> consistency_band(1000, 10)
        (0.082, 0.119)
    """
    from scipy.stats import binom

    ends = binom.ppf([0.5 - share / 2, 0.5 + share / 2], rounds, 1.0 / bins) / rounds
    return float(ends[0]), float(ends[1])


def running_error(quantiles: ArrayLike, y: ArrayLike, *, low: float, high: float) -> Vector:
    """Quantile part of the miscalibration after each round, normalised as in the game.

        sqrt( sum_a (mean_{s <= t} I_a(s) - a)^2 / B ),    B the largest possible sum

    Examples:
        >>> q = np.tile(LEVELS, (3, 1))
        >>> running_error(q, [0.5, 0.001, 0.999], low=0.0, high=1.0).round(3)
        array([0.496, 0.498, 0.284])
    """
    gaps = fair_indicators(quantiles, y, low=low, high=high) - LEVELS
    rounds = np.arange(1, len(gaps) + 1)
    size = np.sqrt((np.cumsum(gaps, axis=0) ** 2).sum(axis=1) / (LEVELS**2).sum())
    return np.asarray(size / rounds)


def _column(level: float) -> int:
    return int(np.argmin(np.abs(LEVELS - level)))


# --- panels ---------------------------------------------------------------------------------------


def draw_fan(axes: Axes, record: Record, *, last: int = 150) -> None:
    """The last rounds: the recalibrated bands and median, the expert's 90% band, and what happened."""
    first = max(record.y.size - last, 0)
    t = np.arange(first, record.y.size) + 1
    q, x, y = record.played[first:], record.expert[first:], record.y[first:]
    five, quarter, middle = _column(0.05), _column(0.25), _column(0.5)
    axes.fill_between(t, q[:, five], q[:, -1 - five], color=BLUE, alpha=0.20, lw=0, label="recalibrated 90%")
    axes.fill_between(t, q[:, quarter], q[:, -1 - quarter], color=BLUE, alpha=0.38, lw=0, label="50%")
    axes.plot(t, q[:, middle], color=BLUE, lw=1.3, label="median")
    axes.plot(t, x[:, five], color=ORANGE, lw=0.9, label="expert's 90%")
    axes.plot(t, x[:, -1 - five], color=ORANGE, lw=0.9)
    axes.plot(t, y, ".", color=INK, ms=4.0, label="outcome")
    space = {"low": record.low, "high": record.high}
    before, after = (coverage(p, record.y, **space) for p in (record.expert, record.played))
    widths = [(p[:, -1 - five] - p[:, five]).mean() for p in (record.expert, record.played)]
    axes.set_title(
        f"{record.name}\nExpert: {before:.0%} in the 90% band. Recalibrated: {after:.0%}, "
        f"at {widths[1] / widths[0]:.0%} of the width."
    )
    axes.set_xlim(t[0] - 1, t[-1] + 1)
    axes.set_xlabel(f"round (the last {t.size} of {record.y.size:,})")
    axes.set_ylabel(record.unit)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=5, columnspacing=2.0)


def draw_pit(axes: Axes, record: Record, *, bins: int = 20) -> None:
    """Where in the forecast the outcomes fell, before and after: flat is calibrated."""
    low, high = consistency_band(record.y.size, bins)
    axes.axhspan(low * bins, high * bins, color=GREY, alpha=0.25, lw=0, label="calibrated (95%)")
    edges = np.linspace(0.0, 1.0, bins + 1)
    most, outside = high * bins, []
    for quantiles, color, label in ((record.expert, ORANGE, "expert"), (record.played, BLUE, "recalibrated")):
        shares = pit_shares(quantiles, record.y, bins, low=record.low, high=record.high)
        outside.append(int(np.count_nonzero((shares < low - 1e-9) | (shares > high + 1e-9))))
        most = max(most, shares.max() * bins)
        axes.stairs(shares * bins, edges, color=color, lw=1.8, baseline=None, label=label)
    axes.set_title(f"Bins outside what chance allows:\nexpert {outside[0]} of {bins}, recalibrated {outside[1]}")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.28 * most)
    axes.set_xlabel("where in the forecast the outcome fell (PIT)")
    axes.set_ylabel("density")
    axes.legend(loc="upper center", ncols=3, columnspacing=1.2, handletextpad=0.5)


def draw_promise(axes: Axes, record: Record) -> None:
    """The miscalibration after each round, under the bound that was known before the outcome."""
    t = np.arange(1, record.y.size + 1)
    expert = running_error(record.expert, record.y, low=record.low, high=record.high)
    axes.loglog(t, expert, color=ORANGE, lw=1.3)
    axes.loglog(t, record.promised, color=INK, lw=1.5, ls=(0, (4, 2)))
    axes.loglog(t, record.miscalibration, color=BLUE, lw=1.6)
    kept = bool(np.all(record.miscalibration <= record.promised * (1.0 + 1e-9)))
    axes.set_title(
        f"Miscalibration {record.miscalibration[-1]:.4f}, promised at most {record.promised[-1]:.4f};\n"
        f"{'kept after every round' if kept else 'not kept after every round'}"
    )
    seen = slice(min(4, t.size - 1), None)
    least = min(record.miscalibration[seen].min(), expert[seen].min())
    axes.set_xlim(1, t[-1])
    axes.set_ylim(0.6 * max(least, 1e-6), 1.6 * max(record.promised.max(), expert.max()))
    axes.set_xlabel("round")
    names = (("promised", INK), ("recalibrated", BLUE), ("expert, its quantiles alone", ORANGE))
    for row, (text, color) in enumerate(names):
        axes.text(0.03, 0.23 - 0.09 * row, text, color=color, transform=axes.transAxes)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def picture(record: Record, *, last: int = 150, bins: int = 20) -> Figure:
    """The three panels in one figure."""
    _need_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with rc_context(STYLE):
        figure = Figure(figsize=(10.0, 7.2), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
        grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1.0))
        draw_fan(figure.add_subplot(grid[0, :]), record, last=last)
        draw_pit(figure.add_subplot(grid[1, 0]), record, bins=bins)
        draw_promise(figure.add_subplot(grid[1, 1]), record)
    return figure


def save_picture(record: Record, path: str | os.PathLike[str], *, last: int = 150, bins: int = 20) -> None:
    """Draw a run and write it to a file, whose ending says the format."""
    picture(record, last=last, bins=bins).savefig(path, dpi=RESOLUTION)


def _need_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            "expected matplotlib for the picture, got none installed: pip install 'orcast[demo]' brings it"
        )
