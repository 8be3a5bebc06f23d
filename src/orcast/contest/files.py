"""Streams of one's own: a table of forecasts with outcomes in a file, as `orcast check` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from orcast.contest.recipes import HUB
from orcast.contest.stream import Array, Stream
from orcast.panel.column_names import SERIES
from orcast.panel.forms import Form

MOST = 10_000
KNOWN = "known"  # a column of this name says when outcomes were known
FORMATS = (".csv", ".csv.gz", ".tsv", ".parquet", ".pq")


def forecast_files(folder: Path) -> list[Path]:
    """The tables in a folder, and in those inside it."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name.lower().endswith(FORMATS))


def read_stream(path: str, name: str | None = None) -> Stream:
    """The forecasts in a file, of all its models, with the cutoffs and times that the frame layer finds.

    A column `known` says when outcomes were known.  Rows without an outcome, or without a forecast of one of the
    models, are left out; beyond 10,000 the later ones are.  A mean and a spread are read as normal, a point with the
    spread of its own past errors, and both at the 23 levels of the forecast hub, as members are.
    """
    from orcast.cli import table_files as tables
    from orcast.evidence.information import Information
    from orcast.panel.columns import find_in
    from orcast.panel.row_times import Timing, read_row_times

    table = tables.read(path, names=SERIES)
    table, frame = tables.framed(table, None)
    known = KNOWN if KNOWN in table.frame.columns else None
    layout: Any = tables.located(table, lambda: find_in(frame, known=known))
    codes, keys = tables.located(table, lambda: frame.keys(layout.series))
    counted = np.zeros(len(keys), dtype=np.int64)
    timing = Timing().checked()
    times = tables.located(table, lambda: read_row_times(frame, layout, codes, keys, timing, counted, {}))
    forms = [form for form in layout.forms if form.kind == layout.forms[0].kind]
    kind = forms[0].kind
    if kind == "labels":
        raise ValueError(f"expected quantiles, members, numbers or the probability of a yes, got labels ({path})")
    y = frame.numbers(layout.y)
    horizon = frame.numbers(layout.horizon) if layout.horizon is not None else None
    information = Information.of(
        codes,
        times.time,
        None if times.at_once else times.cutoff,
        None if times.at_once else times.known,
        horizon,
    )
    levels = _levels(forms)
    given = {form.model or "expert": np.stack([frame.numbers(c) for c in form.columns], axis=1) for form in forms}
    members = next(iter(given.values())) if kind == "members" and len(forms) == 1 else None
    experts = {
        called: _read(form, rows, levels, information.past_spread(y - rows[:, 0]) if kind == "point" else None)
        for (called, rows), form in zip(given.items(), forms, strict=True)
    }
    whole = np.isfinite(y)
    for rows in experts.values():
        whole &= np.isfinite(rows if rows.ndim == 1 else rows.sum(axis=1))
    order = np.lexsort((times.time, information.issued))
    order = order[whole[order]][:MOST]
    if not order.size:
        raise ValueError(f"expected a row with forecast and outcome, got none ({path})")
    steps = np.unique(information.horizon[order])
    several = steps.size > 1
    binary = kind == "binary"
    return Stream(
        name=name or Path(path).name,
        kind=_kind(kind, len(forms), steps.size),
        source=path,
        knew="what its maker says: nothing is known of it here",
        levels=levels,
        experts={called: rows[order] for called, rows in experts.items()},
        y=y[order],
        issued=information.issued[order].astype(np.int64),
        settled=information.known[order].astype(np.int64),
        low=0.0 if binary else -np.inf,
        high=1.0 if binary else np.inf,
        series=codes[order].astype(np.int64) if len(keys) > 1 else None,
        horizon=np.searchsorted(steps, information.horizon[order]).astype(np.int64) + 1 if several else None,
        members=None if members is None or np.isnan(members[order]).any() else np.sort(members[order], axis=1),
    )


def _kind(kind: str, models: int, horizons: int) -> str:
    """The kind of stream that a file is, by what is in it."""
    if models > 1:
        return "several experts"
    if kind == "binary":
        return "binary"
    if kind == "members":
        return "ensembles"
    return "one-step" if horizons == 1 else "day-ahead" if horizons >= 12 else "weekly-late"


def _levels(forms: list[Form]) -> Array:
    """The levels at which all models are read."""
    if forms[0].kind == "binary":
        return np.empty(0)
    if forms[0].kind != "quantiles":
        return HUB
    each = [set(np.round(form.levels, 9).tolist()) for form in forms if form.levels is not None]
    shared = set.intersection(*each)
    if not shared:
        raise ValueError(f"expected levels that all models have, got none of {', '.join(form.model for form in forms)}")
    return np.array(sorted(shared))


def _read(form: Form, rows: Array, levels: Array, spread: Array | None) -> Array:
    """A model's columns as quantiles at the levels, or as probabilities."""
    if form.kind == "binary":
        return rows[:, 0]
    if form.kind == "members":
        with np.errstate(invalid="ignore"):
            return np.asarray(np.nanquantile(rows, levels, axis=1, method="hazen").T)
    if form.kind == "quantiles":
        assert form.levels is not None
        kept = [int(np.argmin(np.abs(form.levels - level))) for level in levels]
        return np.sort(rows[:, kept], axis=1)
    sd = rows[:, 1] if spread is None else spread
    return np.asarray(rows[:, :1] + sd[:, None] * ndtri(levels))
