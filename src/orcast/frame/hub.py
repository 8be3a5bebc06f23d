"""Tables of hubs: a row for each quantile or sample, and outcomes in a table of their own.

A long table has the columns ``value``, ``output_type`` ("quantile" or "sample") and ``output_type_id``, perhaps
``model_id``.  All others tell which forecast a row belongs to.  Rows of other types (means, probabilities of labels)
pass through.  The table is spread to a row for each forecast, and the new one is put beside each of its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.frame.names import (
    ALARMS,
    CERTIFICATE,
    CUTOFF,
    HORIZON,
    OUTCOME,
    OWN,
    TIME,
    listed,
    owner_of,
    plain,
    rows_text,
)
from orcast.validation import row_name

if TYPE_CHECKING:
    from orcast.frame.reader import Frame

Codes = NDArray[np.intp]

# Times, those first that cannot be when a forecast was issued.
LONG_TIME = ("target_end_date", "target_date", "valid_time", *TIME)
LONG_OUTCOME = tuple(name for name in OUTCOME if name not in ("value", "target"))
LONG_ROLES = {"y": LONG_OUTCOME, "time": LONG_TIME, "horizon": HORIZON, "cutoff": (*CUTOFF, "forecast_date")}
# Columns of a table of outcomes that do not tell which forecast one belongs to.
ASIDE = ("as_of", "output_type", "output_type_id", "model_id")
# Types of forecasts whose outcome is the number itself.
PLAIN_TYPES = ("quantile", "sample", "mean", "median", "none", "na", "nan", "")


def _first(words: Iterable[str], names: Iterable[Any]) -> Any:
    """The first column with one of some names, or None."""
    texts = {str(name).lower(): name for name in names}
    return next((texts[word] for word in words if word in texts), None)


def _texts(values: Iterable[Any]) -> NDArray[Any]:
    return np.array(list(values), dtype=object)


# --- a row for each quantile or sample


class Spread(NamedTuple):
    """A long table, of ``rows`` rows, as a wide one.

    ``used`` are the rows that are read, ``group`` their wide rows and ``sources`` their wide columns, by column of the
    long table.  ``own`` are the columns that do not tell which forecast a row belongs to.
    """

    wide: Any
    rows: int
    used: Codes
    group: Codes
    sources: dict[str, NDArray[Any]]
    roles: dict[str, Any]
    own: tuple[Any, ...]

    def gathered(self, new: dict[Any, NDArray[Any]]) -> dict[Any, NDArray[Any]]:
        """Wide columns, put beside the rows of the long table."""
        out: dict[Any, NDArray[Any]] = {}
        for column, sources in self.sources.items():
            for source in new.keys() & set(sources.tolist()):
                at, given = sources == source, new.pop(source)
                values = out.setdefault(column, _empty(self.rows, given.dtype, column))
                values[self.used[at]] = given[self.group[at]]
        left = {name: _empty(self.rows, given.dtype, name) for name, given in new.items()}
        for name, values in left.items():
            values[self.used] = new[name][self.group]
        return left | {column: out[column] for column in self.sources if column in out}


def _empty(rows: int, kind: np.dtype[Any], name: str) -> NDArray[Any]:
    """Column of rows without a forecast."""
    if kind.kind == "O":
        return np.full(rows, "" if name.endswith(ALARMS) else "no forecast", dtype=object)
    return np.full(rows, np.nan if kind.kind == "f" else -1, dtype=kind)


def spread(frame: Frame) -> Spread | None:
    """Spread a long table to a row for each forecast, a column for each quantile or sample; None if it is wide."""
    from orcast.frame.reader import extended

    columns = frame.reading.columns
    value, which, type_ = (_first([each], columns) for each in ("value", "output_type_id", "output_type"))
    if None in (value, which, type_):
        return None
    types = _texts(str(each).lower() for each in frame.column(type_).to_list())
    kind = next((each for each in ("quantile", "sample") if (types == each).any()), None)
    if kind is None:
        found = listed(sorted(set(types.tolist())))
        raise ValueError(f"expected rows with the output_type 'quantile' or 'sample', got {found}")
    used, model = np.flatnonzero(types == kind), _first(["model_id"], columns)
    own = (value, which, type_, *([] if model is None else [model]))
    added = [f"{OWN}_{what}" for what in (value, *CERTIFICATE, *ALARMS)]
    keys = [name for name in columns if name not in {*own, *added}]
    numbers: dict[Any, int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in _rows(frame, keys, used)], dtype=np.intp)
    first = np.unique(group, return_index=True)[1]
    if len(used) > 2 and len(first) * 2 > len(used) and len(first) > 1:
        raise ValueError(
            f"expected several rows that differ in {which!r} and {value!r} alone for each forecast, got "
            f"{len(first)} forecasts in {len(used)} rows: drop the columns among {listed(keys)} that differ too"
        )
    models = [""] * len(used) if model is None else [f"{name}_" for (name,) in _rows(frame, [model], used)]
    if kind == "sample":
        # samples may be numbered on from forecast to forecast: their place among those of one is what counts
        counts: Counter[tuple[int, str]] = Counter()
        endings = []
        for key in zip(group.tolist(), models, strict=True):
            counts[key] += 1
            endings.append(f"member_{counts[key]}")
    else:
        endings = [f"q{plain(level)}" for level in _levels(frame, which, used)]
    sources = {column: _texts(f"{model}{column}" for model in models) for column in added}
    sources[added[0]] = _texts(f"{model}{OWN}_{end}" for model, end in zip(models, endings, strict=True))
    sources[value] = _texts(model + end for model, end in zip(models, endings, strict=True))
    new: dict[Any, NDArray[Any]] = {}
    for column in (value, *(name for name in added if name in columns)):
        values = _values(frame, column)
        for source in dict.fromkeys(sources[column].tolist()):
            at = np.flatnonzero(sources[column] == source)
            again = np.delete(used[at], np.unique(group[at], return_index=True)[1])
            if len(again) and column == value:
                raise ValueError(
                    f"expected one {value!r} for each {kind} of a forecast, got more in {rows_text(again)}"
                )
            new[source] = _empty(len(first), values.dtype, column)
            new[source][group[at]] = values[used[at]]
    # the columns of the series: all without another role that have several values
    roles = {role: _first(words, keys) for role, words in LONG_ROLES.items()}
    rest = [frame.column(name) for name in keys if name not in {*roles.values(), "as_of"}]
    roles["series"] = tuple(each.name for each in rest if not each.dtype.is_float() and each.n_unique() > 1)
    wide = extended(frame.picked(used[first], keys), new)
    return Spread(wide, len(frame.reading), used, group, sources, roles, own)


def _rows(frame: Frame, names: Sequence[Any], rows: Codes) -> list[tuple[Any, ...]]:
    """Values of some rows in some columns, None where one is missing."""
    columns = [frame.column(name).to_list() for name in names]
    return [tuple(v if (v := column[row]) == v else None for column in columns) for row in rows.tolist()]


def _values(frame: Frame, column: str) -> NDArray[Any]:
    """Numbers of a column; text of a status, and 1, 0 or -1 of a certificate."""
    if column in {f"{OWN}_{what}" for what in ("status", *ALARMS)}:
        return _texts(map(str, frame.column(column).to_list()))
    values = frame.numbers(column)
    return np.where(np.isnan(values), -1, values).astype(np.int8) if column == f"{OWN}_holds" else values


def _levels(frame: Frame, which: Any, rows: Codes) -> list[float]:
    """Level of the quantile of each row."""
    levels: list[float] = []
    for row, (value,) in zip(rows.tolist(), _rows(frame, [which], rows), strict=True):
        try:
            levels.append(round(float(value), 10))
        except (TypeError, ValueError):
            levels.append(0.0)
        if not 0.0 < levels[-1] < 1.0:
            where = f"{value!r} in {row_name(row)}"
            raise ValueError(f"expected quantile levels between 0 and 1 in {which!r}, got {where}")
    return levels


# --- outcomes in a table of their own


class OutcomeTable(NamedTuple):
    """Outcomes of a table of their own: name, that of each row of a frame, and all by time and `keys`, as text."""

    name: Any
    values: NDArray[np.float64]  # nan where there is none yet
    versions: bool  # True if some were published several times
    keys: list[Any]
    known: dict[tuple[str, ...], float]

    def of(self, key: Sequence[Any], times: Iterable[str]) -> NDArray[np.float64]:
        """Outcomes of values of the keys at some times."""
        own = tuple(map(_text, key))
        return np.array([self.known.get((time, *own), np.nan) for time in times], dtype=np.float64)


def outcomes_beside(frame: Frame, target: Frame, y: Any = None, time: Any = None) -> OutcomeTable:
    """Outcomes of a frame's rows from another table.

    ``y`` and ``time`` name the column of outcomes and that of times, if they are not found.  Rows belong together if
    they agree in the time and in all columns of the same name.  Of an outcome that was published several times
    (``as_of``) the newest counts.
    """
    there, here = target.reading.columns, frame.reading.columns
    y = y if y in there else _outcome_column(target)
    about = time if time in here else frame.roles.get("time") or _first(LONG_TIME, here)
    time = time if time in there else _first(LONG_TIME, there)
    for column, what, names in ((time, "the outcomes", there), (about, "the forecasts", here)):
        if column is None:
            raise ValueError(
                f"expected a column of times of {what} (such as {listed(TIME[:5], 'or')}), got {listed(names)}"
            )
    keys = [
        name
        for name in there
        if name in here and name not in (y, time, about) and str(name).lower() not in ASIDE
        if not target.column(name).is_null().any() and owner_of(str(name)) is None
        # a column with one value in both tables, such as the name of the target, tells nothing
        if len({_text(value) for each in (target, frame) for value in each.column(name).unique().to_list()}) > 1
    ]
    rows, as_of = np.arange(target.rows), _first(("as_of",), there)
    kind = _first(("output_type",), there)
    if kind is not None:
        rows = rows[[str(value).lower() in PLAIN_TYPES for value in target.column(kind).to_list()]]
    if as_of is not None:
        rows = rows[np.argsort(target.times(as_of, "date").values[rows], kind="stable")]
    known, values = _keys(target, time, keys), target.numbers(y)
    found: dict[Any, float] = {}
    for row in rows[~np.isnan(values[rows])].tolist():
        key, value = known[row], values[row]
        if as_of is None and found.get(key, value) != value:
            raise ValueError(
                f"expected one outcome for each {listed([*keys, time])} in the table of outcomes, "
                f"got {found[key]:g} and {value:g} for {key!r}"
            )
        found[key] = value
    name = y if str(y).lower() not in ("value", "target") else "observation"
    if name in here:
        raise ValueError(
            f"expected outcomes in the frame or in a table beside it, got {name!r} in both: drop it from one of them"
        )
    out = np.array([found.get(key, np.nan) for key in _keys(frame, about, keys)], dtype=np.float64)
    return OutcomeTable(name, out, as_of is not None and target.column(as_of).n_unique() > 1, keys, found)


def _outcome_column(target: Frame) -> Any:
    schema = target.reading.schema
    there = [name for name, kind in schema.items() if str(name).lower() in OUTCOME and kind.is_numeric()]
    there = there or [name for name, kind in schema.items() if kind.is_float()]
    if len(there) != 1:
        found = listed(there or schema)
        raise ValueError(
            f"expected one column of numbers as outcomes, such as 'observation' or 'y', beside the times, got {found} "
            "(labels have to stand beside the forecasts)"
        )
    return there[0]


def _keys(frame: Frame, time: Any, keys: list[Any]) -> list[tuple[str, ...]]:
    """Time and other columns of a row, as text that two tables agree on."""
    times = frame.times(time)
    columns = [[times.show(value) for value in times.values.tolist()]]
    columns += [list(map(_text, frame.column(name).to_list())) for name in keys]
    return list(zip(*columns, strict=True))


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
