"""What was found in a frame: the columns of each model, and the names of what comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.frame.column_names import CERTIFICATE, OWN, Style, level_of, owner_of, plain
from orcast.validation import short

Vector = NDArray[np.float64]
# pandas has columns named by numbers too
Label = Any

# Kinds of forecasts as sentences have them; the first that a model has is read.
KINDS = {
    "quantiles": "quantiles",
    "members": "members",
    "normal": "a mean and a spread",
    "labels": "probabilities of labels",
    "binary": "a probability",
    "point": "a point forecast",
}
# What a point forecast gives, if no levels are asked for.
POINT_LEVELS = (0.025, 0.1, 0.5, 0.9, 0.975)


@dataclass(frozen=True)
class Output:
    """One column that comes out.

    ``what`` is "quantile", "mean", "sd", "member" or "probability"; ``level`` is that of a quantile, ``place`` which
    of the form's columns it answers to (None if to none: a level that was asked for) and ``column`` that column.
    """

    name: str
    what: str
    level: float | None = None
    place: int | None = None
    column: Label | None = None


@dataclass(frozen=True, eq=False)
class Form:
    """The forecast columns of one model.

    ``columns`` are in the order of ``levels`` (increasing), of the members, of ``labels``, or mean and spread.
    ``mean`` is a column with the mean beside quantiles; it is not a forecast of its own, but its like comes out.
    """

    model: str
    kind: str
    columns: tuple[Label, ...]
    levels: Vector | None = None
    labels: tuple[str, ...] | None = None
    mean: Label | None = None
    style: Style = field(default=Style(), repr=False)
    explicit: bool = field(default=False, repr=False)
    assumed: str | None = field(default=None, repr=False)  # what its names do not say

    @property
    def ordered(self) -> bool:
        """Whether outcomes are numbers."""
        return self.kind not in ("binary", "labels")

    @property
    def base(self) -> str:
        """What the names of all that comes out begin with."""
        return f"{self.model}_{OWN}" if self.model else OWN

    @property
    def certificate(self) -> dict[str, str]:
        """Names of the columns that come out beside the forecasts, by what they hold.

        >>> from orcast.frame.columns import find
        >>> find(["y", "q0.1", "q0.9"], numeric=["y", "q0.1", "q0.9"]).forms[0].certificate["status"]
        'orcast_status'
        """
        return {what: f"{self.base}_{what}" for what in CERTIFICATE}

    def outputs(self, levels: ArrayLike | None = None) -> tuple[Output, ...]:
        """What comes out, in the form that was found, with quantiles at more levels if asked for.

        A point forecast gives its median, ``M_orcast``, and the intervals 80 and 95, or the levels asked for instead.

        >>> from orcast.frame.columns import find
        >>> layout = find(["unique_id", "ds", "y", "A", "A-lo-90", "A-hi-90"], numeric=["y", "A", "A-lo-90", "A-hi-90"])
        >>> [out.name for out in layout.forms[0].outputs([0.1, 0.9])]
        ['A_orcast-lo-90', 'A_orcast-lo-80', 'A_orcast', 'A_orcast-hi-80', 'A_orcast-hi-90']
        """
        asked = [] if levels is None else _asked(levels)
        if not self.ordered:
            if asked:
                raise ValueError(f"expected no levels beside {KINDS[self.kind]}, got {short(levels)}")
            endings = [f"p_{label}" for label in self.labels or ()] or ["p"]
            return tuple(
                Output(self._answer(column, endings[i]), "probability", None, i, column)
                for i, column in enumerate(self.columns)
            )
        first: list[Output] = []
        quantiles: dict[float, Output] = {}
        if self.kind == "quantiles":
            assert self.levels is not None
            for i, (level, column) in enumerate(zip(self.levels.tolist(), self.columns, strict=True)):
                quantiles[level] = Output(self._answer(column, f"q{plain(level)}"), "quantile", level, i, column)
            if self.mean is not None:
                first = [Output(self._answer(self.mean, "mean"), "mean", None, None, self.mean)]
        elif self.kind == "point":
            quantiles[0.5] = Output(self.base, "quantile", 0.5, 0, self.columns[0])
            asked = asked or list(POINT_LEVELS)
        else:
            whats = ("mean", "sd") if self.kind == "normal" else ("member",) * len(self.columns)
            for i, (what, column) in enumerate(zip(whats, self.columns, strict=True)):
                ending = what if self.kind == "normal" else f"member_{i + 1}"
                first.append(Output(self._answer(column, ending), what, None, i, column))
        new = [level for level in asked if all(abs(level - other) > 1e-9 for other in quantiles)]
        every = [*quantiles, *new]
        for level in new:
            quantiles[level] = Output(self.base + self.style.write(level, every), "quantile", level)
        return (*first, *(quantiles[level] for level in sorted(quantiles)))

    def names(self, levels: ArrayLike | None = None) -> tuple[str, ...]:
        """Names of all columns that come out, the certificate's last."""
        return (*(out.name for out in self.outputs(levels)), *self.certificate.values())

    def _answer(self, column: Label, ending: str) -> str:
        """The name that answers to a found column: its ending behind the base, or else a plain ending."""
        if self.explicit:
            return f"{self.base}_{ending}"
        text = str(column)
        return f"{self.base}{text[len(self.model) :]}" if self.model else f"{OWN}_{text}"


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """Roles of the columns of a frame.

    ``known`` is None unless it is named, ``y`` only in a frame without outcomes.  ``assumed`` are sentences on
    assumptions that the names alone do not tell.
    """

    series: tuple[Label, ...]
    time: Label | None
    cutoff: Label | None
    horizon: Label | None
    y: Label
    forms: tuple[Form, ...]
    known: Label | None = None
    assumed: tuple[str, ...] = ()

    @property
    def taken(self) -> tuple[Label, ...]:
        """Columns with a role, which are no forecasts."""
        each = (self.y, self.time, self.cutoff, self.horizon, self.known, *self.series)
        return tuple(column for column in each if column is not None)

    def names(self, levels: ArrayLike | None = None) -> tuple[str, ...]:
        """Names of all columns that come out, model by model."""
        return tuple(name for form in self.forms for name in form.names(levels))

    def earlier(self, columns: Iterable[Label]) -> tuple[Label, ...]:
        """Columns that an earlier run wrote for these models: drop them, and the new ones take their place.

        >>> from orcast.frame.columns import find
        >>> columns = ["y", "q0.1", "q0.9", "orcast_q0.1", "orcast_q0.9", "orcast_q0.5", "orcast_holds"]
        >>> find(columns, numeric=columns).earlier(columns)
        ('orcast_q0.1', 'orcast_q0.9', 'orcast_q0.5', 'orcast_holds')
        """
        bases, names = {form.base for form in self.forms}, set(self.names())
        return tuple(column for column in columns if owner_of(str(column)) in bases or str(column) in names)


def written_levels(form: Form, columns: Iterable[Label]) -> dict[float, Label]:
    """The quantile columns that came out for a form, by level, as far as a frame has them.

    >>> from orcast.frame.columns import find
    >>> form = find(["y", "mean", "sd"], numeric=["y", "mean", "sd"]).forms[0]
    >>> written_levels(form, ["y", "mean", "sd", "orcast_mean", "orcast_sd", "orcast_q0.1"])
    {0.1: 'orcast_q0.1'}
    """
    if not form.ordered:
        return {}
    usual = {out.name: out.level for out in form.outputs() if out.what == "quantile"}
    found: dict[float, Label] = {}
    for column in columns:
        text = str(column)
        if text in usual:
            found[usual[text] or 0.0] = column
        elif owner_of(text) == form.base and (level := level_of(text[len(form.base) + 1 :])) is not None:
            found[level.level] = column
    return dict(sorted(found.items()))


def _asked(levels: ArrayLike) -> list[float]:
    try:
        values = np.unique(np.asarray(levels, dtype=np.float64).round(10))
    except (TypeError, ValueError):
        raise TypeError(f"expected levels strictly between 0 and 1, got {short(levels)}") from None
    if not ((values > 0.0) & (values < 1.0)).all():
        raise ValueError(f"expected levels strictly between 0 and 1, got {short(levels)}")
    return [float(value) for value in values]
