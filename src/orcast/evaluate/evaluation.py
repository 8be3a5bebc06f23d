"""Forecasts before and after recalibration with their outcomes, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.validation import short

if TYPE_CHECKING:
    from orcast.evaluate.information import Information

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Places = NDArray[np.intp]
Function = TypeVar("Function", bound=Callable[..., Any])

SIDES = ("before", "after")
CERTIFICATE = ("holds", "promised", "miscalibration")
# Rows processed at once, to bound the memory.
CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Forecasts of one model before and after recalibration, with their outcomes; one row per forecast.

    Quantiles that cross are sorted.  `Evaluation.of` makes one from arrays, `orcast.check` one per model of a frame.
    Shapes that differ, and numbers out of their range, raise a ValueError.

    Functions of an evaluation take it as `evaluation`, and as `side` its forecasts "before" or "after" recalibration.

    Parameters
    ----------
    model, kind : str
        Name of the model; "quantiles", "binary" or "labels".
    levels, labels : array, tuple of str
        Levels of the quantiles, or names of the labels ("1" for kind "binary").
    before, after : array of shape (rows, levels or labels)
        Quantiles or probabilities; `after` is None if nothing was recalibrated.
    y, low, high : array
        Outcomes (indices of labels) and their bounds.
    series, names : array of int, tuple of str
        Series of each row as an index into `names`; rows of a series are in the order of time.
    time, horizon : array or None
        Time of each row, and the steps ahead if there are several.
    holds, promised, miscalibration : array or None
        Columns of the certificate.
    pending, missing, outside, crossed : int
        Rows without an outcome, without a forecast, outside the bounds; rows of `before` whose quantiles crossed.
    overlap, timed : int, bool
        Earlier times whose outcome was unknown when a forecast was issued; True if the issue times are known.
    known : tuple of Information and rows, or None
        Outcomes known to each row, and the rows of the evaluation among those; None if issued one step ahead.

    Examples
    --------
    >>> from orcast.evaluate import coverage
    >>> evaluation = Evaluation.of([[1.0, 3.0], [2.0, 4.0]], [2.0, 5.0], levels=[0.1, 0.9])
    >>> coverage(evaluation, 0.8)
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
    low: Vector
    high: Vector
    time: NDArray[Any] | None = None
    horizon: Vector | None = None
    holds: Vector | None = None
    promised: Vector | None = None
    miscalibration: Vector | None = None
    pending: int = 0
    missing: int = 0
    outside: int = 0
    overlap: int = 0
    timed: bool = False
    known: tuple[Information, Any] | None = None
    crossed: int = 0
    computed: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        width = self.levels.size if self.kind == "quantiles" else len(self.labels)
        by_row = {name: getattr(self, name) for name in ("series", "low", "high", "time", *CERTIFICATE, "horizon")}
        arrays = by_row | {side: self.side(side) for side in self.sides}
        for name, value in arrays.items():
            shape = (self.rows, width) if name in SIDES else (self.rows,)
            if value is not None and value.shape != shape:
                raise ValueError(f"expected {name} of shape {shape}, got {value.shape}")
        self._check_numbers()
        self._sort_quantiles()

    def _check_numbers(self) -> None:
        quantiles, most = self.kind == "quantiles", max(len(self.labels) - 1, 1)
        outcomes = "finite outcomes" if quantiles else f"whole numbers from 0 to {most} as outcomes"
        forecasts = "finite quantiles" if quantiles else "probabilities between 0 and 1"
        for what, values in ((outcomes, self.y), *((f"{forecasts} {side}", self.side(side)) for side in self.sides)):
            fine = np.isfinite(values)
            if not quantiles:
                fine &= (values >= 0.0) & (values <= (most if values is self.y else 1.0))
                fine &= (values == np.floor(values)) | (values is not self.y)
            if not fine.all():
                raise ValueError(f"expected {what}, got {float(values[~fine][0])!r}")
        if self.rows and not 0 <= self.series.min() <= self.series.max() < len(self.names):
            raise ValueError(f"expected series from 0 to {len(self.names) - 1}, got {short(np.unique(self.series))}")

    def _sort_quantiles(self) -> None:
        """Sort quantiles that cross, so that no score depends on their order."""
        if self.kind != "quantiles" or (np.diff(self.levels) < 0.0).any():
            return
        for side in self.sides:
            rows = self.side(side)
            crossed = sum(int((np.diff(rows[chunk], axis=1) < 0.0).any(axis=1).sum()) for chunk in chunks(self.rows))
            if crossed:
                object.__setattr__(self, side, np.sort(rows, axis=1))
            if side == "before":
                object.__setattr__(self, "crossed", max(crossed, self.crossed))

    def __repr__(self) -> str:
        after = "" if self.after is None else ", before and after"
        series = f" of {len(self.names):,} series" if len(self.names) > 1 else ""
        return f"Evaluation({self.model!r}: {self.rows:,} outcomes{series}, {self.kind}{after})"

    @classmethod
    def of(
        cls,
        before: ArrayLike,
        y: ArrayLike,
        *,
        levels: ArrayLike | None = None,
        labels: tuple[str, ...] = (),
        series: ArrayLike | None = None,
        **fields: Any,
    ) -> Evaluation:
        """Make an evaluation from arrays: quantiles at `levels`, probabilities of `labels`, or one probability per row.

        Parameters
        ----------
        before, y, levels, labels, series, **fields
            Fields of the class; `series` names the series of each row.  `timed=True` states that each row was issued
            after the outcome of the row before was known.

        Examples
        --------
        >>> Evaluation.of([0.2, 0.7], [0, 1]).kind
        'binary'
        """
        outcomes = np.asarray(y, dtype=np.float64)
        kind = "quantiles" if levels is not None else "labels" if labels else "binary"
        sides = {"before": before, "after": fields.pop("after", None)}
        for side, rows in sides.items():
            found = None if rows is None else np.asarray(rows, dtype=np.float64)
            fields[side] = found.reshape(-1, 1) if kind == "binary" and found is not None else found
        for name in ("time", "horizon", *CERTIFICATE):
            fields[name] = None if fields.get(name) is None else np.asarray(fields[name])
        for name, end in (("low", -np.inf), ("high", np.inf)):
            fields[name] = np.broadcast_to(np.asarray(fields.get(name, end), dtype=np.float64), outcomes.shape)
        names, codes = np.unique(np.zeros(outcomes.size) if series is None else np.asarray(series), return_inverse=True)
        return cls(
            model=fields.pop("model", ""),
            kind=kind,
            levels=np.empty(0) if levels is None else np.asarray(levels, dtype=np.float64),
            labels=("1",) if kind == "binary" else tuple(labels),
            y=outcomes,
            series=codes,
            names=("",) if series is None else tuple(map(str, names)),
            **fields,
        )

    @property
    def rows(self) -> int:
        """Number of forecasts with an outcome."""
        return int(self.y.size)

    @property
    def sides(self) -> tuple[str, ...]:
        """("before", "after"), or ("before",) if nothing was recalibrated."""
        return SIDES if self.after is not None else SIDES[:1]

    def side(self, side: str) -> Matrix:
        """Forecasts of one side."""
        if side not in SIDES:
            raise ValueError(f"expected side 'before' or 'after', got {side!r}")
        rows = self.before if side == "before" else self.after
        if rows is None:
            raise ValueError("expected forecasts after recalibration, got an evaluation without any")
        return rows


def computed_once(function: Function) -> Function:
    """Cache a function of an evaluation by its other arguments."""

    @wraps(function)
    def once(evaluation: Evaluation, *rest: Any, **named: Any) -> Any:
        key = function.__qualname__, *rest, *sorted(named.items())
        if key not in evaluation.computed:
            evaluation.computed[key] = function(evaluation, *rest, **named)
        return evaluation.computed[key]

    return cast(Function, once)


def chunks(rows: int, size: int = CHUNK) -> list[slice]:
    """Slices of at most `size` rows."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def outcomes_of(evaluation: Evaluation, chunk: slice | Places = slice(None)) -> Matrix:
    """One-hot outcomes; for kind "binary" a column of the outcomes."""
    y = evaluation.y[chunk, None]
    return y if evaluation.kind == "binary" else (y == np.arange(len(evaluation.labels))).astype(np.float64)


def sample_quantiles(rows: Matrix, levels: Vector) -> Matrix:
    """Quantiles of each row of values, nan left out; sorts the rows."""
    rows.sort(axis=1)
    count = np.isfinite(rows).sum(axis=1)[:, None]
    most = np.maximum(count - 1, 0)
    at = np.clip(levels * count - 0.5, 0.0, most)
    left = at.astype(np.intp)
    low, high = (np.take_along_axis(rows, np.minimum(k, most), 1) for k in (left, left + 1))
    return np.asarray(low + (high - low) * (at - left))
