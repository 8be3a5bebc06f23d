"""Shadow and guarded recalibration: the forecast that is published, and an e-process on the difference of two scores.

In each round the scores S of the base forecast and of the recalibrated one differ by at most B, known before the
outcome. While the recalibrated forecast is in no round better, given the past, the product of bets 1 + l x on
x = (S_base - S_recalibrated) / B is a supermartingale; docs/theory.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import FINEST
from orcast.forecasts import BinaryForecast, Forecast, forecast_on
from orcast.kernels import monitor as kernel
from orcast.kernels import records
from orcast.kernels.cells import cells_of
from orcast.kernels.reading import read_round
from orcast.kernels.state import Round
from orcast.monitors import ALPHA, BETTER, check_row, watcher_for
from orcast.spaces import Binary, OrderedSpace, Space, normal_scores

Array = NDArray[np.float64]

# Without bounds the tails of a base forecast reach this far beyond its outer quantiles, in units of its 98% spread or,
# if that is zero, of its size; as `kernels.rounds` has it.
WINDOW, LEAST = 12.0, 1e-3
# Quantiles of a published base forecast, linear in the normal score of the level between those that were read.
LEVELS = 99
# Smaller differences of Brier scores are rounding.
ROUNDING = 1e-12
# Numbers before those of the e-process: 1 if the recalibrated forecast is published, the first round that it, or the
# base forecast, is published in, number of switches, rounds with scores, and the sums of both scores.
OURS, SINCE, SWITCHES, ROUNDS, BASE_SUM, OUR_SUM, START = range(7)


class Scores(NamedTuple):
    """Scores of a round, the smaller the better; their difference, and the largest that any outcome could have made."""

    base: float
    recalibrated: float
    difference: float
    bound: float


def base_row(record: Any) -> Array | None:
    """Quantiles or masses of the base forecast of a round, the mean of several; None if there is none."""
    round = getattr(record, "round", record)
    if round.read("info", "has_expert") < 1.0:
        return None
    rows: Array = round.view("experts")
    return base_of(rows[:1] if isinstance(round, Round) else rows)


def base_of(rows: Array | float | None) -> Array | None:
    """Quantiles or masses of the base forecast from rows as `Forecaster.read` returns them."""
    if rows is None:
        return None
    if isinstance(rows, float):
        return np.array([1.0 - rows, rows])
    row: Array = rows[0] if len(rows) == 1 else np.nanmean(rows, axis=0)
    return row


def base_forecast(space: Space, row: Array) -> Any:
    """The base forecast as it was read, without a certificate: quantiles at the levels of the space, or masses."""
    if isinstance(space, Binary):
        return BinaryForecast.trusted(space, float(row[1]), None)
    if not isinstance(space, OrderedSpace):
        return forecast_on(space, row.copy(), None)  # type: ignore[arg-type]
    tail = space.levels.item(0)
    levels = np.linspace(tail, 1.0 - tail, LEVELS)
    q = np.clip(np.interp(normal_scores(levels), space.scores, row), space.low, space.high)
    first, last = q.item(0), q.item(-1)
    size = max(abs(first), abs(last))
    reach = WINDOW * (last - first) if last - first > FINEST * size else LEAST * size or 1.0
    low = first - reach if space.low == -math.inf else space.low
    high = last + reach if space.high == math.inf else space.high
    left, right, mass = cells_of(q, low, high, int(space.tail_cells), tail)
    left[0], right[-1] = min(low, space.low), max(high, space.high)
    return Forecast.trusted(left, right, mass, None)


def scores_of(space: Space, record: Any, y: Any) -> Scores | None:
    """Scores of both forecasts of a round: mean pinball loss at the levels of the space, or Brier score of the cells.

    Random draws do not count.
    For every outcome pinball losses at a level l differ by at most max(l, 1 - l) times the distance of the quantiles.
    """
    base = base_row(record)
    if base is None:
        return None
    round = getattr(record, "round", record)
    if isinstance(space, OrderedSpace):
        levels, base = space.levels, np.clip(base, space.low, space.high)
        ours: Any = read_round(round, 0.0, levels)
        bound = float((np.maximum(levels, 1.0 - levels) * np.abs(base - ours)).mean())
        if bound <= FINEST * np.abs(base).max():
            bound = 0.0  # rounding
        # beyond both quantiles the difference stays as it is
        near = np.clip(y, np.minimum(base, ours), np.maximum(base, ours))
        difference = _pinball(base, levels, near) - _pinball(ours, levels, near)
        return Scores(_pinball(base, levels, y), _pinball(ours, levels, y), difference, bound)
    ours, cell = round.view("result"), space.cell(y)  # type: ignore[attr-defined]
    squares = float(base @ base), float(ours @ ours)
    differences = squares[0] - squares[1] - 2.0 * (base - ours)
    first, second = 1.0 + squares[0] - 2.0 * float(base[cell]), 1.0 + squares[1] - 2.0 * float(ours[cell])
    bound = float(np.abs(differences).max())
    return Scores(first, second, float(differences[cell]), bound if bound > ROUNDING else 0.0)


def _pinball(quantiles: Array, levels: Array, y: Array | float) -> float:
    """Mean pinball loss."""
    return float(np.maximum(levels * (y - quantiles), (levels - 1.0) * (y - quantiles)).mean())


@dataclass(frozen=True)
class Guard:
    """Comparison of the base forecast with the recalibrated one, as `recal.guard` returns it.

    Parameters
    ----------
    mode : str
        "shadow" or "guarded".
    publishes : str
        Forecast that the next round publishes: "base" or "recalibrated".
    since : int
        First round of this, counted as rounds are issued, from 1.
    evidence, threshold : float
        E-process for the other forecast since then, and its value at a switch. In shadow mode nothing is switched.
    rounds : int
        Rounds with both scores.
    base, recalibrated : float
        Mean scores: pinball loss over the levels, or Brier score of the cells; the smaller the better.
    switches : int
        Number of switches.
    """

    mode: str
    publishes: str
    since: int
    evidence: float
    threshold: float
    rounds: int
    base: float
    recalibrated: float
    switches: int

    def text(self) -> str:
        """Return a sentence."""
        other = "recalibrated" if self.publishes == "base" else "base"
        return (
            f"{self.mode}: publishes the {self.publishes} forecast since round {self.since:,}; evidence for the "
            f"{other} one {self.evidence:.3g} of {self.threshold:g}; mean score {self.base:.4g} (base), "
            f"{self.recalibrated:.4g} (recalibrated) in {self.rounds:,} rounds"
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


class GuardState:
    """Numbers of a guard, see `Guard`; if it is `guarded`, evidence switches the published forecast."""

    def __init__(self, *, guarded: bool) -> None:
        self.guarded = guarded
        self.numbers: Array = np.zeros(START)
        self.numbers[SINCE] = 1.0
        self._restart()

    def _restart(self) -> None:
        self.watcher = watcher_for(BETTER, change=math.inf)

    @property
    def ours(self) -> bool:
        """True if the recalibrated forecast is published."""
        return self.numbers.item(OURS) > 0.0

    @property
    def evidence(self) -> float:
        """E-process for the forecast that is not published."""
        return float(self.watcher.state[records.EVIDENCE])

    def put(self, scores: Scores, issued: float, clock: float) -> None:
        """Update with the scores of round `issued`, known when `clock` were issued; see `Watch.put`."""
        numbers = self.numbers
        numbers[ROUNDS] += 1.0
        numbers[BASE_SUM] += scores.base
        numbers[OUR_SUM] += scores.recalibrated
        # the outcome of a round that was issued before the switch may have depended on what led to it
        if scores.bound <= 0.0 or issued + 1.0 < numbers[SINCE]:
            return
        x = min(max(scores.difference / scores.bound, -1.0), 1.0)
        u = 0.5 - 0.5 * x if self.ours else 0.5 + 0.5 * x
        kernel.watch([self.watcher], np.full(records.ENDS, u), issued, clock)
        if self.guarded and self.evidence * ALPHA >= 1.0:
            numbers[OURS], numbers[SINCE] = 1.0 - numbers[OURS], clock + 1.0
            numbers[SWITCHES] += 1.0
            self._restart()

    def row(self) -> Array:
        """State as a row."""
        return np.concatenate((self.numbers, self.watcher.state))

    def take(self, row: Array) -> None:
        """Go on with another state, which is copied."""
        self.numbers = row[:START].copy()
        self.watcher.take(row[START:].copy())

    def check(self, row: Array) -> None:
        """Refuse a row that is not that of a guard."""
        check_row(self.watcher.bets, row[START:])
        numbers = row[:START]
        fits = np.isfinite(numbers).all() and numbers[OURS] in (0.0, 1.0) and (self.guarded or numbers[OURS] == 0.0)
        if not fits or (numbers[SINCE:BASE_SUM] < 0.0).any() or (numbers[SWITCHES] % 2.0) != numbers[OURS]:
            raise ValueError("expected the numbers of a guard, got others")

    def report(self) -> Guard:
        """Report of the present state."""
        numbers = self.numbers
        rounds = max(numbers.item(ROUNDS), 1.0)
        return Guard(
            "guarded" if self.guarded else "shadow",
            "recalibrated" if self.ours else "base",
            int(numbers[SINCE]),
            self.evidence,
            1.0 / ALPHA,
            int(numbers[ROUNDS]),
            numbers.item(BASE_SUM) / rounds,
            numbers.item(OUR_SUM) / rounds,
            int(numbers[SWITCHES]),
        )
