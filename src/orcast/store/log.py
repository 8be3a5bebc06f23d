"""The log of a store: a data frame of what was forecast, and known, at a time."""

from __future__ import annotations

from importlib.util import find_spec
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import as_levels
from orcast.spaces import Binary, Labels, OrderedSpace, Space, normal_scores
from orcast.store import times
from orcast.store.states import numbers_from, quantiles_from
from orcast.store.tables import StoredRound, from_key, key, outcome_from, shown

if TYPE_CHECKING:
    from orcast.store.stored import Store

Array = NDArray[np.float64]
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
PLAIN = ("series", "id", "horizon", "issued", "target", "known", "status", "y", "published")
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
    columns = store.transact(lambda: _columns(store, names, first, until, last, wanted))
    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]


def _columns(store: Store, names: Any, first: int, until: int, last: int, levels: Any) -> dict[str, Any]:
    """Rounds by columns, with what was known at a time."""
    tables, wanted = store.tables, {key(name) for name in names}
    known = {text: (number, options) for number, text, options, _ in tables.names() if not wanted or text in wanted}
    for missing in wanted - known.keys():
        raise ValueError(f"expected a series of the store, got {missing}")
    series = {number: (from_key(text), options) for text, (number, options) in known.items()}
    spaces = {options: store.options(options).make(None).space for options in {each for _, each in series.values()}}
    found = [row for number in (series if wanted else (None,)) for row in tables.between(number, first, until, last)]
    rows = sorted(map(StoredRound.checked, found), key=attrgetter("number", "opened"))
    plain, alike = [], dict[Any, list[int]]()
    for place, row in enumerate(rows):
        name, options = series[row.number]
        plain.append(_plain(store, name, spaces[options], row, last))
        alike.setdefault((options, plain[-1][-1], len(row.base_bytes), len(row.forecast_bytes)), []).append(place)
    columns: dict[str, Any] = {
        name: _as_times(values) if name in TIMES else _alike(values)
        for name, values in zip(PLAIN, list(zip(*plain, strict=True)) or [()] * len(PLAIN), strict=True)
    }
    forecasts: dict[str, NDArray[Any]] = {}
    for (options, *_), places in alike.items():
        base = numbers_from([rows[place].base_bytes for place in places])
        after = numbers_from([rows[place].forecast_bytes for place in places])
        for name, values in _forecasts(spaces[options], base, after, levels).items():
            forecasts.setdefault(name, np.full(len(rows), None))[places] = values
    return columns | {name: values.tolist() for name, values in forecasts.items()}


def _plain(store: Store, name: Any, space: Space, row: StoredRound, last: int) -> tuple[Any, ...]:
    """Values of `PLAIN`."""
    y, known = _outcome(store, row, last)
    return (
        name,
        None if row.key is None else _text(row.id),
        row.horizon,
        row.issued_at,
        row.target_at,
        known,
        "pending" if known is None else row.status,
        None if y is None else _text(shown(space, outcome_from(y))),
        row.published,
    )


def _outcome(store: Store, row: StoredRound, last: int) -> tuple[str | None, int | None]:
    """The outcome that was known at a time, and since when; a dropped round has none."""
    former = store.tables.former_outcomes(row.number, row.opened) if row.revisions else []
    for y, known in reversed([*former, (row.y_text, row.known_at)]):
        if known is not None and known <= last:
            return y, known
    return None, None


def _forecasts(space: Space, base: Array, forecasts: Array, levels: Array) -> dict[str, Array]:
    """Columns of rounds alike: quantiles or probabilities of both forecasts, from the numbers of each."""
    count, base = int(base[0, 0]), base[:, 1:]
    if isinstance(space, Labels):
        masses = forecasts[:, -space.cells :]
        return {f"orcast_p_{label}": mass for label, mass in zip(space.labels, masses.T, strict=True)}
    if isinstance(space, Binary):
        return {"base_p": base[:, -1], "orcast_p": forecasts[:, -1]}
    if not isinstance(space, OrderedSpace):
        return {}
    both = {"orcast": np.array([quantiles_from(row, levels) for row in forecasts])}
    if count:
        both = {"base": base_quantiles(base, space, levels)} | both  # the first base forecast comes first
    return {
        f"{side}_q{level:g}": values
        for side, found in both.items()
        for level, values in zip(levels, found.T, strict=True)
    }


def base_quantiles(rows: Array, space: OrderedSpace, levels: Array) -> Array:
    """Quantiles of base forecasts, a row each, linear in the normal score of the level."""
    scores = space.scores
    at = np.clip(normal_scores(levels), scores[0], scores[-1])
    k = np.minimum(np.searchsorted(scores, at, side="right"), scores.size - 1)
    share = (at - scores[k - 1]) / (scores[k] - scores[k - 1])
    return np.asarray(rows[:, k - 1] + share * (rows[:, k] - rows[:, k - 1]))


def _alike(values: tuple[Any, ...]) -> list[Any]:
    """Values as text if some are."""
    if not any(isinstance(each, str) for each in values):
        return list(values)
    return [None if each is None else str(each) for each in values]


def _as_times(values: tuple[int | None, ...]) -> Any:
    return np.array([np.iinfo(np.int64).min if each is None else each for each in values], "datetime64[us]")


def _text(value: Any) -> Any:
    """A value that a column can hold."""
    return value if isinstance(value, (str, int, float)) else str(value)
