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
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.frame.column_names import (
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
    from orcast.frame.frame import Frame

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
    """A long table as a wide one.

    ``used`` are the rows of the long table with a forecast, ``group`` their wide rows, ``rows`` the first long row of
    each wide one.  ``sources`` are the wide columns of the used rows, by the column of the long table.
    """

    table: LongTable
    wide: Any
    rows: Codes
    used: Codes
    group: Codes
    sources: dict[str, NDArray[Any]]
    roles: dict[str, Any]
    assumed: tuple[str, ...]

    def gathered(self, new: dict[Any, NDArray[Any]]) -> dict[Any, NDArray[Any]]:
        """Wide columns, put beside the rows of the long table."""
        count = len(self.table.used)
        out: dict[Any, NDArray[Any]] = {}
        left = dict(new)
        for column, sources in self.sources.items():
            for source in dict.fromkeys(sources.tolist()):
                if source in new:
                    at = sources == source
                    values = out.setdefault(column, _empty(count, new[source].dtype))
                    values[self.used[at]] = left.pop(source)[self.group[at]]
        if any(level_of(str(name)) is not None for name in left):
            raise ValueError(f"expected levels that the long table has rows for, got {listed(left)} beside them")
        for name, given in left.items():
            left[name] = _empty(count, given.dtype)
            left[name][self.used] = given[self.group]
        return left | out


def _empty(rows: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Column of rows without an answer."""
    if kind.kind == "O":
        return np.full(rows, "no forecast", dtype=object)
    return np.full(rows, np.nan if kind.kind == "f" else -1, dtype=kind)


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
    """Spread a long table: a row for each forecast, with a column for each of its quantiles or samples."""
    used = np.flatnonzero(table.used)
    columns = frame.reading.columns
    added = [f"{OWN}_{what}" for what in (table.value, *CERTIFICATE)]
    aside = {*table.own, *added}
    keys = [name for name in columns if name not in aside and str(name).lower() not in COUNTERS]
    group, first = _grouped(list(zip(*(_taken(frame, name, used) for name in keys), strict=True)), len(used))
    if len(used) > 2 and len(first) * 2 > len(used) and len(first) > 1:
        raise ValueError(
            f"expected several rows that differ in {table.which!r} and {table.value!r} alone for each forecast, got "
            f"{len(first)} forecasts in {len(used)} rows: drop the columns among {listed(keys)} that differ too"
        )
    prefix = [""] * len(used) if table.model is None else [f"{name}_" for name in _taken(frame, table.model, used)]
    endings = _endings(frame, table, used, group, prefix)
    sources = {column: _texts(f"{a}{column}" for a in prefix) for column in added}
    sources[added[0]] = _texts(f"{a}{OWN}_{b}" for a, b in zip(prefix, endings, strict=True))
    sources[table.value] = _texts(a + b for a, b in zip(prefix, endings, strict=True))
    _refuse_twice(group, sources[table.value], used, table)
    new: dict[Any, NDArray[Any]] = {}
    for column in (table.value, *added):
        if column in columns:
            values = _values(frame, column)
            for source in dict.fromkeys(sources[column].tolist()):
                at = sources[column] == source
                new[source] = _empty(len(first), values.dtype)
                new[source][group[at]] = values[used[at]]
    roles, derived, assumed = _roles(frame, keys, used[first])
    wide = frame.picked(used[first], [name for name in keys if name not in derived])
    return Spread(table, frame.extended(wide, derived | new), used[first], used, group, sources, roles, assumed)


def _texts(values: Iterable[str]) -> NDArray[Any]:
    return np.array(list(values), dtype=object)


def _taken(frame: Frame, name: Any, rows: Codes) -> list[Any]:
    """Some rows of a column, None where one is missing."""
    values = frame.column(name).to_list()
    return [value if value == value else None for value in (values[row] for row in rows.tolist())]


def _values(frame: Frame, column: str) -> NDArray[Any]:
    """Numbers of a column; text of a status, and 1, 0 or -1 of a certificate."""
    if column == f"{OWN}_status":
        return _texts(map(str, frame.column(column).to_list()))
    values = frame.numbers(column)
    return np.where(np.isnan(values), -1, values).astype(np.int8) if column == f"{OWN}_holds" else values


def _grouped(keys: Sequence[Any], rows: int) -> tuple[Codes, Codes]:
    """Group of each row, numbered in the order in which they come, and the first row of each group."""
    numbers: dict[Any, int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in keys or [()] * rows], dtype=np.intp)
    return group, np.unique(group, return_index=True)[1]


def _endings(frame: Frame, table: LongTable, used: Codes, group: Codes, prefix: Sequence[str]) -> list[str]:
    """Ending of the wide column of each used row."""
    if table.kind == "sample":
        # samples may be numbered on from forecast to forecast: their place among those of one is what counts
        counts: Counter[tuple[int, str]] = Counter()
        endings = []
        for key in zip(group.tolist(), prefix, strict=True):
            counts[key] += 1
            endings.append(f"member_{counts[key]}")
        return endings
    texts: dict[Any, str] = {}
    values = _taken(frame, table.which, used)
    for row, value in zip(used.tolist(), values, strict=True):
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
    return [texts[value] for value in values]


def _refuse_twice(group: Codes, names: NDArray[Any], used: Codes, table: LongTable) -> None:
    seen: dict[tuple[int, str], int] = {}
    for key, row in zip(zip(group.tolist(), names.tolist(), strict=True), used.tolist(), strict=True):
        if seen.setdefault(key, row) != row:
            raise ValueError(
                f"expected one {table.value!r} for each {table.kind} of a forecast, got rows {seen[key]} and {row} for "
                "the same one"
            )


# --- which columns say what the forecasts are about


def _roles(
    frame: Frame, keys: list[Any], rows: Codes
) -> tuple[dict[str, Any], dict[Any, NDArray[Any]], tuple[str, ...]]:
    """Roles of columns, columns that follow from others, and the assumptions."""
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
    together: list[tuple[Any, ...]] = [()] * len(rows)
    count = 1
    candidates = [name for name in keys if name not in taken and not frame.column(name).dtype.is_float()]
    for name in sorted(candidates, key=lambda name: str(name).lower() != "location"):
        finer = [(*key, value) for key, value in zip(together, _taken(frame, name, rows), strict=True)]
        # a column that follows from others is not needed: the name of a location beside its number
        if len(set(finer)) > count:
            together, count, chosen = finer, len(set(finer)), [*chosen, name]
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
