"""The evidence itself: forecasts before and after, with their outcomes, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast import metrics
from orcast.validation import short

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Places = NDArray[np.intp]
Function = TypeVar("Function", bound=Callable[..., Any])

KINDS = ("quantiles", "binary", "labels")
SIDES = ("before", "after")
CERTIFICATE = ("holds", "promised", "miscalibration")
# Rows that are looked at together, so that memory stays small beside the forecasts themselves.
CHUNK = 1 << 18


# What is assumed where nobody says when forecasts were issued.
ASSUMPTION = (
    "each outcome counts as known before the next forecast is issued (no issue times were given), "
    "which flatters those issued ahead"
)


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of rows: `codes` says to which of `labels` each row belongs, -1 to none; `name` what they differ in."""

    name: str
    codes: Places
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Reference:
    """For each row the last outcome that was known when it was issued, and the spread of past changes over that lag.

    Both are nan where nothing was known yet.
    """

    last: Vector
    spread: Vector


@dataclass(frozen=True, eq=False)
class Evidence:
    """Forecasts of one model before and after recalibration, with their outcomes; a row a forecast.

    `before` and `after` hold quantiles at `levels`, or probabilities of `labels` (one column, that of 1, for
    kind "binary"); `after` is None if nothing was recalibrated.  `y` is the outcome, for labels its place.
    `series` says to which of `names` a row belongs; within a series rows are in the order of time.  `low` and
    `high` are the bounds of each row.  `holds`, `promised` and `miscalibration` are the certificate's columns.
    `pending` forecasts have no outcome yet, `missing` rows no forecast, and
    the outcomes of `outside` rows were beyond the bounds: none of these are rows here.  Quantiles that cross are
    sorted; before they did in `crossed` rows.  `overlap` is how many of the times before its own had no outcome yet
    when a forecast was issued, 0 one step ahead.  `point`: the forecasts before were points, read with their own
    past errors; `moments`: those after were a mean and a spread, read as a normal distribution.  `assumption` says
    what counts as known when.  `horizon` is how many steps ahead each row is, if there are several; `by` are groups
    of rows to be compared.  `reference` is the last known outcome of each row with its own spread.

    >>> from orcast.evidence import coverage
    >>> evidence = Evidence.of([[1.0, 3.0], [2.0, 4.0]], [2.0, 5.0], levels=[0.1, 0.9])
    >>> coverage(evidence, 0.8)
    0.5
    """

    model: str
    kind: str
    levels: Vector
    labels: tuple[str, ...]
    before: Matrix
    after: Matrix | None
    y: Vector
    series: Places
    names: tuple[str, ...]
    time: NDArray[Any] | None
    low: Vector
    high: Vector
    holds: Vector | None = None
    promised: Vector | None = None
    miscalibration: Vector | None = None
    pending: int = 0
    missing: int = 0
    outside: int = 0
    overlap: int = 0
    point: bool = False
    moments: bool = False
    assumption: str = ASSUMPTION
    horizon: Vector | None = None
    by: tuple[Grouping, ...] = ()
    reference: Reference | None = None
    crossed: int = 0  # kept where sorted evidence is copied
    computed: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"expected kind 'quantiles', 'binary' or 'labels', got {self.kind!r}")
        width = self.levels.size if self.kind == "quantiles" else len(self.labels)
        for side in self.sides:
            if self.side(side).shape != (self.rows, width):
                raise ValueError(f"expected {side} of shape {(self.rows, width)}, got {self.side(side).shape}")
        by_row = {what: getattr(self, what) for what in ("series", "low", "high", "time", *CERTIFICATE, "horizon")}
        by_row |= {f"by {group.name!r}": group.codes for group in self.by}
        if self.reference is not None:
            by_row |= {"reference": self.reference.last, "spread of the reference": self.reference.spread}
        for what, value in by_row.items():
            if value is not None and value.shape != (self.rows,):
                raise ValueError(f"expected {self.rows} entries as {what}, one a row, got shape {value.shape}")
        self._check_numbers()
        self._sort_quantiles()
        if self.rows and not 0 <= self.series.min() <= self.series.max() < len(self.names):
            raise ValueError(f"expected series from 0 to {len(self.names) - 1}, got {short(np.unique(self.series))}")

    def _check_numbers(self) -> None:
        fine = np.isfinite(self.y)
        if self.kind != "quantiles":
            fine = (self.y >= 0.0) & (self.y <= max(len(self.labels) - 1, 1)) & (self.y == np.floor(self.y))
        if not fine.all():
            what = {"quantiles": "finite outcomes", "binary": "outcomes 0 or 1"}.get(self.kind, "places of labels")
            raise ValueError(f"expected {what}, got {float(self.y[~fine][0])!r}")
        for side in self.sides:
            rows = self.side(side)
            good = np.isfinite(rows) if self.kind == "quantiles" else (rows >= 0.0) & (rows <= 1.0)
            if not good.all():
                what = "finite quantiles" if self.kind == "quantiles" else "probabilities between 0 and 1"
                raise ValueError(f"expected {what} {side}, got {float(rows[~good][0])!r}")

    def _sort_quantiles(self) -> None:
        """Sort quantiles that cross, so that nothing is scored, and nobody credited, for their order."""
        if self.kind != "quantiles" or (np.diff(self.levels) < 0.0).any():
            return
        for side in self.sides:
            rows = self.side(side)
            parts = [(np.diff(rows[chunk], axis=1) < 0.0).any(axis=1) for chunk in chunks(self.rows)]
            crossed = int(sum(part.sum() for part in parts))
            if crossed:
                object.__setattr__(self, side, np.sort(rows, axis=1))
            if side == "before" and crossed:
                object.__setattr__(self, "crossed", crossed)

    def __repr__(self) -> str:
        after = "" if self.after is None else ", before and after"
        series = f" of {len(self.names):,} series" if len(self.names) > 1 else ""
        return f"Evidence({self.model!r}: {self.rows:,} outcomes{series}, {self.kind}{after})"

    @classmethod
    def of(
        cls,
        before: ArrayLike,
        y: ArrayLike,
        *,
        after: ArrayLike | None = None,
        levels: ArrayLike | None = None,
        labels: tuple[str, ...] = (),
        model: str = "",
        series: ArrayLike | None = None,
        time: ArrayLike | None = None,
        low: ArrayLike = -np.inf,
        high: ArrayLike = np.inf,
        **rest: Any,
    ) -> Evidence:
        """Evidence from arrays: quantiles at `levels`, probabilities of `labels`, or else a probability a row.

        `series` are names, one a row.

        >>> Evidence.of([0.2, 0.7], [0, 1]).kind
        'binary'
        """
        outcomes = np.asarray(y, dtype=np.float64)
        first = np.asarray(before, dtype=np.float64)
        then = None if after is None else np.asarray(after, dtype=np.float64)
        kind = "quantiles" if levels is not None else "labels" if labels else "binary"
        if kind == "binary":
            first, then, labels = first.reshape(-1, 1), None if then is None else then.reshape(-1, 1), ("1",)
        codes: Places = np.zeros(outcomes.size, dtype=np.intp)
        names: tuple[str, ...] = ("",)
        if series is not None:
            found, codes = np.unique(np.asarray(series), return_inverse=True)
            names = tuple(str(name) for name in found)
        for name in (*CERTIFICATE, "horizon"):
            if rest.get(name) is not None:
                rest[name] = np.asarray(rest[name])
        return cls(
            model=model,
            kind=kind,
            levels=np.empty(0) if levels is None else np.asarray(levels, dtype=np.float64),
            labels=tuple(labels),
            before=first,
            after=then,
            y=outcomes,
            series=codes,
            names=names,
            time=None if time is None else np.asarray(time),
            low=np.broadcast_to(np.asarray(low, dtype=np.float64), outcomes.shape),
            high=np.broadcast_to(np.asarray(high, dtype=np.float64), outcomes.shape),
            **rest,
        )

    @property
    def rows(self) -> int:
        """How many forecasts have an outcome."""
        return int(self.y.size)

    @property
    def sides(self) -> tuple[str, ...]:
        """("before", "after"), or ("before",) if nothing was recalibrated."""
        return SIDES if self.after is not None else SIDES[:1]

    def side(self, side: str) -> Matrix:
        """The forecasts before or after."""
        if side not in SIDES:
            raise ValueError(f"expected side 'before' or 'after', got {side!r}")
        rows = self.before if side == "before" else self.after
        if rows is None:
            raise ValueError("expected forecasts after recalibration, got evidence without any")
        return rows


def computed_once(function: Function) -> Function:
    """A function of evidence that is computed once for its other arguments: numbers that several others are made of.

    >>> evidence = Evidence.of([0.2, 0.7], [0, 1])
    >>> count = computed_once(lambda evidence, side="before": len(evidence.computed))
    >>> count(evidence), count(evidence), count(evidence, "before"), count(evidence, side="after")
    (0, 0, 0, 1)
    """
    parameters = signature(function)

    @wraps(function)
    def once(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs)
        given.apply_defaults()
        evidence, *rest = given.arguments.values()
        key = function.__qualname__, *rest
        if key not in evidence.computed:
            evidence.computed[key] = function(*args, **kwargs)
        return evidence.computed[key]

    return cast(Function, once)


def chunks(rows: int, size: int = CHUNK) -> list[slice]:
    """Consecutive rows that are looked at together."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


# --- indicators


def indicators(evidence: Evidence, side: str, chunk: slice) -> Matrix:
    """Indicators that the outcome is at or below each quantile, ties counted fairly, with the bounds of each row."""
    q, y = evidence.side(side)[chunk], evidence.y[chunk]
    hits = metrics.fair_indicators(q, y, evidence.levels)
    # only an outcome at its bound is counted otherwise; moved to 0, all such rows share the bound 0
    for at, bounds in ((y <= evidence.low[chunk], {"low": 0.0}), (y >= evidence.high[chunk], {"high": 0.0})):
        if at.any():
            hits[at] = metrics.fair_indicators(q[at] - y[at, None], np.zeros(int(at.sum())), evidence.levels, **bounds)
    return hits


def outcomes_of(evidence: Evidence, chunk: slice = slice(None)) -> Matrix:
    """The outcome's label as a row of zeros and a one; for kind "binary" the outcome itself."""
    y = evidence.y[chunk]
    return (
        y[:, None] if evidence.kind == "binary" else (y[:, None] == np.arange(len(evidence.labels))).astype(np.float64)
    )


def sums_by_group(values: Matrix, groups: Places, count: int) -> Matrix:
    """Sums of rows by group."""
    if count == 1:
        return np.asarray(values.sum(axis=0, keepdims=True))
    width = values.shape[1]
    places = groups[:, None] * width + np.arange(width)
    sums = np.bincount(places.ravel(), values.ravel(), minlength=count * width)
    return np.asarray(sums.reshape(count, width), dtype=np.float64)


def rows_of(evidence: Evidence) -> Vector:
    """How many rows each series has."""
    return np.bincount(evidence.series, minlength=len(evidence.names)).astype(np.float64)
