"""Results of an experiment: tables, figures and notes, how they are shown and written to files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from orcast.plots import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | float | int | None
Row = dict[str, Cell]  # by the names of the columns


def mean(values: Iterable[float]) -> float:
    """Over runs."""
    return float(np.mean(list(values)))


def geometric_mean(values: Iterable[float]) -> float:
    """Over settings whose figures are of different sizes.

    >>> round(geometric_mean([0.01, 1.0]), 6)
    0.1
    """
    return float(np.exp(np.mean(np.log(np.maximum(list(values), 1e-12)))))


def deviation(values: Sequence[float]) -> float | None:
    """The standard deviation of single runs, with n - 1; none of one run.

    >>> deviation([1.0, 3.0]), deviation([1.0])
    (1.4142135623730951, None)
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def yes_or_no(met: bool) -> str:
    """Whether a target is met, as tables show it."""
    return "yes" if met else "no"


@contextmanager
def styled_figure(height: float, w_pad: float | None = None, h_pad: float | None = None) -> Iterator[Figure]:
    """An empty figure of the width of a page, in the style of the package while it is drawn."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Blank
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with rc_context(STYLE):
        yield Blank(figsize=(10.0, height), layout=ConstrainedLayoutEngine(w_pad=w_pad, h_pad=h_pad))


@dataclass(frozen=True)
class ResultTable:
    """Rows under columns; `digits` says how a column's numbers are printed, `caption` what to know of them.

    By default: four significant digits, and no decimals from a thousand on.  `marks` has the cells, by row and column,
    that are shown in "bold" or with an "underline"; files have the plain numbers.

    >>> table = ResultTable("one", "A table", ("who", "QCE"), [("expert", 0.15041), ("ours", None)], {"QCE": ".4f"})
    >>> print(table.markdown())
    | who | QCE |
    |---|---:|
    | expert | 0.1504 |
    | ours |  |
    """

    name: str  # of its file
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    digits: dict[str, str] = field(default_factory=dict)
    caption: str = ""
    marks: dict[tuple[int, str], str] = field(default_factory=dict)
    whole: tuple[str, ...] = ()  # columns whose cells are never broken

    @staticmethod
    def of(
        name: str,
        title: str,
        rows: Sequence[Row],
        digits: dict[str, str],
        caption: str = "",
        marks: dict[tuple[int, str], str] | None = None,
    ) -> ResultTable:
        """A table of rows that name their columns, all in the same order."""
        return ResultTable(
            name, title, tuple(rows[0]), [tuple(row.values()) for row in rows], digits, caption, marks or {}
        )

    def shown(self, marked: Mapping[str, str] | None = None) -> list[list[str]]:
        """The rows as printed; `marked` says how a marked cell is written, "{}" being the number."""
        forms = marked or {}
        return [
            [
                forms.get(self.marks.get((i, column), ""), "{}").format(self._cell(value, column))
                for value, column in zip(row, self.columns, strict=True)
            ]
            for i, row in enumerate(self.rows)
        ]

    def _cell(self, value: Cell, column: str) -> str:
        if value is None:
            return ""
        if isinstance(value, float):
            usual = ",.0f" if abs(value) >= 1000.0 else ".4g"
            return format(value, self.digits.get(column, usual))
        return str(value)

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [
            any(isinstance(row[i], (int, float)) for row in self.rows)
            and not any(isinstance(row[i], str) for row in self.rows)
            for i in range(len(self.columns))
        ]

    def markdown(self) -> str:
        """As a table of a page."""
        rule = "|".join("---:" if number else "---" for number in self.numeric)
        lines = [f"| {' | '.join(self.columns)} |", f"|{rule}|"]
        lines += [f"| {' | '.join(row)} |" for row in self.shown({"bold": "**{}**", "underline": "<ins>{}</ins>"})]
        return "\n".join(lines)

    def section(self) -> str:
        """As part of a page: title, table, caption."""
        return "\n\n".join([f"**{self.title}**", self.markdown(), *([self.caption] if self.caption else [])])

    def rich(self) -> Any:
        """As a table of the terminal."""
        from rich import box
        from rich.table import Table as Rich

        table = Rich(
            title=self.title,
            title_justify="left",
            caption=self.caption or None,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
        )
        shown = self.shown()
        for i, (column, number) in enumerate(zip(self.columns, self.numeric, strict=True)):
            # no word is ever broken
            words = [part for text in (column, *(row[i] for row in shown)) for part in text.split() or [""]]
            words += [row[i] for row in shown] if column in self.whole else []
            widest = max(map(len, words))
            table.add_column(column, justify="right" if number else "left", min_width=widest)
        for row in self.shown({"bold": "[bold]{}[/bold]", "underline": "[underline]{}[/underline]"}):
            table.add_row(*row)
        return table

    def write(self, folder: Path) -> Path:
        """As a CSV file with all digits."""
        path = folder / f"{self.name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows([["" if value is None else value for value in row] for row in self.rows])
        return path


class Claim(NamedTuple):
    """A sentence of the paper, and what is found here.

    `here` is by the rule for ORCA's rate, `reproduces` says yes, no or not tested; `bound` is what the best of the
    rates, known only afterwards, would have given.
    """

    section: str
    claim: str
    here: str
    reproduces: str
    bound: str = ""


def claims_table(claims: Sequence[Claim]) -> ResultTable:
    """One list of the paper's claims."""
    columns = ("section", "claim of the paper", "here", "reproduces", "at the best rate, known afterwards (a bound)")
    return ResultTable("claims", "The paper's claims, one by one", columns, [tuple(claim) for claim in claims])


@dataclass(frozen=True)
class Result:
    """What an experiment found: what was done in a few sentences, tables, and figures by the name of their files."""

    name: str
    title: str
    notes: tuple[str, ...]
    tables: tuple[ResultTable, ...]
    figures: dict[str, Figure]
    claims: tuple[Claim, ...] = ()

    def write(self, folder: str | Path) -> list[Path]:
        """Each table as CSV, each figure as PNG and SVG; returns the files."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        paths = [table.write(place) for table in self.tables]
        if not self.figures:
            return paths
        from matplotlib import rc_context

        # no date and no random names in the file, so that equal results are equal files
        with rc_context({"svg.hashsalt": "orcast"}):
            for name, figure in self.figures.items():
                for kind in ("png", "svg"):
                    path = place / f"{name}.{kind}"
                    undated = {"Date": None} if kind == "svg" else None
                    figure.savefig(path, dpi=150, bbox_inches="tight", metadata=undated)
                    paths.append(path)
        return paths

    def markdown(self, pictures: str = "") -> str:
        """As part of a page; `pictures` is where the figures are, seen from it."""
        parts = [f"## {self.title}", *self.notes]
        parts += [table.section() for table in self.tables]
        parts += [f"![{name}]({pictures}{name}.svg)" for name in self.figures]
        return "\n\n".join(parts) + "\n"
