"""Outcomes that stand in a table of their own, brought to the forecasts they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.frame.column_names import OUTCOME, TIME, listed, owner_of

if TYPE_CHECKING:
    from orcast.frame.frame import Frame

# Columns of a table of outcomes that do not say which forecast one belongs to.
ASIDE = ("as_of", "output_type", "output_type_id", "type", "model", "model_id")
# Types of forecasts whose outcome is the number itself.
PLAIN_TYPES = ("quantile", "sample", "mean", "median", "none", "na", "nan", "")


def joined(frame: Frame, target: Frame, y: Any = None, time: Any = None) -> tuple[Any, NDArray[np.float64]]:
    """A name for the outcomes, and the outcome of each row of a frame, nan where there is none yet.

    ``y`` and ``time`` name the column of outcomes and that of times, if they are not found.  Rows belong together if
    they agree in the time and in all columns of the same name.  Where an outcome was published several times
    (``as_of``), the newest counts.
    """
    there, here = target.searched.columns, frame.searched.columns
    y = y if y in there else _outcome(target)
    about = time if time in here else frame.roles.get("time") or _time(frame)
    time = time if time in there else _time(target)
    if time is None or about is None:
        what, whose = ("the outcomes", there) if time is None else ("the forecasts", here)
        raise ValueError(
            f"expected a column of times of {what} (such as {listed(TIME[:5], 'or')}), got {listed(whose)}"
        )
    keys = [
        name
        for name in there
        if name in here and name not in (y, time) and name != about and str(name).lower() not in ASIDE
        if not target.column(name).is_null().any() and owner_of(str(name)) is None
    ]
    rows = _newest(target)
    known = _keys(target, time, keys)
    wanted = _keys(frame, about, keys)
    values = target.numbers(y)
    found: dict[Any, float] = {}
    fixed = "as_of" in {str(name).lower() for name in there}
    for row in rows.tolist():
        key, value = known[row], values[row]
        if np.isnan(value):
            continue
        if not fixed and found.get(key, value) != value:
            raise ValueError(
                f"expected one outcome for each {listed([*keys, time])} in the table of outcomes, "
                f"got {found[key]:g} and {value:g} for {key!r}"
            )
        found[key] = value
    out = np.array([found.get(key, np.nan) for key in wanted], dtype=np.float64)
    if len(out) and np.isnan(out).all():
        raise ValueError(
            f"expected outcomes of the forecasts' {listed([*keys, about])}, got none that agree: forecasts have "
            f"{wanted[0]!r}, outcomes {known[0]!r}"
        )
    name = y if str(y).lower() not in ("value", "target") else "observation"
    if name in frame.reading.columns:
        raise ValueError(f"expected outcomes in the frame or in a table beside it, got {name!r} in both")
    return name, out


def _outcome(target: Frame) -> Any:
    schema = target.searched.schema
    there = [name for name, kind in schema.items() if str(name).lower() in OUTCOME and kind.is_numeric()]
    if not there:
        there = [name for name, kind in schema.items() if kind.is_float()]
    if len(there) != 1:
        found = f"{listed(there)}" if there else f"columns {listed(schema)}"
        raise ValueError(
            f"expected one column of outcomes, such as 'observation' or 'y', beside the times, got {found}"
        )
    return there[0]


def _time(frame: Frame) -> Any:
    from orcast.frame.frame import INDEX

    words = ("target_end_date", "target_date", "valid_time", *TIME)
    texts = {str(name).lower(): name for name in frame.searched.columns}
    found = next((texts[word] for word in words if word in texts), None)
    return INDEX if found is None and frame.dated else found


def _newest(target: Frame) -> NDArray[np.intp]:
    """The rows of a table of outcomes that are about numbers, those that were published last at its end."""
    rows = np.arange(target.rows)
    texts = {str(name).lower(): name for name in target.searched.columns}
    if "output_type" in texts:
        kinds = [str(value).lower() for value in target.column(texts["output_type"]).to_list()]
        rows = rows[[kind in PLAIN_TYPES for kind in kinds]]
    if "as_of" in texts:
        rows = rows[np.argsort(target.times(texts["as_of"], "date").values[rows], kind="stable")]
    return rows


def _keys(frame: Frame, time: Any, keys: list[Any]) -> list[tuple[str, ...]]:
    """What a row is about, as text that two tables agree on."""
    times = frame.times(time)
    columns = [[times.show(value) for value in times.values.tolist()]]
    columns += [[_text(value) for value in frame.column(name).to_list()] for name in keys]
    return list(zip(*columns, strict=True))


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
