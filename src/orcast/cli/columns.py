"""Options that name columns, and a description of the columns that were found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orcast.cli.tables import TableFile
    from orcast.frame.names import ColumnLayout

# Names of places are often numbers with zeros before them.
PLACES = ("location", "station", "site", "fips", "geo")

COLUMNS = """\
Columns are found by their names: Nixtla's (unique_id, ds, cutoff, y, MODEL, MODEL-lo-90, MODEL-hi-90,
MODEL-median), quantiles (q0.1, 0.1, MODEL_q0.1), mean and sd,
members (member_1, ens1, ...), a probability (p) of outcomes 0 and 1, or one of each label (p_home,
p_draw, ...).  Where that is not enough:"""

MODEL = """a model, by its name or with its columns, as tree:0.1=lower,0.9=upper or, for members, ens:e1,e2,e3;
keys are levels, mean and sd, p, or p_LABEL; may be given several times"""


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Options that name columns."""
    group = parser.add_argument_group("columns", description=COLUMNS)
    group.add_argument("--target", metavar="FILE", help="a table with the outcomes, if they are in another file")
    group.add_argument("--y", metavar="COLUMN", help="the outcomes; empty where they are not known yet")
    group.add_argument("--model", metavar="NAME", action="append", help=MODEL)
    group.add_argument("--series", metavar="COLUMN", action="append", help="names of the series; may be repeated")
    group.add_argument("--time", metavar="COLUMN", help="time of the outcome (default: rows are in order)")
    group.add_argument("--cutoff", metavar="COLUMN", help="time when the forecast was issued")
    group.add_argument("--horizon", metavar="COLUMN", help="number of steps ahead")
    group.add_argument("--known", metavar="COLUMN", help="time when the outcome was known (default: its own time)")
    group.add_argument("--lag", metavar="T", help="time from an outcome to its publication: 4D, 36h or a number")
    group.add_argument("--issued-every", metavar="N", help="forecasts are issued N rows at a time, or daily, 12h")
    group.add_argument("--low", metavar="X", help="lower bound of the outcomes: a number or a column (default: none)")
    group.add_argument("--high", metavar="X", help="upper bound of the outcomes: a number or a column (default: none)")


def names_of(options: argparse.Namespace) -> dict[str, Any]:
    """Columns that were named, as `frame.columns.find_in` takes them."""
    names = ("y", "series", "time", "cutoff", "horizon", "known")
    return {name: getattr(options, name) for name in names} | {"model": _models(options.model)}


def bounds_and_times(options: argparse.Namespace) -> dict[str, Any]:
    """Bounds and issue times that were named, as `evaluate.check` takes them."""
    times = {"lag": options.lag, "issued_every": options.issued_every}
    return {"low": bound(options.low), "high": bound(options.high), **times}


def _models(given: list[str] | None) -> Any:
    """Models by name, or with their columns."""
    pairs = [text.partition(":") for text in given or ()]
    spelt = {name: _parts(parts) for name, _, parts in pairs if set("=,") & set(parts)}
    if spelt and len(spelt) < len(pairs):
        raise ValueError(f"expected the columns of all models or of none as --model, got {given}")
    return spelt or given


def _parts(text: str) -> dict[Any, str] | list[str]:
    """A model's columns by level or name, or its members."""
    pairs = [[each.strip() for each in part.split("=", 1)] for part in text.split(",")]
    if "=" not in text:
        return [name for (name,) in pairs]
    for pair in pairs:
        if len(pair) < 2 or not all(pair):
            raise ValueError(f"expected a model's columns as tree:0.1=lower,0.9=upper, got {text!r}")
    return {bound(key): column for key, column in pairs}


def text_columns(options: argparse.Namespace) -> tuple[str, ...]:
    """Columns that hold names, not numbers."""
    from orcast.frame.names import SERIES

    return tuple(options.series) if options.series else (*SERIES, *PLACES)


def bound(text: str | None) -> float | str | None:
    """A number, or the name of a column."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def describe(table: TableFile, layout: ColumnLayout, series: int) -> list[str]:
    """Rows and columns that were found, in a few lines."""
    from orcast.frame.names import KINDS

    parts = {"outcome": layout.y, "series": _few(layout.series), "time": layout.time}
    parts |= {"cutoff": layout.cutoff, "horizon": layout.horizon, "known": layout.known}
    parts |= {form.model or "forecast": f"{KINDS[form.kind]} ({_few(form.columns)})" for form in layout.forms}
    earlier = layout.earlier(table.frame.columns)
    used = {*layout.taken, *earlier}
    used |= {column for form in layout.forms for column in (*form.columns, form.mean)}
    parts["recalibrated"] = _few(earlier)
    parts["not used"] = _few([column for column in table.frame.columns if column not in used])
    wide = max(8, *(len(what) for what, name in parts.items() if name))
    lines = [f"  {what:<{wide}}  {name}" for what, name in parts.items() if name]
    whose = f", {series:,} series" if layout.series else ""
    return [f"{table.name}: {table.frame.height:,} rows{whose}", *lines]


def _few(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names if len(names) <= 8 else [*names[:2], "...", names[-1]]))
