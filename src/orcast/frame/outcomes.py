"""Outcomes in a table of their own, beside the forecasts of a frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.frame.names import OUTCOME, TIME, listed, owner_of, show_time

if TYPE_CHECKING:
    from orcast.frame.reader import Frame

# Times, those first that cannot be when a forecast was issued.
ABOUT = ("target_end_date", "target_date", "valid_time", *TIME)


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
    about = time if time in here else _first(ABOUT, here)
    time = time if time in there else _first(ABOUT, there)
    for column, what, names in ((time, "the outcomes", there), (about, "the forecasts", here)):
        if column is None:
            raise ValueError(
                f"expected a column of times of {what} (such as {listed(TIME[:5], 'or')}), got {listed(names)}"
            )
    keys = [
        name
        for name in there
        if name in here and name not in (y, time, about) and str(name).lower() != "as_of"
        if not target.column(name).is_null().any() and owner_of(str(name)) is None
        # a column with one value in both tables, such as the name of the target, tells nothing
        if len({_text(value) for each in (target, frame) for value in each.column(name).unique().to_list()}) > 1
    ]
    rows, as_of = np.arange(target.rows), _first(("as_of",), there)
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
    columns = [[show_time(times.kind, value) for value in times.values.tolist()]]
    columns += [list(map(_text, frame.column(name).to_list())) for name in keys]
    return list(zip(*columns, strict=True))


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _first(words: Iterable[str], names: Iterable[Any]) -> Any:
    """The first column with one of some names, or None."""
    texts = {str(name).lower(): name for name in names}
    return next((texts[word] for word in words if word in texts), None)
