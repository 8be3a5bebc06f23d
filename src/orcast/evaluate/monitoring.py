"""Monitors of the series in a frame or an evaluation, and their alarms with control of the false discovery rate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.draws import derived_seed
from orcast.evaluate.calibration import main_share
from orcast.evaluate.dependence import information_of
from orcast.evaluate.evaluation import Evaluation, Matrix, Places, computed_once
from orcast.evaluate.information import Information
from orcast.frame.names import of_model
from orcast.monitors import (
    ALPHA,
    CHANGED,
    EVENT,
    EVER,
    LABEL,
    LEVEL,
    PIT,
    RUN_LENGTH,
    Monitor,
    false_discovery_alarms,
    pit_rows,
)

if TYPE_CHECKING:
    from orcast.evaluate.frames import FrameRows
    from orcast.frame.names import Form


# With fewer rounds in each lane a large fault of one series among many may raise no alarm.
FEW = 100


@dataclass(frozen=True, eq=False)
class Watched:
    """Monitors of one series, one for each horizon, with the times of the rows and ends of their PITs."""

    name: str
    code: int
    alarm: bool  # of e-BH among all series
    evidence: float  # e-process, averaged over the horizons
    monitors: list[tuple[Monitor, Places]]  # and their rows, the most evidence first
    times: NDArray[Any] | None
    pits: Matrix

    @property
    def monitor(self) -> Monitor:
        """Monitor at the horizon with the most evidence."""
        return self.monitors[0][0]

    @property
    def power(self) -> float:
        """Rounds by lanes, of the horizon with the most."""
        return max(each.rounds / each.horizon for each, _ in self.monitors)

    @property
    def rows(self) -> Places:
        """Rows of all horizons, in order."""
        return np.sort(np.concatenate([rows for _, rows in self.monitors]))

    def when(self, round: int) -> str:
        """Time of a round, as text."""
        if self.times is None:
            return f"round {round:,}"
        at = self.times[self.monitors[0][1][round - 1]]
        if at.dtype.kind != "M":
            return f"{at:g}" if at.dtype.kind in "fiu" else str(at)
        return str(np.datetime_as_string(at, unit="auto")).replace("T", " ")

    @property
    def path(self) -> NDArray[np.float64]:
        """Evidence after each of the rows."""
        rows, steps = np.concatenate([rows for _, rows in self.monitors]), []
        for own, at in self.monitors:
            evidence = Monitor(horizon=own.horizon, seed=own.seed).add(PIT, self.pits[at])[:, 0]
            steps.append(np.diff(evidence, prepend=1.0))
        return np.asarray(1.0 + np.cumsum(np.concatenate(steps)[np.argsort(rows)]) / len(steps))

    def to_plain(self) -> dict[str, Any]:
        """Alarms as plain data."""
        found: dict[str, Any] = {"series": self.name, "alarm": self.alarm, "evidence": self.evidence, "text": self.text}
        return found | {each.question: each.to_plain(self.when) for each in self.monitor.alarms}

    @property
    def text(self) -> str:
        """The alarms of the series in words."""
        texts = {each.question: each.text(self.when) for each in self.monitor.alarms}
        return "; ".join(text if name == EVER else f"{name}: {text}" for name, text in texts.items())


def monitor(frame: Any, *, alpha: float = ALPHA, run_length: float = RUN_LENGTH, **options: Any) -> Any:
    """Find the series of a frame whose forecasts are, or were, not calibrated, or have changed.

    Parameters
    ----------
    frame : data frame
        Forecasts and outcomes, as for `orcast.recalibrate` or as it returns them.
    alpha : float
        Expected share of false alarms among the series that are named, and probability of ever an alarm on one series.
    run_length : float
        Mean number of rounds to a false alarm of a change.
    **options
        Names of columns, bounds, issue times and publication, as in `orcast.recalibrate`.

    Returns
    -------
    frame
        Frame of the same type with a row for each model and series, the most evidence first: `model` ("M_orcast" is
        the recalibrated one), `series`, `alarm`, `evidence`, `since`, `kind`, `changed` (since when), and `text`.

    Notes
    -----
    Each series and horizon has a `Monitor`; forecasts that overlap belong to different e-processes, which are averaged.
    The `alarm` is that of e-BH over the series of a model, valid however the series depend on one another.  A warning
    says if outcomes came so late that there are too few rounds for alarms.

    Examples
    --------
    >>> import pandas as pd
    >>> y = np.random.default_rng(0).normal(size=(3, 100)) + np.array([[0.0], [0.0], [1.0]])
    >>> frame = pd.DataFrame({"unique_id": np.repeat(["A", "B", "C"], 100), "ds": [*range(100)] * 3, "y": y.ravel()})
    >>> found = monitor(frame.assign(mean=0.0, sd=1.0))
    >>> found["series"].tolist()[0], found["kind"].tolist()[0], int(found["alarm"].sum())
    ('C', 'too low', 1)
    """
    from orcast.evaluate.frames import read_rows

    rows = read_rows(frame, **options)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for form in rows.layout.forms:
        for side, found in watched_sides(rows, form, alpha, run_length).items():
            model = form.base if side == "output" else form.model
            if reason := too_late(found):
                warnings.warn(f"alarms{of_model(model)}: {reason}", stacklevel=2)
            for each in found:
                begun = {alarm.question: each.when(alarm.since) for alarm in each.monitor.alarms}
                kind = next((alarm.kind for alarm in each.monitor.alarms), "")
                since, changed = begun.get(EVER, ""), begun.get(CHANGED, "")
                row = (model, each.name, each.alarm, each.evidence, since, kind, changed, each.text)
                for name, value in zip(COLUMNS, row, strict=True):
                    columns[name].append(value)
    return rows.table.made(columns)


COLUMNS = ("model", "series", "alarm", "evidence", "since", "kind", "changed", "text")


def watched_sides(rows: FrameRows, form: Form, alpha: float, run_length: float) -> dict[str, list[Watched]]:
    """Series of a form by side: "input", and "output" if the frame has its recalibrated forecasts."""
    y = rows.outcomes(form).y
    known = np.isfinite(y) & ~rows.beyond(form, y)
    found = {}
    for side, columns in (("input", form.columns), ("output", form.written)):
        if form.kind == "point" or not set(columns) <= set(rows.table.reading.columns):
            continue
        pits = pit_rows(form.kind, rows.matrix(columns), form.levels, y)
        keep = known & np.isfinite(pits[:, 0])
        times = None if rows.time is None else rows.time[keep]
        shown = times, rows.names, kind_of(form.kind), main_share(form.levels)
        found[side] = watch(rows.information, keep, pits[keep], *shown, alpha, run_length)
    if not found:
        raise ValueError(f"expected forecasts with a distribution to monitor, got point forecasts ({form.model!r})")
    return found


def kind_of(form: str) -> str:
    """Input of a monitor that forecasts of a kind are."""
    return {"binary": EVENT, "labels": LABEL}.get(form, PIT)


def watch(
    information: Information,
    keep: Any,
    pits: Matrix,
    times: NDArray[Any] | None,
    names: Sequence[str],
    kind: str,
    level: float | None,
    alpha: float = ALPHA,
    run_length: float = RUN_LENGTH,
) -> list[Watched]:
    """Run a monitor over each series and horizon; the most evidence first."""
    if not len(pits):
        return []
    series, horizon = information.series[keep], information.horizon[keep]
    issued, known = information.issued[keep], information.known[keep]
    steps = np.unique(horizon, return_inverse=True)[1]
    stream = series * (int(steps.max(initial=0)) + 1) + steps
    order = np.argsort(stream, kind="stable")
    starts = np.flatnonzero(np.diff(stream[order], prepend=-1))
    found: dict[int, list[tuple[Monitor, Places]]] = {}
    for start, end in zip(starts, [*starts[1:], order.size], strict=True):
        rows = order[start:end]
        overlap = np.arange(rows.size) - np.searchsorted(np.maximum.accumulate(known[rows]), issued[rows], side="right")
        code, seed = int(series[rows[0]]), derived_seed(0, int(series[rows[0]]), int(steps[rows[0]]))
        ahead = min(max(int(overlap.max()) + 1, 1), 1000)
        own = Monitor(alpha=alpha, run_length=run_length, horizon=ahead, level=level or LEVEL, seed=seed)
        own.add(kind, pits[rows])
        found.setdefault(code, []).append((own, rows))
    evidence = {code: float(np.mean([each.evidence for each, _ in own])) for code, own in found.items()}
    named = dict(zip(evidence, false_discovery_alarms(list(evidence.values()), alpha), strict=True))
    result = []
    for code in sorted(found, key=lambda code: -evidence[code]):
        parts = sorted(found[code], key=lambda each: -each[0].evidence)
        result.append(Watched(names[code], code, bool(named[code]), evidence[code], parts, times, pits))
    return result


def threshold_of(found: Sequence[Watched], alpha: float = ALPHA) -> float:
    """Evidence from which on series are named by e-BH; of the largest one, if none is."""
    return len(found) / (alpha * max(sum(each.alarm for each in found), 1))


def too_late(found: Sequence[Watched]) -> str:
    """Reason why late outcomes leave no power to most series, none of which is in alarm; empty if there is none."""
    late = [each for each in found if each.monitor.horizon > 1 and each.power < FEW]
    if 2 * len(late) <= len(found) or any(each.alarm for each in found):
        return ""
    each = sorted(late, key=lambda each: each.power)[len(late) // 2]
    rows = f"the {each.monitor.rounds:,} rows of a series count as about {each.power:.0f}"
    return f"outcomes came {each.monitor.horizon} rows late, so {rows}: too few to tell"


@computed_once
def alarms(evaluation: Evaluation, side: str = "before") -> list[Watched]:
    """Monitors of the series of an evaluation, the most evidence first.

    Returns
    -------
    list
        For each series its name, its `monitor` at the horizon with the most evidence, the `text` of its alarms, and
        `alarm`: True if it is named by e-BH, at 5%.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=300)
    >>> narrow = Evaluation.of(np.tile([-0.5, 0.0, 0.5], (300, 1)), y, levels=[0.05, 0.5, 0.95])
    >>> alarms(narrow)[0].monitor.miscalibrated.kind
    'too narrow'
    """
    pits = pit_rows(evaluation.kind, evaluation.side(side), evaluation.levels, evaluation.y)
    information, keep = information_of(evaluation)
    level = main_share(evaluation.levels)
    times, names, kind = evaluation.time, evaluation.names, kind_of(evaluation.kind)
    return watch(information, keep, pits, times, names, kind, level)
