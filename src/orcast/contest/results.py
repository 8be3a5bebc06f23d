"""The table of results: a row for each stream, method and league, in a Parquet file that grows as jobs end."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orcast
from orcast.contest.scores import Score

FILE = "contest.parquet"
# What a result depends on, beside the stream, the method and the league.
PACKAGE = Path(orcast.__file__).parent
SOURCES = (
    "*.py",
    "adapters/*.py",
    "baselines/*.py",
    "contest/*.py",
    "engine/**/*.py",
    "panel/*.py",
    "spaces/*.py",
    "payoffs/*.py",
)
SHOWN_ONLY = {"page.py", "results.py", "tables.py", "__init__.py"}
# The error of a method that is not for a stream: it is none.
NOT_FOR_IT = "does not play this stream"

Row = dict[str, Any]
WHAT = ("key", "stream", "kind", "source", "knew", "rows", "games", "league", "method", "error")
COLUMNS = (*WHAT, *Score._fields)


def is_failure(row: Row) -> bool:
    """Whether a method failed on a stream that is one for it."""
    return bool(row["error"]) and row["error"] != NOT_FOR_IT


def source_digest(extra: str | Path | None = None) -> str:
    """A digest of all that the numbers depend on: the version, the sources, a user's file of methods."""
    found = hashlib.sha256(orcast.__version__.encode())
    for pattern in SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            if path.parent.name != "contest" or path.name not in SHOWN_ONLY:
                found.update(path.read_bytes())
    if extra is not None:
        found.update(Path(extra).read_bytes())
    return found.hexdigest()


def key_of(source: str, stream: str, rows: int, method: str, league: int) -> str:
    """What a result is known by."""
    return hashlib.sha256("\0".join((source, stream, str(rows), method, str(league))).encode()).hexdigest()[:32]


class Results:
    """The rows of a folder, one for each stream, league and method; `key` says of which sources it is."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / FILE
        self.rows: dict[tuple[str, int, str], Row] = {}
        if self.path.is_file():
            self._take(_read(self.path))

    def _take(self, rows: Iterable[Row]) -> None:
        self.rows.update({(row["stream"], row["league"], row["method"]): row for row in rows})

    def add(self, rows: Iterable[Row]) -> None:
        """Take rows in and write the file: whoever stops now, begins here again."""
        self._take(rows)
        self.write()

    def only(self, keys: Iterable[str]) -> list[Row]:
        """The rows of these keys that are there, in this order."""
        found = {row["key"]: row for row in self.rows.values()}
        return [found[key] for key in keys if key in found]

    def write(self) -> None:
        """The table, whole or not at all."""
        import polars as pl

        self.path.parent.mkdir(parents=True, exist_ok=True)
        schema: dict[str, Any] = dict.fromkeys(COLUMNS, pl.Float64)
        schema |= dict.fromkeys(WHAT, pl.String) | dict.fromkeys(("rows", "games", "league"), pl.Int64)
        table = pl.DataFrame([[row[name] for name in COLUMNS] for row in self.rows.values()], schema, orient="row")
        beside = self.path.with_suffix(".part")
        table.write_parquet(beside)
        os.replace(beside, self.path)


def _read(path: Path) -> list[Row]:
    import polars as pl

    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as reason:
        raise ValueError(f"expected a table of results in {path}, got another file ({reason})") from None
    if set(COLUMNS) - set(table.columns):
        return []  # of another version: its keys would not fit either
    return table.to_dicts()
