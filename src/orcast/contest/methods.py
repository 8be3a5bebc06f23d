"""Who plays: orcast with its default settings, and every rival, in one table.

A line of the table says what a method is called, where it is from, how to make one for a game, and what it plays.  A
factory takes a `Stream` and a `Game` and gives an object with `predict(forecast, id=...)` and `update(y, id=...)`, or
None for a stream that it cannot play.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orcast import baselines
from orcast.contest.play import Game, Played, Player, bounds, play
from orcast.contest.stream import Array, Stream
from orcast.game import Forecaster
from orcast.pool import Pool
from orcast.recalibrator import Recalibrator
from orcast.spaces import Binary, Space
from orcast.spaces.ordered import between
from orcast.validation import short

Factory = Callable[[Stream, Game], Any]

ORCAST, RAW, LAST, TRACKED = "orcast", "expert as given", "last outcome with its spread", "tracked expert"
# What a method is told beside the expert's forecast of the row, in a few words for the captions.
OWN = "the outcomes of its own series and horizon, as they become known"
POOLED = "the outcomes of its own series and horizon, and of the others of a panel, as they become known"
MEMBERS = f"the members of the ensemble, and {OWN}"
SEVERAL = f"all experts, and {OWN}"
ALL_PAST = "the last outcome that is known, and the changes before it; no expert"

# The constant step of gradient equilibrium, as a part of the range of the expert's first forecast.
STEP = 0.05


@dataclass(frozen=True)
class Method:
    """A line of the table; `own`: it is the same in both leagues, because it does not use the expert or is ours.

    Where there are several experts those who do not take several have the first.
    """

    name: str
    reference: str
    factory: Factory
    quantities: bool = True
    events: bool = False
    several: bool = False  # takes all experts by name
    members: bool = False  # takes the members of an ensemble
    only: str = ""  # the one kind of stream that it is for
    own: bool = False
    knows: str = OWN
    whole: Callable[[Stream], Played | None] | None = None  # plays a whole panel, or says None

    def plays(self, stream: Stream) -> bool:
        """Whether it is for streams of this kind."""
        if (self.only and stream.kind != self.only) or (self.members and stream.members is None):
            return False
        if self.several and len(stream.experts) < 2 and self.only:
            return False
        return self.events if stream.binary else self.quantities

    def play(self, stream: Stream) -> Played | None:
        """What it issues on a stream; None if it does not play it."""
        if not self.plays(stream):
            return None
        if self.whole is not None and stream.nature is None:
            played = self.whole(stream)
            if played is not None:
                return played
        return play(stream, self.player)

    def player(self, stream: Stream, game: Game) -> Player | None:
        """Who plays a game."""
        made = self.factory(stream, game)
        several = self.several and len(stream.experts) > 1
        return None if made is None else Player(made, several, self.members)


# --- orcast, as a user has it


def space_of(stream: Stream) -> Space:
    """The space that fits the bounds."""
    return Binary() if stream.binary else between(stream.low, stream.high)


def recalibrator(stream: Stream, game: Game) -> Forecaster:
    """The default; several series of a panel share a pool for each horizon."""
    pool = None
    if not stream.binary and stream.series is not None and np.ptp(stream.series) > 0:
        pool = game.shared.setdefault(("pool", game.horizon), Pool())
    return Recalibrator(space_of(stream), pool=pool, max_pending=game.rows.size + 1)


def frame(stream: Stream) -> Played | None:
    """A panel of quantities with one expert, as one frame with cutoffs through `orcast.recalibrate`."""
    if stream.binary or len(stream.experts) > 1 or (stream.series is None and stream.horizon is None):
        return None
    import polars as pl

    from orcast.panel import recalibrate

    # rows of a series that were issued together are about one time after the other
    rank = _rank(stream)
    step = int(rank.max()) + 2
    names = [f"q{level:g}" for level in stream.levels.tolist()]
    ones = np.zeros(stream.rows, dtype=np.int64)
    table = pl.DataFrame(
        {
            "unique_id": ones if stream.series is None else stream.series,
            "horizon": ones + 1 if stream.horizon is None else stream.horizon,
            "ds": step * stream.issued + 1 + rank,
            "cutoff": step * stream.issued,
            "known": step * stream.settled,
            "y": stream.y,
            **{name: stream.expert[:, i] for i, name in enumerate(names)},
        }
    )
    ends = {name: end for name, end in (("low", stream.low), ("high", stream.high)) if np.isfinite(end)}
    begin = time.process_time()
    out = recalibrate(table, known="known", low=ends.get("low"), high=ends.get("high"), workers=1)
    issued: Array = out.select([f"orcast_{name}" for name in names]).to_numpy().astype(np.float64)
    return Played(issued, stream.y, (time.process_time() - begin) / stream.rows)


def _rank(stream: Stream) -> Any:
    """The place of each row among those of its series that were issued with it."""
    series = np.zeros(stream.rows, np.int64) if stream.series is None else stream.series
    order = np.lexsort((np.arange(stream.rows), stream.issued, series))
    same = np.append(False, (np.diff(series[order]) == 0) & (np.diff(stream.issued[order]) == 0))
    start = np.maximum.accumulate(np.where(same, 0, np.arange(stream.rows)))
    rank = np.empty(stream.rows, dtype=np.int64)
    rank[order] = np.arange(stream.rows) - start
    return rank


# --- rivals


class Echo:
    """The expert as it is."""

    def predict(self, forecast: Any, *, id: Any = None) -> Any:
        """What the expert says."""
        return forecast

    def update(self, y: Any, *, id: Any = None) -> None:
        """Nothing is learnt."""


def quantity(name: str, **options: Any) -> Factory:
    """A factory of a baseline for a quantity between bounds, at the levels of the stream."""
    return lambda stream, game: getattr(baselines, name)(*bounds(stream, game.rows), levels=stream.levels, **options)


def percents(name: str, **options: Any) -> Factory:
    """The same of one that issues all levels."""
    return lambda stream, game: getattr(baselines, name)(*bounds(stream, game.rows), **options)


def event(name: str, **options: Any) -> Factory:
    """A factory of a baseline for an event."""
    return lambda stream, game: getattr(baselines, name)(**options)


def _constant_step(stream: Stream, game: Game) -> Any:
    """Gradient equilibrium with a step in units of the first forecast: bounds may be far off."""
    low, high = bounds(stream, game.rows)
    first = stream.expert[game.rows[0]]
    rate = max(STEP * float(first[-1] - first[0]) / (high - low), 1e-9)
    return baselines.GradientEquilibrium(low, high, levels=stream.levels, rate=rate)


def _last(stream: Stream, game: Game) -> Any:
    if stream.binary:
        return baselines.OutcomeFrequency(memory=50)
    return baselines.LastOutcome(*bounds(stream, game.rows))


def _events(name: str, reference: str, factory: Factory, **rest: Any) -> Method:
    return Method(name, reference, factory, quantities=False, events=True, **rest)


_ANGELOPOULOS = "Angelopoulos, Candes and Tibshirani 2023"
_KULESHOV = "Kuleshov, Fenner and Ermon 2018"
_TABLE = (
    Method(ORCAST, "this library, default settings", recalibrator, events=True, several=True, own=True, knows=POOLED,
           whole=frame),
    Method(RAW, "", lambda stream, game: Echo(), events=True, own=True, knows="nothing"),
    Method(LAST, "a random walk; for events the frequency of about 50 rounds", _last, events=True, own=True,
           knows=ALL_PAST),
    Method("ACI", "Gibbs and Candes 2021", quantity("ConformalLevels")),
    Method("DtACI", "Gibbs and Candes 2024", quantity("ConformalMixture")),
    Method("quantile tracker", f"{_ANGELOPOULOS} (P)", quantity("ConformalPID", integral=0.0)),
    Method("conformal PID", f"{_ANGELOPOULOS} (PI)", quantity("ConformalPID")),
    Method("MultiQT", "Ding, Gibbs and Tibshirani 2025", quantity("MultiLevelTracking")),
    Method("SF-OGD", "Bhatnagar et al. 2023", quantity("ScaleFreeTracking")),
    Method("SAOCP", "Bhatnagar et al. 2023", quantity("StronglyAdaptiveTracking")),
    Method("decaying steps", "Angelopoulos, Barber and Bates 2024", quantity("DecayingTracking")),
    Method("UP-OCP", "arXiv:2602.03168", quantity("UniversalPortfolioTracking")),
    Method("COP", "arXiv:2512.07770", quantity("OptimisticTracking")),
    Method("gradient equilibrium", "Angelopoulos, Jordan and Tibshirani 2025; steps of 5% of the first range",
           _constant_step),
    Method("CQR", "Romano, Patterson and Candes 2019, all past", quantity("ConformalQuantiles")),
    Method("isotonic", f"{_KULESHOV}, all past", percents("Isotonic")),
    Method("isotonic, last 200", _KULESHOV, percents("Isotonic", window=200)),
    Method("EMOS", "Gneiting et al. 2005, rolling", percents("RollingEMOS"), members=True, only="ensembles",
           knows=MEMBERS),
    Method("IDR", "Henzi, Ziegel and Gneiting 2021, rolling", percents("IsotonicDistributions"), members=True,
           only="ensembles", knows=MEMBERS),
    Method("BOA by level", "Wintenberger 2017; Berrisch and Ziel 2021", quantity("BernsteinAggregation"), several=True,
           only="several experts", knows=SEVERAL),
    Method("equal weights", "the mean of the experts' quantiles", percents("EqualWeights"), several=True,
           only="several experts", knows=SEVERAL),
    _events("online Platt", "Gupta and Ramdas 2023", event("OnlinePlatt")),
    _events("online beta", "Kull, Silva Filho and Flach 2017; Gupta and Ramdas 2023", event("BetaCalibration")),
    _events("Platt, calibeaten", "Gupta and Ramdas 2023", event("PlattCalibeating")),
    _events("histogram binning", "Zadrozny and Elkan 2001; Foster and Hart 2023", event("HistogramBinning")),
    _events("isotonic probabilities", "Zadrozny and Elkan 2002", event("IsotonicProbabilities")),
    _events("Venn-Abers", "Vovk and Petej 2014", event("VennAbers")),
    _events("gradient equilibrium, events", "Angelopoulos, Jordan and Tibshirani 2025",
            event("EventGradientEquilibrium")),
)  # fmt: skip

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}


def load(path: str | Path | None) -> dict[str, Method]:
    """The table, with the methods of a file: METHODS = {name: factory}."""
    if path is None:
        return METHODS
    wanted = f"expected METHODS = {{name: factory}} in {path}"
    if not Path(path).is_file():
        raise ValueError(f"{wanted}, got no such file")
    try:
        found = runpy.run_path(str(path)).get("METHODS")
    except Exception as reason:
        raise ValueError(f"{wanted}, got {type(reason).__name__}: {reason}") from reason
    if not isinstance(found, Mapping) or not found:
        raise ValueError(f"{wanted}, got {'none' if found is None else short(found)}")
    table = dict(METHODS)
    for name, factory in found.items():
        if not isinstance(name, str) or not (callable(factory) or isinstance(factory, Method)):
            raise ValueError(f"{wanted}, got {short(name)}: {short(factory)}")
        if name in table or name == TRACKED:
            raise ValueError(f"expected a new name in {path}, got {name!r}, which is in the table")
        own = factory if isinstance(factory, Method) else Method(name, Path(path).name, factory, events=True)
        table[name] = own
    return table
