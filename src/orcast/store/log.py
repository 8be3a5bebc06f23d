"""The log of a store: a data frame of what was forecast, and known, at a time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from orcast.forecasts import as_levels
from orcast.spaces import Binary, Labels, OrderedSpace, Space, normal_scores
from orcast.store import times
from orcast.store.states import forecast_from, rows_from, unseal
from orcast.store.tables import RECALIBRATED, RoundRow, from_key, key, outcome_from, shown

if TYPE_CHECKING:
    from orcast.store.stored import Store

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
TIMES = ("issued", "target", "known")


def frame(store: Store, names: Any, as_of: Any, start: Any, end: Any, levels: Any, backend: str | None) -> Any:
    """The log as a data frame; see `Store.rounds`."""
    import narwhals as nw

    if backend is None:
        backend = next((each for each in ("pandas", "polars") if find_spec(each)), None)
    if backend not in ("pandas", "polars"):
        raise ImportError("expected pandas or polars to be installed for a data frame, got none")
    wanted = as_levels(levels).reshape(-1)
    last = times.LAST if as_of is None else times.microseconds(as_of, "as_of", end=True)
    first = times.FIRST if start is None else times.microseconds(start, "start")
    until = times.LAST if end is None else times.microseconds(end, "end", end=True)
    rows = store.transact(lambda: list(_rows(store, names, first, until, last, wanted)))
    columns: dict[str, Any] = {}
    for column in dict.fromkeys(column for row in rows for column in row) or ("series", "id", *TIMES, "status", "y"):
        values = [row.get(column) for row in rows]
        columns[column] = _as_times(values) if column in TIMES else _alike(values)
    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]


def _alike(values: list[Any]) -> list[Any]:
    """Values as text if some are."""
    if not any(isinstance(each, str) for each in values):
        return values
    return [None if each is None else str(each) for each in values]


def _as_times(values: list[int | None]) -> Any:
    return np.array([np.iinfo(np.int64).min if each is None else each for each in values], "datetime64[us]")


def _rows(store: Store, names: Any, first: int, until: int, last: int, levels: Any) -> Iterable[dict[str, Any]]:
    """Rounds as columns and values."""
    tables, wanted = store.tables, {key(name) for name in names}
    known = {text: (number, options) for number, text, options in tables.names() if not wanted or text in wanted}
    for missing in wanted - known.keys():
        raise ValueError(f"expected a series of the store, got {missing}")
    series = {number: (from_key(text), options) for text, (number, options) in known.items()}
    spaces: dict[int, Space] = {}
    for number in series if wanted else (None,):
        for row in tables.between(number, first, until, last):
            round = RoundRow.checked(row)
            name, options = series[round.series]
            if options not in spaces:
                spaces[options] = store.options(options).make(None).space
            yield _columns(store, round.series, name, spaces[options], round, last, levels)


def _columns(
    store: Store, number: int, name: Any, space: Space, row: RoundRow, last: int, levels: Any
) -> dict[str, Any]:
    """A round as columns and values, with what was known at a time."""
    y, known = _outcome(store, number, row, last)
    status = row.status if row.status != "settled" else "pending" if y is None else "settled"
    published, numbers = unseal(row.forecast)
    plain = {
        "series": name,
        "id": None if row.id is None else _text(from_key(row.id)),
        "horizon": None if row.horizon is None else from_key(row.horizon),
        "issued": row.issued,
        "target": row.target,
        "known": known,
        "status": status,
        "y": None if y is None else _text(shown(space, outcome_from(y))),
        "published": published or RECALIBRATED,
    }
    base, p = rows_from(row.base), forecast_from(space, numbers, certified=False)
    if isinstance(space, OrderedSpace):
        for prefix, values in (("base", base_quantiles(base, space, levels)), ("orcast", p.quantile(levels))):
            if values is not None:
                plain |= zip(_quantile_names(prefix, tuple(levels)), values.tolist(), strict=True)
    elif isinstance(space, Binary):
        plain |= {"base_p": base_probability(base), "orcast_p": p.probability()}
    elif isinstance(space, Labels):
        plain |= {f"orcast_p_{space.value(k)}": mass for k, mass in enumerate(p.mass.tolist())}
    return plain


@cache
def _quantile_names(prefix: str, levels: tuple[float, ...]) -> list[str]:
    return [f"{prefix}_q{level:g}" for level in levels]


def _outcome(store: Store, number: int, row: RoundRow, last: int) -> tuple[str | None, int | None]:
    """The outcome that was known at a time."""
    if row.known is None or row.known > last:
        return None, None
    y, known = row.y, row.known
    for later, when in store.tables.revisions(number, row.opened) if row.revisions else ():
        if when <= last:
            y, known = later, when
    return y, known


def base_quantiles(base: Any, space: OrderedSpace, levels: Any) -> Any:
    """Quantiles of the first base forecast, linear in the normal score of the level."""
    return None if base is None else np.interp(normal_scores(levels), space.scores, base[0])


def base_probability(base: Any) -> float | None:
    """Probability of the event in the first base forecast."""
    return None if base is None else float(base if np.ndim(base) == 0 else np.ravel(base)[-1])


def _text(value: Any) -> Any:
    """A value that a column can hold."""
    return value if isinstance(value, (str, int, float)) else str(value)
