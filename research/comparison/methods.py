"""Methods of the comparison in one table: orcast with default settings, references and rivals."""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orcast.forecaster import Forecaster, Recalibrator
from orcast.pool import Pool
from orcast.spaces import Binary, Space
from orcast.spaces.ordered import between
from research import rivals
from research.comparison.runner import Group, Model, Run, bounds, run_stream
from research.comparison.stream import Array, Stream

Factory = Callable[[Stream, Group], Any]

ORCAST, BASE, LAST = "orcast", "base forecast", "last outcome"
# information of a method beside the base forecast of the row
OWN = "known outcomes of its own series and horizon"
POOLED = "known outcomes of its own series and horizon, and of the others of a panel"
MEMBERS = f"the members of the ensemble, and {OWN}"
SEVERAL = f"all experts, and {OWN}"
OUTCOMES_ONLY = f"{OWN}; no base forecast"
LAST_ONLY = "the last known outcome and the changes before it; no base forecast"


@dataclass(frozen=True)
class Method:
    """Row of the table.

    Parameters
    ----------
    several, members : the method takes all experts by name, or the members of an ensemble.  Others get the first
        expert.
    only : the one kind of stream that it is for.
    whole : runs a whole panel, or returns None.
    """

    name: str
    reference: str
    factory: Factory
    quantities: bool = True
    events: bool = False
    several: bool = False
    members: bool = False
    only: str = ""
    information: str = OWN
    whole: Callable[[Stream], Run | None] | None = None

    def supports(self, stream: Stream) -> bool:
        """Return True if it is for streams of this kind."""
        if (self.only and stream.kind != self.only) or (self.members and stream.members is None):
            return False
        if self.several and len(stream.experts) < 2 and self.only:
            return False
        return self.events if stream.binary else self.quantities

    def run(self, stream: Stream) -> Run | None:
        """Run it on a stream; None if it does not support the stream."""
        if not self.supports(stream):
            return None
        found = self.whole(stream) if self.whole is not None and stream.adversary is None else None
        return run_stream(stream, self.start) if found is None else found

    def start(self, stream: Stream, group: Group) -> Model | None:
        """Make the model of a group."""
        made = self.factory(stream, group)
        return None if made is None else Model(made, self.several and len(stream.experts) > 1, self.members)


# --- orcast ---


def space_of(stream: Stream) -> Space:
    """Space with the bounds of the stream."""
    return Binary() if stream.binary else between(stream.low, stream.high)


def recalibrator(stream: Stream, group: Group) -> Forecaster:
    """Recalibrator with default settings; the series of a panel share a pool for each horizon."""
    pool = None
    if not stream.binary and stream.series is not None and np.ptp(stream.series) > 0:
        pool = group.shared.setdefault(("pool", group.horizon), Pool())
    return Recalibrator(space_of(stream), pool=pool, max_pending=group.rows.size + 1)


def frame(stream: Stream) -> Run | None:
    """Run a panel of quantities with one expert as one frame through `orcast.recalibrate`."""
    if stream.binary or len(stream.experts) > 1 or (stream.series is None and stream.horizon is None):
        return None
    import polars as pl

    from orcast import recalibrate

    names = [f"q{level:g}" for level in stream.levels.tolist()]
    times = {"ds": stream.known, "cutoff": stream.issued}  # an outcome is known at the time that it is about
    if stream.clock:
        times = {name: t.astype(f"M8[{stream.clock}]").astype("M8[us]") for name, t in times.items()}
    table = pl.DataFrame(
        {
            "unique_id": np.zeros(stream.rows, np.int64) if stream.series is None else stream.series,
            "y": stream.y,
            **times,
            **{name: stream.base[:, i] for i, name in enumerate(names)},
        }
    )
    ends = {name: end for name, end in (("low", stream.low), ("high", stream.high)) if np.isfinite(end)}
    begin = time.process_time()
    out = recalibrate(table, low=ends.get("low"), high=ends.get("high"), workers=1)
    issued: Array = out.select([f"orcast_{name}" for name in names]).to_numpy().astype(np.float64)
    return Run(issued, stream.y, (time.process_time() - begin) / stream.rows)


# --- references and rivals ---


class Echo:
    """Issues the base forecast unchanged."""

    def predict(self, forecast: Any, *, id: Any = None) -> Any:
        """Return the base forecast."""
        return forecast

    def update(self, y: Any, *, id: Any = None) -> None:
        """Ignore the outcome."""


def quantity(rival: Callable[..., Any], **options: Any) -> Factory:
    """Factory of a rival for a quantity between bounds, at the levels of the stream."""
    return lambda stream, group: rival(*bounds(stream, group.rows), levels=stream.levels, **options)


def percents(rival: Callable[..., Any], **options: Any) -> Factory:
    """Factory of a rival that issues all levels."""
    return lambda stream, group: rival(*bounds(stream, group.rows), **options)


def _last(stream: Stream, group: Group) -> Any:
    return rivals.OutcomeFrequency(memory=50) if stream.binary else rivals.LastOutcome(*bounds(stream, group.rows))


def _event(name: str, reference: str, rival: Callable[[], Any]) -> Method:
    return Method(name, reference, lambda stream, group: rival(), quantities=False, events=True)


_ANGELOPOULOS = "Angelopoulos, Candes and Tibshirani 2023"
_COTTON = "after the package skaters of P. Cotton"
_KULESHOV = "Kuleshov, Fenner and Ermon 2018"
_EXPERTS: dict[str, Any] = {"several": True, "only": "several experts", "information": SEVERAL}
_ENSEMBLES: dict[str, Any] = {"members": True, "only": "ensembles", "information": MEMBERS}
_TABLE = (
    Method(ORCAST, "this library, default settings", recalibrator, events=True, several=True,
           information=POOLED, whole=frame),
    Method(BASE, "", lambda stream, group: Echo(), events=True, information="nothing"),
    Method(LAST, "random walk with the spread of its changes; events: frequency over about 50 rounds", _last,
           events=True, information=LAST_ONLY),
    Method("ACI", "Gibbs and Candes 2021", quantity(rivals.ACI)),
    Method("DtACI", "Gibbs and Candes 2024", quantity(rivals.DtACI)),
    Method("quantile tracker", f"{_ANGELOPOULOS} (P)", quantity(rivals.ConformalPID, integral=0.0)),
    Method("conformal PID", f"{_ANGELOPOULOS} (PI)", quantity(rivals.ConformalPID)),
    Method("MultiQT", "Ding, Gibbs and Tibshirani 2025", quantity(rivals.MultiQT)),
    Method("COP", "arXiv:2512.07770", quantity(rivals.COP)),
    Method("decaying steps", "Angelopoulos, Barber and Bates 2024", quantity(rivals.DecayingOCP)),
    Method("NexCP", "Barber, Candes, Ramdas and Tibshirani 2023", quantity(rivals.NexCP)),
    Method("AgACI", "Zaffran et al. 2022", quantity(rivals.AgACI)),
    Method("AcMCP", "Wang and Hyndman 2024", quantity(rivals.AcMCP)),
    Method("laplace", f"{_COTTON}: outcomes alone", percents(rivals.Laplace), information=OUTCOMES_ONLY),
    Method("laplace correction", f"{_COTTON}: of the base forecast", percents(rivals.LaplaceCorrection)),
    Method("laplace portfolio", f"{_COTTON}: of both", percents(rivals.LaplacePortfolio)),
    Method("CQR", "Romano, Patterson and Candes 2019, all past", quantity(rivals.CQR)),
    Method("isotonic", f"{_KULESHOV}, all past", percents(rivals.CalibratedRegression)),
    Method("isotonic, last 200", _KULESHOV, percents(rivals.CalibratedRegression, window=200)),
    Method("EMOS", "Gneiting et al. 2005, rolling", percents(rivals.EMOS), **_ENSEMBLES),
    Method("IDR", "Henzi, Ziegel and Gneiting 2021, rolling", percents(rivals.IDR), **_ENSEMBLES),
    Method("BOA by level", "Wintenberger 2017; Berrisch and Ziel 2021", quantity(rivals.BOA), **_EXPERTS),
    Method("equal weights", "mean of the experts' quantiles", percents(rivals.EqualWeights), **_EXPERTS),
    _event("online Platt", "Gupta and Ramdas 2023", rivals.OPS),
    _event("online beta", "Kull, Silva Filho and Flach 2017; Gupta and Ramdas 2023", rivals.BetaCalibration),
    _event("TOPS", "Gupta and Ramdas 2023", rivals.TOPS),
    _event("histogram binning", "Zadrozny and Elkan 2001; Foster and Hart 2023", rivals.HistogramBinning),
    _event("isotonic probabilities", "Zadrozny and Elkan 2002", rivals.IsotonicCalibration),
    _event("Venn-Abers", "Vovk and Petej 2014", rivals.VennAbers),
)  # fmt: skip

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}


def load(path: str | Path | None) -> dict[str, Method]:
    """Return the table, with the methods of a Python file: METHODS = {name: factory}."""
    if path is None:
        return METHODS
    if not Path(path).is_file():
        raise ValueError(f"expected METHODS = {{name: factory}} in {path}, got no such file")
    table = dict(METHODS)
    for name, factory in runpy.run_path(str(path))["METHODS"].items():
        if name in table:
            raise ValueError(f"expected a new name in {path}, got {name!r}, which is in the table")
        table[name] = Method(name, Path(path).name, factory, events=True)
    return table
