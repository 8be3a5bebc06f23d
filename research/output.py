"""Output of the research commands: tables, pages in Markdown, progress."""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from orcast import __version__
from research.jobs import Progress

Cell = str | float | int | None
Row = dict[str, Any]  # by column

MARK = "<!-- produced -->"
"""Pages are rewritten below this line."""


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean as a float."""
    return float(np.mean(list(values)))


def geometric_mean(values: Iterable[float], least: float = 1e-12) -> float:
    """Geometric mean; values below `least` count as `least`, and without values the mean is nan.

    >>> round(geometric_mean([0.01, 1.0]), 6)
    0.1
    """
    found = np.array(list(values), dtype=np.float64)
    return float(np.exp(np.mean(np.log(np.maximum(found, least))))) if found.size else float("nan")


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation with n - 1; None of a single value.

    >>> deviation([1.0, 3.0]), deviation([1.0])
    (1.4142135623730951, None)
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def require(*modules: str) -> None:
    """Raise ImportError if a module of the extra `research` is not installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ImportError(f"expected {', '.join(missing)} to be installed: pip install 'orcast[research]'")


def optional(module: str) -> Any:
    """Import a module of the extra `research`."""
    require(module.partition(".")[0])
    return import_module(module)


@dataclass(frozen=True)
class Table:
    """Rows under columns, for Markdown and CSV; `digits` has the format of numbers by column.

    A page shows the columns `page` (None: all, empty: only a link to the CSV file).

    >>> table = Table("one", "A table", ("who", "QCE"), [("base", 0.15041), ("ours", None)], {"QCE": ".4f"})
    >>> print(table.markdown())
    | who | QCE |
    |---|---:|
    | base | 0.1504 |
    | ours |  |
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    digits: Mapping[str, str] = field(default_factory=dict)
    caption: str = ""
    page: tuple[str, ...] | None = None

    @classmethod
    def of(cls, name: str, title: str, rows: Sequence[Mapping[str, Cell]], **options: Any) -> Table:
        """Table of rows that name their columns, all in the same order."""
        return cls(name, title, tuple(rows[0]), [tuple(row.values()) for row in rows], **options)

    def shown(self) -> list[list[str]]:
        """Cells as text."""
        return [
            [self._cell(value, column) for value, column in zip(row, self.columns, strict=True)] for row in self.rows
        ]

    def _cell(self, value: Cell, column: str) -> str:
        if value is None:
            return ""
        if isinstance(value, float):
            return format(value, self.digits.get(column, ",.0f" if abs(value) >= 1000.0 else ".4g"))
        return str(value)

    @property
    def numeric(self) -> list[bool]:
        """True for columns of numbers."""
        cells = [[row[i] for row in self.rows if row[i] is not None] for i in range(len(self.columns))]
        return [bool(column) and not any(isinstance(cell, str) for cell in column) for column in cells]

    def markdown(self, columns: Sequence[str] | None = None) -> str:
        """Table in Markdown, with all columns or some."""
        names = self.columns if columns is None else tuple(columns)
        places = [self.columns.index(name) for name in names]
        numeric, shown = self.numeric, self.shown()
        lines = [f"| {' | '.join(names)} |", f"|{'|'.join('---:' if numeric[i] else '---' for i in places)}|"]
        lines += [f"| {' | '.join(row[i] for i in places)} |" for row in shown]
        return "\n".join(lines)

    def section(self, folder: str = "") -> str:
        """Title with a link to the CSV file, table and caption in Markdown."""
        title = f"**{self.title}** ([CSV]({folder}{self.name}.csv))"
        if self.page == ():
            return title
        return "\n\n".join([title, self.markdown(self.page), *([self.caption] if self.caption else [])])

    def write(self, folder: Path) -> Path:
        """Write a CSV file with all digits."""
        path = folder / f"{self.name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows([["" if value is None else value for value in row] for row in self.rows])
        return path


@dataclass(frozen=True)
class Section:
    """Notes and tables under a title."""

    title: str
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()

    def write(self, folder: str | Path) -> list[Path]:
        """Write each table as CSV; return the paths."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        return [table.write(place) for table in self.tables]

    def markdown(self, folder: str = "") -> str:
        """Section in Markdown; `folder` is the path of the CSV files relative to the page."""
        parts = [f"## {self.title}", *self.notes]
        parts += [table.section(folder) for table in self.tables]
        return "\n\n".join(parts) + "\n"


def write_page(path: Path, parts: Sequence[str], seconds: float, command: str) -> None:
    """Write results into a page below `MARK`; the text above it stays."""
    above = path.read_text(encoding="utf-8").split(MARK)[0] if path.exists() else "# Results\n\n"
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "river", "scikit-learn"))
    made = (
        f"Produced by `{command}` in {seconds:.0f} s on {os.cpu_count()} cores ({platform.machine()}, "
        f"{platform.system()}), Python {platform.python_version()}, orcast {__version__}, {versions}."
    )
    path.write_text("\n".join([f"{above}{MARK}\n\n{made}\n", *parts]), encoding="utf-8")


def relative_folder(page: str | None, folder: str) -> str:
    """Path of a folder relative to that of a page, with a slash at the end."""
    if page is None:
        return ""
    away = os.path.relpath(Path(folder).absolute(), Path(page).absolute().parent)
    return f"{Path(away).as_posix()}/"


def progress_lines(name: str) -> Progress:
    """Make a callback that prints a line to stderr for each tenth."""
    shown = -1

    def progress(what: str, share: float) -> None:
        nonlocal shown
        tenths = int(10.0 * share + 1e-9)
        if tenths > shown:
            shown = tenths
            print(f"{name}: {10 * tenths}% done ({what})", file=sys.stderr, flush=True)

    return progress
