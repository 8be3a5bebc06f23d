"""Alarms on calibration that may be looked at after every round: e-processes and a detector of changes.

Notation: u is the PIT of an outcome, F(y); under calibration it is uniform given what was known at the issue time.  A
bet is a density g on [0, 1]; the product of g(u) over the rounds is a martingale, and P(it ever reaches 1/alpha) <=
alpha (Ville 1939).  docs/theory.md has the definitions and the proofs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import Ensemble, Normal, Quantiles, expert_row
from orcast.adapters.ordered import called, known_kind
from orcast.draws import seed_of, start_of
from orcast.forecasts import Forecast
from orcast.kernels import monitor as kernel
from orcast.kernels import records
from orcast.rounds import watchable
from orcast.spaces import Binary, Line, OrderedSpace, Space, normal_scores
from orcast.spaces.base import FiniteSpace, whole
from orcast.validation import number, short

if TYPE_CHECKING:
    from orcast.guard import GuardState

Array = NDArray[np.float64]

# --- what a monitor may be given, and the kinds of miscalibration that it names
PIT, EVENT, LABEL, COVERED, SCORES = "pit", "event", "label", "covered", "scores"
# Scores of two forecasters, with bets that the second is better only.
BETTER = "better"
KINDS = {
    PIT: (
        *("too low", "too high", "too narrow", "too wide"),
        *("upper tail too short", "lower tail too short", "tails too short", "tails too long"),
    ),
    EVENT: (
        *("probabilities too low", "probabilities too high", "probabilities too extreme", "probabilities too cautious"),
        *("probabilities off at some levels",) * 4,
    ),
    LABEL: (
        *("later labels forecast too seldom", "earlier labels forecast too seldom"),
        *("outer labels forecast too seldom", "inner labels forecast too seldom"),
        *("some labels forecast too seldom",) * 4,
    ),
    COVERED: ("too narrow", "too wide"),
    SCORES: ("the first is worse", "the second is worse"),
}
# Alarms as the kernel codes them.
ALARM_TEXTS = {
    given: np.array(["", *kinds, *(f"changed: {kind}" for kind in kinds)], dtype=object)
    for given, kinds in KINDS.items()
}
# Arguments of an update, and those that go together.
INPUT_NAMES = ("pit", "forecast", "outcome", "probability", "event", "covered", "score_a", "score_b")
INPUTS = (("pit",), ("forecast", "outcome"), ("probability", "event"), ("covered",), ("score_a", "score_b"))
# Forecasts of which some columns may be missing.
ANY_COLUMN = ("quantiles", "members")
# --- bets by kind: (kind, weight, density on scores z of the normal distribution or on [0, 1])
KNOTS = 256
EDGES = (1, 4, 13, 38, 77, 128, 179, 218, 243, 252, 255)  # of the histogram, in 1/256
BIAS, SPREAD, REST = 0.72, 0.2, 0.04
SHIFTS = ((0.15, 0.05), (0.5, 0.9), (1.3, 0.05))
NARROW, WIDE = ((1.2, 0.1), (1.6, 0.8), (3.0, 0.1)), ((0.85, 0.1), (0.65, 0.9))
SLOPES = ((0.1, 0.05), (0.3, 0.15), (0.8, 0.8))
GROUPS = (0, 1, 2, 3, 4, 4, 5, 5)  # of kinds that share their sums
FLOOR = 0.05  # bets that can lose nearly all are mixed with the uniform density
SPREAD_STARTS = 0.1  # weight of starts after the first round
BETTER_SLOPES, BETTER_STARTS = ((0.05, 0.2), (0.2, 0.3), (0.5, 0.3), (0.9, 0.2)), 0.5
# Lanes of a recalibrator, whose outcomes may come late: the weight of the first, and most lanes.
FIRST_LANE, MOST_LANES = 0.8, 16
# Questions of the e-process and of the detector: round, kind, end and sums of an alarm in a row.
EVER, CHANGED = "miscalibrated", "changed"
EVER_PLACES = (records.ALARM, records.PEAK_KIND, records.PEAK_END, records.PEAK_SUMS)
CHANGE_PLACES = (records.CHANGE_AT, records.CHANGE_KIND, records.CHANGE_AT, records.CHANGE_SUMS)
# Sides of a recalibrator in words.
SIDES = {"input": "base forecast", "output": "recalibrated"}
# Options of the monitors of recalibrators.
ALPHA, RUN_LENGTH, LEVEL = 0.05, 100_000.0, 0.9
# Begins that lose this factor of the evidence are plausible, and as many rounds more: small bets blur them.
FACTOR, BLUR = 20.0, 8


class Bet(NamedTuple):
    """One bet: its kind, its weight, and its density at the knots."""

    kind: int
    weight: float
    density: Array


def _density(values: Array, least: float = 0.0) -> Array:
    """Density, linear between the knots, whose mean is exactly 1 up to rounding."""
    mean = float(((values[1:] + values[:-1]) / 2.0).mean())
    return least + (1.0 - least) * np.asarray(values) / mean


@lru_cache
def _bets(kind: str) -> tuple[tuple[Bet, ...], Array]:
    """Bets, and the scores that describe a size."""
    u = np.arange(KNOTS + 1) / KNOTS
    if kind == BETTER:
        return tuple(Bet(0, w, 1.0 + size * (2.0 * u - 1.0)) for size, w in BETTER_SLOPES), 2.0 * u - 1.0
    z = normal_scores(np.clip(u, 0.25 / KNOTS, 1.0 - 0.25 / KNOTS))
    if kind == SCORES:
        found = [
            Bet(k, w / 2, 1.0 + s * size * (2.0 * u - 1.0)) for k, s in ((0, 1.0), (1, -1.0)) for size, w in SLOPES
        ]
        return tuple(found), 2.0 * u - 1.0

    def tilted(mean: float, sd: float) -> Array:
        least = FLOOR if abs(mean) > 1.0 or sd > 2.0 else 0.0
        return _density(np.exp(0.5 * z * z - 0.5 * ((z - mean) / sd) ** 2) / sd, least)

    legendre = np.polynomial.legendre.Legendre
    third, fourth = legendre([0, 0, 0, 1])(2.0 * u - 1.0), legendre([0, 0, 0, 0, 1])(2.0 * u - 1.0)
    found = [Bet(k, BIAS * w / 2, tilted(s * m, 1.0)) for k, s in ((0, 1.0), (1, -1.0)) for m, w in SHIFTS]
    found += [Bet(2, SPREAD * w / 2, tilted(0.0, s)) for s, w in NARROW]
    found += [Bet(3, SPREAD * w / 2, tilted(0.0, s)) for s, w in WIDE]
    found += [Bet(4, REST / 2, _density(1.0 + 0.6 * third)), Bet(5, REST / 2, _density(1.0 - 0.6 * third))]
    found += [Bet(6, REST / 2, _density(1.0 + fourth)), Bet(7, REST / 2, _density(1.0 - 0.6 * fourth))]
    return tuple(found), z if kind == PIT else 2.0 * u - 1.0


@lru_cache
def bets_for(kind: str, level: float, lanes: tuple[float, ...]) -> Any:
    """Tables that the kernel takes."""
    bets, score = _bets(kind)
    rows = [bet.density for bet in bets] + [score, score * score]
    table = np.stack(rows, axis=1)
    areas = np.zeros_like(table)
    areas[1:] = np.cumsum((table[1:] + table[:-1]) / (2.0 * KNOTS), axis=0)
    bins = np.searchsorted(np.array(EDGES), np.arange(KNOTS), side="right").astype(np.float64)
    numbers = [(bet.weight, bet.density.min(), bet.kind, GROUPS[bet.kind]) for bet in bets]
    prior, least, kinds, groups = (np.array(column, dtype=np.float64) for column in zip(*numbers, strict=True))
    outside, starts = (1.0 - level) / 2.0, BETTER_STARTS if kind == BETTER else SPREAD_STARTS
    return kernel.Bets(
        *(table.ravel(), areas.ravel(), prior, least, kinds, groups, bins, np.array(lanes), starts, outside),
        kind == PIT,
    )


def late_lanes(count: int) -> tuple[float, ...]:
    """Weights of lanes whose number is not known before; their sum is below 1."""
    return (FIRST_LANE, *((1.0 - FIRST_LANE) / (i * (i + 1)) for i in range(1, count)))


LATE_LANES = late_lanes(MOST_LANES)


def watcher_for(
    kind: str,
    seed: int = 0,
    *,
    lanes: tuple[float, ...] = LATE_LANES,
    ever: float = 1.0 / ALPHA,
    change: float = RUN_LENGTH,
) -> Any:
    """Kernel of a new stream, with alarms at the evidence `ever` and `change`; lanes after the first come with need."""
    bets = bets_for(kind, LEVEL, lanes)
    row = np.zeros(bets.size(1))
    kernel.start_lanes(bets, row, 0)
    return kernel.Watcher(bets, row, ever, change, 1, start_of(seed))


def check_rows(rows: Array) -> None:
    """Refuse rows with numbers that no stream has."""
    kinds = rows[..., [records.PEAK_KIND, records.CHANGE_KIND]]
    if not (np.isfinite(rows) & (rows >= -1e300) & (rows <= 1e300)).all() or not np.isin(kinds, range(8)).all():
        raise ValueError("expected the numbers of a monitor, got others")


def check_row(bets: Any, row: Array) -> None:
    """Refuse a row that no stream with late outcomes has."""
    lanes = bets.lanes_in(row.size)
    if row.shape != (bets.size(lanes),) or not 1 <= lanes <= MOST_LANES or row.dtype != np.float64:
        raise ValueError(f"expected a row of a monitor, got {row.dtype} of shape {row.shape}")
    check_rows(row)


@dataclass(frozen=True)
class Alarm:
    """Evidence that forecasts are, or were, not calibrated, in numbers and in words.

    Parameters
    ----------
    question : str
        "miscalibrated" (ever), or "changed" (the forecasts err in another way than before).
    kind : str
        Form of the miscalibration, such as "too narrow".
    round : int
        Round of the alarm; rounds count from 1.
    since, earliest, latest : int
        Estimated first round of the fault (the start with the most evidence), and an interval that held
        the true one in most simulations (docs/theory.md).
    until : int
        Last round of the period with the largest evidence.
    evidence, threshold : float
        E-process or detector, and the threshold of its alarm.
    level, coverage, shift, scale : float
        Share of the outcomes of the period inside the central band of this level, mean and spread of the normal scores
        of the PITs (errors in units of the forecast's standard deviation).
    given, group, ended : str, str or None, bool
        Input of the monitor, group of rounds, and whether the evidence has fallen to a thousandth since.
    side : str or None
        Of a recalibrator: "input", the base forecast, or "output", the recalibrated one.

    Examples
    --------
    >>> from scipy.special import ndtr
    >>> monitor = Monitor()
    >>> monitor.update(pit=ndtr(1.5 * np.random.default_rng(0).standard_normal(200)))
    >>> monitor.miscalibrated.text()
    '90% interval covers 68% since round 40: too narrow by 33%'
    """

    question: str
    kind: str
    round: int
    since: int
    earliest: int
    latest: int
    until: int
    evidence: float
    threshold: float
    level: float
    coverage: float
    shift: float
    scale: float
    given: str = PIT
    group: str | None = None
    ended: bool = False
    side: str | None = None

    def text(self, name: Callable[[int], str] = "round {:,}".format) -> str:
        """Return a sentence with the size; `name` turns a round into a time."""
        when = f"from {name(self.since)} to {name(self.until)}" if self.ended else f"since {name(self.since)}"
        return f"{'' if self.group is None else f'{self.group}: '}{self._size(when)}"

    @property
    def standing(self) -> bool:
        """True for an alarm of the e-process that has not ended."""
        return self.question == EVER and not self.ended

    def to_plain(self, name: Callable[[int], str] = "round {:,}".format) -> dict[str, Any]:
        """Return plain data; `name` turns a round into a time."""
        names = ("side", "group", "question", "kind", "level", "coverage", "shift", "scale", "evidence")
        plain: dict[str, Any] = {each: getattr(self, each) for each in (*names, "ended")}
        plain |= {each: name(getattr(self, each)) for each in ("since", "earliest", "latest", "until")}
        return plain | {"raised": name(self.round), "text": self.text(name)}

    def _size(self, when: str) -> str:
        if self.given == SCORES:
            return f"{self.kind} {when}: by {abs(self.shift):.3g} on average"
        if self.given == LABEL:
            return f"{self.kind} {when}"
        if self.given == EVENT:
            points = f"{100.0 * abs(self.shift):.2g} percentage points {'more' if self.shift > 0.0 else 'less'} often"
            return f"events came {points} than forecast {when}: {self.kind}"
        kind = "now about calibrated" if self._calm else f"{self.kind}{self._how_much()}"
        return f"{self.level:.0%} interval covers {self.coverage:.0%} {when}: {kind}"

    @property
    def _calm(self) -> bool:
        """True after a change to forecasts whose size of miscalibration is small and within its noise."""
        size = abs(self.shift) if self.kind in ("too low", "too high") else abs(self.scale - 1.0)
        noise = 2.0 / math.sqrt(self.until - self.since + 1)
        return self.question == CHANGED and self.given == PIT and size < min(noise, 0.3)

    def _how_much(self) -> str:
        if self.given == PIT and self.kind in ("too low", "too high"):
            return f" by {abs(self.shift):.1f} standard deviations"
        if self.given == PIT and self.kind in ("too narrow", "too wide") and self.scale > 0.0:
            part = 1.0 - 1.0 / self.scale if self.kind == "too narrow" else 1.0 / self.scale - 1.0
            return f" by {part:.0%}" if part >= 0.01 else ""
        return ""


class Evidence:
    """Evidence of one stream, or of one for each group, and the alarms that it raised.

    A `Monitor` is one; `RecalibratorMonitor` has one for each side.
    """

    def __init__(
        self,
        given: str | None,
        watchers: list[Any],
        *,
        level: float = LEVEL,
        groups: tuple[str, ...] = (),
        score_range: float | None = None,
        side: str | None = None,
        name: str | None = None,
    ) -> None:
        self.given, self._rows, self.level = given, watchers, level
        self.groups, self.score_range, self.side, self.name = groups, score_range, side, name

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self._rows[0].state[records.ROUNDS]) if self._rows else 0

    @property
    def evidence(self) -> float:
        """E-process against calibration: at least 1/alpha with probability at most alpha, ever."""
        return float(self._rows[0].state[records.EVIDENCE]) if self._rows else 1.0

    @property
    def miscalibrated(self) -> Alarm | None:
        """Alarm of the e-process, the group with the most evidence; None if there was none."""
        found = self._alarms(EVER)
        return max(found, key=lambda alarm: (alarm.evidence / alarm.threshold, alarm.group is None), default=None)

    @property
    def changed(self) -> Alarm | None:
        """Last alarm of the detector; None if there was none."""
        return max(self._alarms(CHANGED), key=lambda alarm: (alarm.round, alarm.group is None), default=None)

    @property
    def alarms(self) -> list[Alarm]:
        """Alarms of all groups and both tests."""
        return self._alarms(EVER) + self._alarms(CHANGED)

    def _alarms(self, question: str) -> list[Alarm]:
        names = (self.name, *self.groups)
        found = (self._alarm(question, *each) for each in zip(self._rows, names, strict=False))
        return [alarm for alarm in found if alarm is not None]

    def _alarm(self, question: str, watcher: Any, group: str | None) -> Alarm | None:
        assert self.given is not None
        row = watcher.state
        if question == EVER:
            at, kind, end, first, threshold = *EVER_PLACES, watcher.ever
            grown, evidence = row.item(records.PEAK), row.item(records.EVIDENCE)
            now = row[records.HEAD : records.HEAD + watcher.bets.count].sum()
            ended = bool(now < grown / 1000.0)
        else:
            at, kind, end, first, threshold = *CHANGE_PLACES, watcher.change
            grown, evidence, ended = threshold, threshold, False
        if not row[at]:
            return None
        sums = row[first : first + records.SUMS]
        count = max(sums.item(records.COUNT), 1.0)
        shift, square, inside = (sums.item(k) / count for k in (records.SCORE, records.SQUARE, records.INSIDE))
        bands, until = self.given == COVERED, int(row[end])
        since = max(until - round(count) + 1, 1)
        around = BLUR + math.ceil(math.log(FACTOR) * count / max(math.log(max(grown, 1.0)), 1.0))
        return Alarm(
            question=question,
            kind=KINDS[self.given][int(shift > 0.0) if bands else int(row[kind])],
            round=int(row[at]),
            since=since,
            earliest=max(since - around, 1),
            latest=min(since + around, until),
            until=until,
            evidence=evidence,
            threshold=float(threshold),
            level=self.level,
            coverage=self.level + shift if bands else inside,
            shift=shift * (self.score_range or 1.0) if self.given == SCORES else shift,
            scale=math.sqrt(max(square - shift * shift, 0.0)),
            given=self.given,
            group=group,
            ended=ended,
            side=self.side,
        )

    def __repr__(self) -> str:
        found = "; ".join(f"{alarm.question}: {alarm.text()}" for alarm in self.alarms)
        return f"{type(self).__name__}({self.rounds:,} rounds, {found or f'no alarm, evidence {self.evidence:.3g}'})"


class Monitor(Evidence):
    """Tests, valid at any time, of whether forecasts are calibrated and whether they have changed.

    Each update gives one kind of input: a PIT, a forecast and its outcome, a probability and its event, whether a band
    covered its outcome, or the scores of two forecasters.  Arrays are taken as many rounds in one call.

        P(an alarm is ever raised | calibrated) <= alpha
        E(rounds to the first alarm of a change | exchangeable) >= run_length

    Parameters
    ----------
    alpha : float
        Probability of ever raising an alarm on calibrated forecasts.
    run_length : float
        Mean number of rounds to a false alarm of a change.
    horizon : int
        Steps ahead: each forecast is issued when the outcomes of all but the last `horizon` - 1 forecasts are known.
        Every `horizon`-th round then belongs to one e-process; they are averaged.
    level : float
        Level of the central band whose coverage describes an alarm, and of `covered`.
    groups : sequence of str
        Names of groups of rounds (`update(group=)`), each with a monitor of its own: all rounds together have half of
        alpha, the groups the other half.
    score_range : float
        Largest possible absolute difference between two scores, for `score_a` and `score_b`.
    space : Space
        Space of the outcomes that come with forecasts; default: any number.
    seed : int
        Seed of the draws that break ties between ranks.

    Notes
    -----
    The e-process averages products of densities tilted towards a shift, another spread, skew and other tails, from the
    first round and, with small weights, from each later one.  The detector multiplies the same densities at the ranks
    of the PITs among those before, and restarts where a product is below 1 (Vovk et al. 2021; Shin, Ramdas and
    Rinaldo 2023).  An evidence of 10^7 stays, whatever comes later.

    Examples
    --------
    >>> monitor = Monitor()
    >>> for u in np.random.default_rng(0).beta(2, 1, 100):
    ...     monitor.update(pit=u)
    >>> monitor.miscalibrated.kind, monitor.miscalibrated.round < 60
    ('too low', True)
    """

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        run_length: float = 100_000,
        horizon: int = 1,
        level: float = 0.9,
        groups: Sequence[str] = (),
        score_range: float | None = None,
        space: Space | None = None,
        seed: int = 0,
    ) -> None:
        unit = None if score_range is None else number(score_range, "score_range", 1e-300)
        names = tuple(groups)
        if isinstance(groups, str) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"expected groups as names, got {short(groups)}")
        super().__init__(None, [], level=number(level, "level", 0.01, 0.999), groups=names, score_range=unit)
        self.alpha = number(alpha, "alpha", 1e-9, 0.5)
        self.run_length = number(run_length, "run_length (in rounds)", 2.0, 1e12)
        self.horizon = whole(horizon, "steps as horizon", 1, 1000)
        self.space = Line() if space is None else space
        self.seed = seed_of(seed) or 0
        self._lanes = (1.0 / self.horizon,) * self.horizon

    # --- updates
    def update(
        self,
        forecast: object = None,
        outcome: object = None,
        *,
        pit: Any = None,
        probability: Any = None,
        event: Any = None,
        covered: Any = None,
        score_a: Any = None,
        score_b: Any = None,
        group: str | None = None,
    ) -> None:
        """Update with one round, or with arrays of rounds in their order.

        Parameters
        ----------
        forecast, outcome
            Anything that `Recalibrator.predict` takes, and the outcome; lists of both for many rounds.
        pit
            F(y); an interval (low, high) or an array of shape (rounds, 2) where F has a jump at y or is known at some
            levels only.
        probability, event
            Probability of an event and whether it occurred.
        covered
            Whether the band of the monitor's `level` covered the outcome.
        score_a, score_b
            Scores of two forecasters in the same round, the smaller the better.
        group
            Name of the group of these rounds.
        """
        if type(pit) is float and 0.0 <= pit <= 1.0 and self.given == PIT:  # the fast path of a round
            alone = forecast is None and outcome is None and probability is None and event is None
            if alone and covered is None and score_a is None and score_b is None and group is None:
                self._rows[0].step(pit)
                return
        values = (pit, forecast, outcome, probability, event, covered, score_a, score_b)
        names = tuple(name for name, value in zip(INPUT_NAMES, values, strict=True) if value is not None)
        if names not in INPUTS:
            raise TypeError(
                "expected one of pit=, a forecast and its outcome, probability= and event=, covered=, or score_a= and "
                f"score_b=, got {', '.join(names) or 'none'}"
            )
        if pit is not None:
            self.add(PIT, _pit_rows(pit), group)
        elif probability is not None:
            self.add(EVENT, _event_rows(probability, event), group)
        elif covered is not None:
            came = _vector(covered, "covered")
            self.add(COVERED, _event_rows(np.full(came.shape, self.level), came), group)
        elif score_a is not None:
            u = self._score_rows(score_a, score_b)
            self.add(SCORES, exact_ends(u, u), group)
        else:
            self.add(kind_on(self.space), self._forecast_rows(forecast, outcome), group)

    def _score_rows(self, first: Any, second: Any) -> Array:
        if self.score_range is None:
            raise TypeError("expected score_range=, the largest difference between two scores, of Monitor, got none")
        a, b = _vector(first, "score_a"), _vector(second, "score_b")
        if a.shape != b.shape:
            raise ValueError(f"expected as many score_b as score_a, got {b.size} and {a.size}")
        rounding = 4.0 * np.spacing(np.maximum(np.abs(a), np.abs(b)))
        far = np.abs(a - b) > self.score_range + rounding
        if far.any():
            raise ValueError(f"expected scores that differ by at most {self.score_range:g}, got {(a - b)[far][0]:g}")
        return np.asarray((1.0 + np.clip((a - b) / self.score_range, -1.0, 1.0)) / 2.0)

    def _forecast_rows(self, forecast: Any, outcome: Any) -> Array:
        many = isinstance(forecast, list) and isinstance(outcome, (list, tuple, np.ndarray))
        pairs = list(zip(forecast, outcome, strict=True)) if many else [(forecast, outcome)]
        try:
            found = [pit_of(p, self.space.outcome(y), self.space) for p, y in pairs]
        except TypeError as reason:
            needed = "; events and labels need Monitor(space=oc.Binary()) or oc.Labels([...])"
            raise TypeError(f"{reason}{needed if isinstance(self.space, Line) else ''}") from None
        return np.array(found).reshape(-1, records.ENDS)

    def add(self, given: str, pits: Array, group: str | None = None) -> Array:
        """Add rounds of a kind of input, by the ends of their PITs, which are not checked.

        Parameters
        ----------
        given, group
            "pit", "event", "label", "covered" or "scores"; name of the group.
        pits
            A row of four increasing numbers for each round, as `pit_rows` returns them.

        Returns
        -------
        array
            Evidence of both tests after each round, shape (rounds, 2).
        """
        if self.given is not None and given != self.given:
            raise TypeError(f"expected {self.given} as in the first update, got {given}")
        if group is not None and group not in self.groups:
            raise ValueError(f"expected a group among {short(list(self.groups))}, got {short(group)}")
        if self.given is None:
            self._begin(given)
        if group is not None:
            self._run(1 + self.groups.index(group), pits)
        return self._run(0, pits)

    def _begin(self, given: str, states: Iterable[Array | None] | None = None) -> None:
        """Begin with this kind of input, or continue from the states of all streams."""
        self.given = given
        bets, names = bets_for(given, self.level, self._lanes), len(self.groups)
        parts = [2.0] + [2.0 * names] * names if names else [1.0]
        start, self._rows = start_of(self.seed), []
        for part, state in zip(parts, [None] * len(parts) if states is None else states, strict=True):
            row = np.zeros(bets.size(self.horizon)) if state is None else state
            if state is None:
                kernel.start_lanes(bets, row, 0)
            ever, change = part / self.alpha, part * self.run_length
            self._rows.append(kernel.Watcher(bets, row, ever, change, self.horizon, start))

    def _run(self, place: int, pits: Array) -> Array:
        """Update a stream with many rounds; return the evidence of both tests after each."""
        kept = np.empty((len(pits), 2))
        if kept.size:
            self._rows[place].run(pits.reshape(-1), kept.reshape(-1))
        return kept

    # --- state
    def _plain(self) -> tuple[dict[str, Any], Array]:
        """Options with the kind of input, and the rows of all streams."""
        names = ("alpha", "run_length", "horizon", "level", "score_range", "seed", "given")
        options = {name: getattr(self, name) for name in names}
        rows = np.array([watcher.state for watcher in self._rows])
        plain = {"options": options | {"groups": list(self.groups)}, "space": self.space.to_plain()}
        return plain, rows.reshape(len(rows), -1)

    @classmethod
    def _from(cls, plain: dict[str, Any], rows: Array) -> Self:
        from orcast.spaces import space_from_plain

        options = dict(plain["options"])
        given = options.pop("given")
        monitor = cls(space=space_from_plain(plain["space"]), **options)
        if given is None:
            return monitor
        if given not in KINDS:
            raise ValueError(f"unknown input {short(given)}")
        size = bets_for(given, monitor.level, monitor._lanes).size(monitor.horizon)
        if rows.shape != (1 + len(monitor.groups), size):
            raise ValueError(f"rows of shape {rows.shape} are not those of a monitor")
        check_rows(rows)
        monitor._begin(given, [np.ascontiguousarray(row) for row in rows])
        return monitor

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file."""
        from orcast import persistence

        plain, rows = self._plain()
        persistence.write(path, persistence.encode({"class": "Monitor", **plain}, {"rows": rows}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Continue from a file; refuses what it cannot read."""
        from orcast import persistence

        with persistence.reading(path, "Monitor") as (header, arrays, _):
            return cls._from(header, arrays["rows"])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._from, self._plain()


# --- recalibrators


def kind_on(space: Space) -> str:
    """Kind of input that forecasts on a space are, or a reason why there is none."""
    if not watchable(space):
        raise TypeError(f"expected a quantity, an event or labels to monitor, got {space!r}, where there is no PIT")
    return PIT if isinstance(space, OrderedSpace) else EVENT if isinstance(space, Binary) else LABEL


class Watch:
    """Monitors of a recalibrator: of its forecasts and of each expert, on spaces with PITs; and its guard, if any."""

    def __init__(self, space: Space, count: int, mode: str) -> None:
        sides = range(1 + count if watchable(space) else 0)
        self.watchers = [watcher_for(kind_on(space), side) for side in sides]
        self.guard: GuardState | None = None
        if mode != "direct":
            from orcast.guard import GuardState

            self.guard = GuardState(guarded=mode == "guarded")

    def put(self, pits: Array, issued: float, clock: float) -> None:
        """Update with the PITs of round `issued`, known when `clock` were issued, or of that and later rounds."""
        kernel.watch(self.watchers, pits, issued, clock)

    def rows(self) -> list[Array]:
        """State, which changes with the next round."""
        rows = [watcher.state for watcher in self.watchers]
        return rows if self.guard is None else [*rows, self.guard.row()]

    def take(self, rows: Sequence[Array]) -> None:
        """Go on with other rows, which are not copied."""
        for watcher, row in zip(self.watchers, rows, strict=False):
            watcher.take(row)
        if self.guard is not None:
            self.guard.take(rows[-1])

    def check(self, rows: Sequence[Array]) -> None:
        """Refuse rows that are not those of such a recalibrator."""
        expected = len(self.watchers) + (self.guard is not None)
        if len(rows) != expected:
            raise ValueError(f"expected {expected} rows of monitors, got {len(rows)}")
        for watcher, row in zip(self.watchers, rows, strict=False):
            check_row(watcher.bets, row)
        if self.guard is not None:
            self.guard.check(rows[-1])


class RecalibratorMonitor:
    """Monitors of a recalibrator: of its base forecasts (the input) and of its own forecasts (the output).

    It is a copy, which later rounds do not change: `recal.monitor` makes it.

    Attributes
    ----------
    output : Evidence
        Of the recalibrated forecasts.
    inputs : dict
        Evidence of each expert by name.

    Notes
    -----
    Each side has P(an alarm that it was ever miscalibrated | calibrated) <= 0.05, and on average at least 100,000
    rounds to a false alarm of a change, also if outcomes come late.  Rounds are counted as their outcomes come; an
    expert that is missing in a round is not counted.

    Examples
    --------
    >>> import orcast as oc
    >>> recal, rng = oc.Recalibrator(oc.Line()), np.random.default_rng(0)
    >>> for y in rng.normal(0.0, 1.5, 200).tolist():
    ...     p = recal.predict(oc.Normal(0.0, 1.0)); recal.update(y)
    >>> recal.monitor.input.miscalibrated.kind, recal.monitor.output.miscalibrated
    ('too narrow', None)
    """

    def __init__(self, space: Space, experts: Sequence[str], rows: Sequence[Array]) -> None:
        kind, watch = kind_on(space), Watch(space, len(experts), "direct")
        watch.take([row.copy() for row in rows])
        sides = [[watcher] if rows else [] for watcher in watch.watchers]
        several = len(experts) > 1
        self.output = Evidence(kind, sides[0], side="output")
        self.inputs = {
            name: Evidence(kind, own, side="input", name=name if several else None)
            for name, own in zip(experts, sides[1:], strict=True)
        }

    @property
    def input(self) -> Evidence:
        """Evidence of the base forecast; of several experts, that of the one with the largest."""
        return max(self.inputs.values(), key=lambda side: side.evidence)

    @property
    def rounds(self) -> int:
        """Number of outcomes."""
        return self.output.rounds

    @property
    def alarms(self) -> list[Alarm]:
        """Alarms of all sides, the input first; `Alarm.side` and `Alarm.group` (the expert) name them."""
        return [alarm for side in (*self.inputs.values(), self.output) for alarm in side.alarms]

    def __repr__(self) -> str:
        found = "; ".join(f"{alarm.side} {alarm.question}: {alarm.text()}" for alarm in self.alarms)
        calm = f"no alarm, evidence {self.input.evidence:.3g} (input), {self.output.evidence:.3g} (output)"
        return f"RecalibratorMonitor({self.rounds:,} rounds, {found or calm})"


# --- PITs


def exact_ends(low: Array, high: Array) -> Array:
    """Ends of PITs whose intervals are known."""
    return np.stack([low, low, high, high], axis=1)


def event_pits(p: Array, y: Array) -> Array:
    """Ends of the PITs of events: [1 - p, 1] if the event occurred, else [0, 1 - p]."""
    return exact_ends(np.where(y > 0.0, 1.0 - p, 0.0), np.where(y > 0.0, 1.0, 1.0 - p))


def pit_rows(kind: str, rows: Array, levels: Array | None, y: Array) -> Array:
    """Ends of each outcome's PIT, given forecasts of a kind as in frames, a row each; nan where there is none.

    The PIT lies in an interval whose lower end is between the first two numbers, and the upper one between the last
    two.  They differ where an outcome equals a quantile, as counts do: the forecast may jump there by more than known.

    >>> pit_rows("members", np.array([[1.0, 2.0, np.nan]]), None, np.array([1.5])).round(2)
    array([[0.33, 0.33, 0.67, 0.67]])
    >>> levels, quantiles = np.array([0.1, 0.5, 0.9]), np.array([[0.0, 2.0, 5.0]])
    >>> [pit_rows("quantiles", quantiles, levels, np.array([y])).tolist() for y in (1.0, 2.0)]
    [[[0.1, 0.1, 0.5, 0.5]], [[0.1, 0.5, 0.5, 0.9]]]
    """
    first, at = rows[:, 0], y[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        if kind == "normal":
            from scipy.special import ndtr  # imported late, because it is slow

            u = np.where(rows[:, 1] > 0.0, ndtr((y - first) / rows[:, 1]), np.nan)
            ends = exact_ends(u, u)
        elif kind == "binary":
            ends = event_pits(first, y)
        elif kind == "labels":
            sums = np.cumsum(rows, axis=1)
            sums /= sums[:, -1:]
            line, place = np.arange(y.size), np.where(np.isfinite(y), y, 0.0).astype(np.intp)
            ends = exact_ends(np.where(place > 0, sums[line, place - 1], 0.0), sums[line, place])
        elif kind == "members":
            count = np.isfinite(rows).sum(axis=1) + 1.0
            ends = exact_ends((rows < at).sum(axis=1) / count, ((rows <= at).sum(axis=1) + 1.0) / count)
        else:
            assert levels is not None
            ends = _ends_by_quantiles(rows, levels, at)
        finite = np.isfinite(rows)
        there = np.isfinite(y) & (finite.any(axis=1) if kind in ANY_COLUMN else finite.all(axis=1))
        there &= (ends[:, 0] >= 0.0) & (ends[:, -1] <= 1.0)
    ends[~there] = np.nan
    return ends


def _ends_by_quantiles(rows: Array, levels: Array, at: Array) -> Array:
    """Ends of PITs by the levels of the quantiles below, at and above each outcome."""
    equal = rows == at
    low, high = np.where(rows < at, levels, 0.0).max(axis=1), np.where(rows > at, levels, 1.0).min(axis=1)
    ends, tied = exact_ends(low, high), equal.any(axis=1)
    ends[tied, 1] = np.where(equal[tied], levels, 1.0).min(axis=1)
    ends[tied, 2] = np.where(equal[tied], levels, 0.0).max(axis=1)
    ends.sort(axis=1)  # quantiles may cross
    return ends


def pit_of(forecast: object, y: Any, space: Space) -> Array:
    """Ends of the PIT of an outcome in its canonical form, as `pit_rows` has them."""
    if isinstance(space, FiniteSpace):
        return _pit_row("labels", expert_row(forecast, space)[0], None, space.cell(y))
    assert isinstance(space, OrderedSpace)
    known = known_kind(forecast)
    if isinstance(known, Quantiles):
        return _pit_row("quantiles", known.values, known.levels, y)
    if isinstance(known, Ensemble) and known.members.ndim == 1:
        return _pit_row("members", known.members, None, y)
    if isinstance(known, Normal) and known.sd > 0.0:
        return _pit_row("normal", [known.mean, known.sd], None, y)
    if isinstance(known, Forecast):
        return _pit_rows(known.pit(y)).ravel()
    cdf = getattr(known, "cdf", None)
    if callable(cdf):  # it may jump at the outcome
        ends = called(cdf, np.array([np.nextafter(y, -np.inf), y]), "cdf").clip(0.0, 1.0)
        return _pit_rows((ends.min(), ends.max())).ravel()
    return _pit_row("quantiles", expert_row(known, space)[0], space.levels, y)


def _pit_row(kind: str, row: ArrayLike, levels: Array | None, y: float) -> Array:
    return pit_rows(kind, np.array([row]), levels, np.array([y], dtype=np.float64)).ravel()


def _vector(values: Any, what: str) -> Array:
    """Finite numbers."""
    found = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ValueError(f"expected finite numbers as {what}, got {short(values)}")
    return found


def _pit_rows(pit: Any) -> Array:
    """Ends of PITs that a user gave."""
    given = np.atleast_1d(np.asarray(pit, dtype=np.float64))
    pairs = given[None, :] if isinstance(pit, tuple) and given.shape == (2,) else given
    low, high = pairs.T if pairs.ndim == 2 and pairs.shape[1] == 2 else (given, given)
    if low.ndim > 1 or not ((low >= 0.0) & (low <= high) & (high <= 1.0)).all():
        raise ValueError(f"expected PITs from 0 to 1, or (low, high) with low <= high, got {short(pit)}")
    return exact_ends(low, high)


def _event_rows(probability: Any, event: Any) -> Array:
    """Check probabilities and events; return the ends of their PITs."""
    p, y = _vector(probability, "probability"), _vector(event, "event")
    if p.shape != y.shape or not ((p >= 0.0) & (p <= 1.0)).all() or not ((y == 0.0) | (y == 1.0)).all():
        raise ValueError(
            f"expected probabilities from 0 to 1 and events 0 or 1, got {short(probability)}, {short(event)}"
        )
    return event_pits(p, y)


def false_discovery_alarms(
    evidence: ArrayLike, alpha: float = 0.05, *, total: int | None = None, named: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """Alarms among many series by e-BH: the mean share of false ones is at most alpha, however they depend.

    Those of the k largest e-values are named for the largest k with  k e_(k) >= K / alpha  (Wang and Ramdas 2022).
    `total` is the number of series K, if those with an evidence below 1/alpha, which are never named, are left out.
    `named` are those of earlier looks, which stay: stopped e-processes.  Then alpha holds for all that were ever named.
    """
    values = np.asarray(evidence, dtype=np.float64)
    values = values if named is None else np.where(named, np.inf, values)
    order = np.argsort(-values, kind="stable")
    enough = np.arange(1, values.size + 1) * values[order] >= max(values.size, total or 0) / alpha
    found = np.zeros(values.size, dtype=np.bool_)
    if enough.any():
        found[order[: np.flatnonzero(enough)[-1] + 1]] = True
    return found
