"""Long tables of forecasts: a row for each quantile or sample, as the hubverse and scoringutils have them.

=============  ==========================================================================================
what           columns that are read as such
=============  ==========================================================================================
value          ``value`` ``predicted`` ``prediction``
quantile       ``output_type_id`` where ``output_type`` is "quantile"; else ``quantile_level`` or ``quantile``
sample         ``output_type_id`` where ``output_type`` is "sample"; else ``sample_id``
model          ``model_id`` ``model``
=============  ==========================================================================================

All other columns say which forecast a row belongs to.  Rows of other types (means, probabilities of labels) are left
alone.  The table is spread to a row for each forecast, and what comes out is put beside each of its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.panel.column_names import (
    CERTIFICATE,
    CUTOFF,
    HORIZON,
    OUTCOME,
    OWN,
    TIME,
    level_of,
    listed,
    plain,
    readings,
)

if TYPE_CHECKING:
    from orcast.panel.frame import Frame

Codes = NDArray[np.intp]

VALUES = ("value", "predicted", "prediction")
LEVELS = ("quantile_level", "quantile")
SAMPLES = ("sample_id",)
MODELS = ("model_id", "model")
# What a table may say of its rows, beside the forecasts.
TYPES = ("output_type", "type")
LONG_CUTOFF = (*CUTOFF, "forecast_date")
# Numbers of rows, which tell nothing of a forecast.
COUNTERS = ("", "index", "level_0", "unnamed: 0")
ISSUED = "issued"
DAY = 86_400_000_000_000
UNITS = ((re.compile(r"\b(?:wk|week)", re.IGNORECASE), 7 * DAY), (re.compile(r"\bday", re.IGNORECASE), DAY))


@dataclass(frozen=True)
class LongTable:
    """Which columns of a long table are what.

    ``kind`` is "quantile" or "sample"; ``which`` the column that says which of them; ``used`` the rows that are.
    """

    value: Any
    which: Any
    kind: str
    used: NDArray[np.bool_]
    type: Any = None
    model: Any = None

    @property
    def own(self) -> tuple[Any, ...]:
        """Its columns that do not say which forecast a row belongs to."""
        return tuple(name for name in (self.value, self.which, self.type, self.model) if name is not None)


@dataclass(frozen=True)
class Spread:
    """A long table as a wide one: ``group`` is the wide row of each used row, ``names`` their columns there.

    ``rows`` are the first rows of the forecasts, ``roles`` what the columns are, ``assumed`` what was concluded.
    """

    table: LongTable
    wide: Any
    rows: Codes
    group: Codes
    names: NDArray[Any]
    models: tuple[str, ...]
    roles: dict[str, Any]
    assumed: tuple[str, ...]

    def gathered(self, new: dict[Any, NDArray[Any]]) -> dict[Any, NDArray[Any]]:
        """What came out for each forecast, put beside the rows of the long table."""
        used = np.flatnonzero(self.table.used)
        columns = {name: i for i, name in enumerate(dict.fromkeys(self.names.tolist()))}
        out: dict[Any, NDArray[Any]] = {}
        answered: set[Any] = set()
        for result, rename in ((f"{OWN}_{self.table.value}", True), (self.table.value, False)):
            values = np.full(len(self.table.used), np.nan)
            for name in columns:
                source = _ours(name, self.models) if rename else name
                if source in new:
                    at = self.names == name
                    values[used[at]] = new[source][self.group[at]]
                    answered.add(source)
                    out[result] = values
        owner = np.array([_owner(name, self.models) for name in self.names.tolist()], dtype=object)
        for what in CERTIFICATE:
            for model in self.models or ("",):
                source = f"{model}_{OWN}_{what}" if model else f"{OWN}_{what}"
                if source not in new:
                    continue
                given = new[source]
                column = out.setdefault(f"{OWN}_{what}", _empty(len(self.table.used), given.dtype))
                at = owner == model
                column[used[at]] = given[self.group[at]]
                answered.add(source)
        left = [name for name in new if name not in answered]
        if any(level_of(str(name)) is not None for name in left):
            raise ValueError(f"expected levels that the long table has rows for, got {listed(left)} beside them")
        of_rows = {name: _empty(len(self.table.used), new[name].dtype) for name in left}
        for name, column in of_rows.items():
            column[used] = new[name][self.group]
        return of_rows | out


def _empty(rows: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """A column of rows without an answer."""
    if kind.kind == "O":
        return np.full(rows, "no forecast", dtype=object)
    return np.full(rows, np.nan if kind.kind == "f" else -1, dtype=kind)


def _owner(name: str, models: Sequence[str]) -> str:
    return next((model for model in models if name.startswith(f"{model}_")), "")


def _ours(name: str, models: Sequence[str]) -> str:
    """The name of what comes out for a wide column."""
    model = _owner(name, models)
    return f"{model}_{OWN}{name[len(model) :]}" if model else f"{OWN}_{name}"


def find_long(frame: Frame) -> LongTable | None:
    """A long table's columns, or None if it is a wide one."""
    schema = frame.searched.schema
    texts = {str(name).lower(): name for name in schema}
    value = next((texts[text] for text in VALUES if text in texts), None)
    if value is None or not schema[value].is_numeric() or any(level_of(str(name)) for name in schema):
        return None
    model = next((texts[text] for text in MODELS if text in texts and not schema[texts[text]].is_numeric()), None)
    kind = next((texts[text] for text in TYPES if text in texts and not schema[texts[text]].is_numeric()), None)
    types = None if kind is None else np.array([str(each).lower() for each in frame.column(kind).to_list()])
    if "output_type" in texts and "output_type_id" in texts and types is not None:
        which = texts["output_type_id"]
        for wanted in ("quantile", "sample"):
            if (types == wanted).any():
                return LongTable(value, which, wanted, types == wanted, kind, model)
        raise ValueError(
            f"expected rows with the output_type 'quantile' or 'sample', got {listed(np.unique(types).tolist())}"
        )
    if any(kind_.is_numeric() and readings(str(name)) for name, kind_ in schema.items()):
        return None
    for words, wanted in ((LEVELS, "quantile"), (SAMPLES, "sample")):
        which = next((texts[text] for text in words if text in texts), None)
        if which is not None and (wanted == "sample" or schema[which].is_numeric()):
            used = np.asarray(~frame.column(which).is_null().to_numpy(), dtype=bool)
            if wanted == "quantile":
                level = frame.numbers(which)
                used &= (level > 0.0) & (level < 1.0)
            if used.any() and (wanted == "sample" or used.mean() > 0.5):
                return LongTable(value, which, wanted, used, kind if str(kind).lower() == "type" else None, model)
    return None


def spread(frame: Frame, table: LongTable) -> Spread:
    """A row for each forecast, with a column for each of its quantiles or samples."""
    result = f"{OWN}_{table.value}"
    certificate = {f"{OWN}_{what}": what for what in CERTIFICATE}
    used = np.flatnonzero(table.used)
    columns = frame.reading.columns
    aside = {*table.own, result, *certificate}
    keys = [name for name in columns if name not in aside and str(name).lower() not in COUNTERS]
    codes = {name: _coded(frame.column(name), used) for name in keys}
    group, first = _grouped(list(codes.values()), len(used))
    models = [""] * len(used) if table.model is None else [str(name) for name in _taken(frame, table.model, used)]
    names = _names(frame, table, used, group, models)
    if len(used) > 2 and len(first) * 2 > len(used) and len(first) > 1:
        raise ValueError(
            f"expected several rows that differ in {table.which!r} and {table.value!r} alone for each forecast, got "
            f"{len(first)} forecasts in {len(used)} rows: drop the columns among {listed(keys)} that differ too"
        )
    distinct = list(dict.fromkeys(names.tolist()))
    known = tuple(sorted({model for model in models if model}, key=len, reverse=True))
    _refuse_twice(group, names, distinct, used, table)
    wide = frame.picked(used[first], keys)
    new: dict[Any, NDArray[Any]] = {}
    there = set(columns)
    for column, rename in ((table.value, False), (result, True)):
        if column not in there:
            continue
        numbers = frame.numbers(column)[used]
        for name in distinct:
            at = names == name
            cells = np.full(len(first), np.nan)
            cells[group[at]] = numbers[at]
            new[_ours(name, known) if rename else name] = cells
    of_model = np.array(models, dtype=object)
    for column, what in certificate.items():
        if column in there:
            for model in dict.fromkeys(models):
                at = of_model == model
                new[f"{model}_{column}" if model else column] = _of_forecasts(
                    frame, column, what, used[at], group[at], len(first)
                )
    roles, derived, assumed = _roles(frame, table, keys, codes, used[first], first)
    order = [name for name in keys if name not in derived]
    wide = frame.extended(wide.select(order), derived | new)
    return Spread(table, wide, used[first], group, names, known, roles, assumed)


def _taken(frame: Frame, name: Any, rows: Codes) -> list[Any]:
    values = frame.column(name).to_list()
    return [values[row] for row in rows.tolist()]


def _of_forecasts(frame: Frame, column: str, what: str, rows: Codes, group: Codes, count: int) -> NDArray[Any]:
    """A certificate's column for each forecast."""
    if what == "status":
        out: NDArray[Any] = np.full(count, "no forecast", dtype=object)
        out[group] = np.array([str(value) for value in _taken(frame, column, rows)], dtype=object)
        return out
    cells = np.full(count, np.nan)
    cells[group] = frame.numbers(column)[rows]
    return np.where(np.isnan(cells), -1, cells).astype(np.int8) if what == "holds" else cells


def _coded(column: Any, rows: Codes) -> Codes:
    """The values of a column as whole numbers, equal where they are; missing ones are equal too."""
    seen: dict[Any, int] = {}
    values = column.to_list()
    return np.fromiter(
        (seen.setdefault(value if value == value else None, len(seen)) for value in (values[i] for i in rows.tolist())),
        dtype=np.intp,
        count=len(rows),
    )


def _grouped(codes: Sequence[Codes], rows: int) -> tuple[Codes, Codes]:
    """Which rows agree in everything, in the order in which they come; and the first row of each group."""
    together = np.zeros(rows, dtype=np.intp)
    for code in codes:
        together = np.unique(together * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1]
    _, first, group = np.unique(together, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[group], first[order]


def _names(frame: Frame, table: LongTable, used: Codes, group: Codes, models: Sequence[str]) -> NDArray[Any]:
    """The wide column of each used row."""
    prefix = [f"{model}_" if model else "" for model in models]
    if table.kind == "sample":
        # samples may be numbered on from forecast to forecast: their place among those of one is what counts
        counts: dict[tuple[int, str], int] = {}
        ends = []
        for key in zip(group.tolist(), models, strict=True):
            counts[key] = counts.get(key, 0) + 1
            ends.append(f"member_{counts[key]}")
        return np.array([a + b for a, b in zip(prefix, ends, strict=True)], dtype=object)
    texts: dict[Any, str] = {}
    for row, value in zip(used.tolist(), _taken(frame, table.which, used), strict=True):
        if value not in texts:
            try:
                level = round(float(value), 10)
            except (TypeError, ValueError):
                level = 0.0
            if not 0.0 < level < 1.0:
                raise ValueError(
                    f"expected quantile levels between 0 and 1 in {table.which!r}, got {value!r} in row {row}"
                )
            texts[value] = f"q{plain(level)}"
    values = _taken(frame, table.which, used)
    return np.array([a + texts[value] for a, value in zip(prefix, values, strict=True)], dtype=object)


def _refuse_twice(group: Codes, names: NDArray[Any], distinct: list[str], used: Codes, table: LongTable) -> None:
    place = {name: i for i, name in enumerate(distinct)}
    cell = group * len(distinct) + np.array([place[name] for name in names.tolist()], dtype=np.intp)
    order = np.argsort(cell, kind="stable")
    same = np.flatnonzero(np.diff(cell[order]) == 0)
    if len(same):
        a, b = sorted(used[order[same[0] : same[0] + 2]].tolist())
        raise ValueError(
            f"expected one {table.value!r} for each {table.kind} of a forecast, got rows {a} and {b} for the same one"
        )


# --- which columns say what the forecasts are about


def _roles(
    frame: Frame, table: LongTable, keys: list[Any], codes: dict[Any, Codes], rows: Codes, first: Codes
) -> tuple[dict[str, Any], dict[Any, NDArray[Any]], tuple[str, ...]]:
    """Roles of columns, columns that are concluded from others, and what was."""
    texts = {str(name).lower(): name for name in keys}
    time, cutoff, horizon = (
        next((texts[text] for text in words if text in texts), None) for words in (_later(TIME), LONG_CUTOFF, HORIZON)
    )
    derived: dict[Any, NDArray[Any]] = {}
    assumed: tuple[str, ...] = ()
    stamps = None if cutoff is None else _dates(frame, cutoff, rows)
    about = None if time is None else _dates(frame, time, rows)
    if time is None and stamps is not None and horizon is not None:
        unit = _unit(frame, texts.get("target"), rows)
        if unit is not None:
            about = stamps + (frame.numbers(horizon)[rows] * unit).astype(np.int64)
            time = "target_end_date"
            derived[time] = about.view("datetime64[ns]")
    if stamps is not None and about is not None and len(about) and int((about - stamps).min()) <= 0:
        # what is forecast was not known: neither the time it is about nor what came after
        gaps = np.diff(np.unique(about))
        back = int((about - stamps).min()) - (int(gaps.min()) if len(gaps) else DAY)
        derived[ISSUED] = (stamps + back).view("datetime64[ns]")
        days = f"{-back / DAY:g} days"
        assumed = (
            f"forecasts count as issued {days} before {cutoff!r}, since some are about that time or earlier: cutoff= "
            "with another column says when they were issued",
        )
    outcome = [texts[text] for text in OUTCOME if text in texts and text not in (*VALUES, "target")]
    roles: dict[str, Any] = {"y": outcome[0] if len(outcome) == 1 else None, "time": time, "horizon": horizon}
    roles["cutoff"] = ISSUED if ISSUED in derived else cutoff
    taken = {*outcome, time, cutoff, horizon, "as_of"}
    chosen: list[Any] = []
    together = np.zeros(len(first), dtype=np.intp)
    candidates = [name for name in keys if name not in taken and not frame.column(name).dtype.is_float()]
    for name in sorted(candidates, key=lambda name: str(name).lower() != "location"):
        finer = np.unique(together * (int(codes[name].max(initial=0)) + 1) + codes[name][first], return_inverse=True)[1]
        # a column that others tell is not needed: the name of a location beside its number
        if finer.max(initial=0) > together.max(initial=0):
            together, chosen = finer, [*chosen, name]
    return roles | {"series": tuple(chosen)}, derived, assumed


def _later(words: Iterable[str]) -> tuple[str, ...]:
    """Names of times, those first that cannot be when a forecast was issued."""
    return tuple(sorted(words, key=lambda word: word not in ("target_end_date", "target_date", "valid_time")))


def _dates(frame: Frame, name: Any, rows: Codes) -> NDArray[np.int64] | None:
    times = frame.times(name)
    return np.asarray(times.values[rows], dtype=np.int64) if times.kind.startswith("dates") else None


def _unit(frame: Frame, target: Any, rows: Codes) -> int | None:
    """The length of a step of the horizon, as the names of the targets say it."""
    if target is None or frame.column(target).dtype.is_numeric():
        return None
    names = set(map(str, _taken(frame, target, rows)))
    found = {next((unit for pattern, unit in UNITS if pattern.search(name)), None) for name in names}
    return found.pop() if len(found) == 1 else None
