"""Tables of the comparison: ranks for each kind of stream, losses of orcast, results of each stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from research.comparison.jobs import Comparison, is_failure
from research.comparison.methods import LAST, ORCAST, Method
from research.comparison.scores import MOST, Rank, joint_ranks
from research.comparison.stream import KINDS
from research.output import Cell, Row, Table, geometric_mean, mean

NEARLY = 0.8  # a method has a rank if it ran on this share of the streams of a kind
ROUNDING = 1e-9
SIGNIFICANT = "rank above noise"  # joint rank if gaps below that of a calibrated forecaster are ties
# columns of the summary in a page: two tables
SUMMARY = (
    ("kind", "streams", "rank of orcast", "loss / base", "best rival", "rival's loss / base"),
    ("kind", "gap", "rival's gap", "gap by chance", "worst series / base", "rival's worst series"),
)
SERIES = "Calibration, and the worst series"


class Column(NamedTuple):
    """Column of a table: names for quantities and for events, format, and summary over streams."""

    field: str
    name: str
    event: str
    form: str
    summary: Callable[[Sequence[float]], float]


def _ratio(values: Sequence[float]) -> float:
    return geometric_mean(values, 1.0 / MOST)


COLUMNS = (
    Column("loss", "pinball / base", "Brier / base", ".3f", _ratio),
    Column("gap", "coverage gap", "ECE", ".4f", mean),
    Column("chance", "gap by chance", "ECE by chance", ".4f", mean),
    Column("qce", "QCE", "", ".4f", mean),
    Column("rolling", "worst rolling-200 QCE", "worst rolling-200 ECE", ".3f", max),
    Column("cover50", "50% band", "", ".1%", mean),
    Column("cover90", "90% band", "", ".1%", mean),
    Column("cover98", "98% band", "", ".1%", mean),
    Column("width90", "90% width / base", "", ".3f", _ratio),
    Column("worst", "worst series / base", "worst series / base", ".2f", max),
    Column("better", "series better", "series better", ".0%", mean),
    Column("microseconds", "µs a round", "µs a round", ",.0f", median),
)


class Line(NamedTuple):
    """A method in a ranking: joint rank, joint rank above noise, and each column over the streams."""

    method: str
    rank: Rank
    significant: Rank
    values: dict[str, float]


class Ranking(NamedTuple):
    """Methods on one kind of stream, the best joint rank first."""

    kind: str
    lines: list[Line]
    streams: int

    @property
    def title(self) -> str:
        """Kind and number of streams."""
        return f"{self.kind} ({_count(self.streams, 'stream')})"

    @property
    def name(self) -> str:
        """Name of the CSV file."""
        return self.kind.replace(" ", "_")

    @property
    def ranked(self) -> list[Line]:
        """Methods that ran on nearly every stream; mean ranks of the others are over other streams."""
        return [line for line in self.lines if line.rank.streams >= NEARLY * self.streams]

    def line(self, method: str = ORCAST) -> Line | None:
        """Line of a method."""
        return next((line for line in self.lines if line.method == method), None)

    def place(self, which: str = "rank") -> int:
        """Place of orcast by "rank" or "significant", from 1 on; 0 if it did not run."""
        ours = self.line()
        if ours is None:
            return 0
        rank: Rank = getattr(ours, which)
        return 1 + [getattr(line, which).mean < rank.mean - ROUNDING for line in self.ranked].count(True)

    def columns(self) -> list[tuple[Column, str]]:
        """Columns with values, and their names for this kind."""
        named = [(column, column.event if self.kind == "binary" else column.name) for column in COLUMNS]
        return [
            (column, name)
            for column, name in named
            if name and any(np.isfinite(line.values[column.field]) for line in self.lines)
        ]

    def table(self) -> Table:
        """Table of all columns."""
        columns = self.columns()
        most = max(line.rank.streams for line in self.lines)
        rows: list[tuple[Cell, ...]] = []
        for line in self.lines:
            name = line.method if line.rank.streams == most else f"{line.method} ({line.rank.streams} of {most})"
            interval = f"{line.rank.low:.1f} to {line.rank.high:.1f}" if line.rank.streams > 1 else ""
            values = (line.values[column.field] for column, _ in columns)
            cells = (None if np.isnan(value) else value for value in values)
            rows.append((name, line.rank.mean, interval, line.significant.mean, *cells))
        digits = {name: column.form for column, name in columns} | {"joint rank": ".2f", SIGNIFICANT: ".2f"}
        names = ("method", "joint rank", "90% interval", SIGNIFICANT, *(name for _, name in columns))
        return Table(self.name, self.title, names, rows, digits)


def rankings(comparison: Comparison) -> list[Ranking]:
    """Rankings of each kind of stream."""
    good = [row for row in comparison.rows if not row["error"]]
    of_kind = {kind: [row for row in good if row["kind"] == kind] for kind in KINDS}
    return [_ranking(kind, rows) for kind, rows in of_kind.items() if rows]


def _ranking(kind: str, rows: list[Row]) -> Ranking:
    pairs: dict[str, dict[str, tuple[float, float]]] = {}
    above_noise: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows:
        pairs.setdefault(row["stream"], {})[row["method"]] = row["gap"], row["loss"]
        above_noise.setdefault(row["stream"], {})[row["method"]] = np.fmax(row["gap"], row["chance"]), row["loss"]
    lines, significant = [], joint_ranks(above_noise)
    for method, rank in joint_ranks(pairs).items():
        own = [row for row in rows if row["method"] == method]
        values = {}
        for column in COLUMNS:
            there = [row[column.field] for row in own if np.isfinite(row[column.field])]
            values[column.field] = column.summary(there) if there else float("nan")
        lines.append(Line(method, rank, significant[method], values))
    lines.sort(key=lambda line: (line.rank.streams < NEARLY * len(pairs), line.rank.mean, line.method != ORCAST))
    return Ranking(kind, lines, len(pairs))


def summary(found: Sequence[Ranking]) -> Table:
    """One table over all rankings: places, and loss, gap and worst series of orcast and of the best rival."""
    rows: list[tuple[Cell, ...]] = []
    for ranking in found:
        ours, last = ranking.line(), ranking.line(LAST)
        rivals = [line for line in ranking.ranked if line.method != ORCAST]
        if ours is None or not rivals:
            continue
        rows.append(
            (
                ranking.kind,
                ranking.streams,
                f"{ranking.place()} of {len(ranking.ranked)}",
                str(ranking.place("significant")),
                *_three(ours),
                f"{ours.values['chance']:.4f}",
                rivals[0].method,
                *_three(rivals[0]),
                "" if last is None else _three(last)[0],
            )
        )
    heads = ("kind", "streams", "rank of orcast", SIGNIFICANT, "loss / base", "gap", "worst series / base",
             "gap by chance", "best rival", "rival's loss / base", "rival's gap", "rival's worst series",
             "last outcome's loss / base")  # fmt: skip
    return Table("summary", "All kinds of streams", heads, rows, page=SUMMARY[0])


def _three(line: Line) -> tuple[str, str, str]:
    return f"{line.values['loss']:.3f}", f"{line.values['gap']:.4f}", f"{line.values['worst']:.2f}"


# --- stream by stream ---


def stream_table(rows: Sequence[Row]) -> Table:
    """All scores of each stream and method."""
    names = ("stream", "kind", "method", "rows", "groups", *(column.field for column in COLUMNS), "error")
    cells = [tuple(None if isinstance(row[n], float) and np.isnan(row[n]) else row[n] for n in names) for row in rows]
    return Table("streams", "All streams", names, cells)


def worse_than_base(rows: Sequence[Row], most: int = 5) -> list[str]:
    """Streams on which the loss of orcast is above that of the base forecast, the worst first."""
    worse = sorted(
        (row for row in rows if row["method"] == ORCAST and not row["error"] and row["loss"] > 1.0 + ROUNDING),
        key=lambda row: -row["loss"],
    )
    shown = [f"{row['stream']} ({row['kind']}): loss {100.0 * (row['loss'] - 1.0):.2g}% higher" for row in worse]
    rest = len(shown) - most
    return shown[:most] + ([f"and {rest} more, see streams.csv"] if rest > 0 else [])


def failures(rows: Sequence[Row]) -> list[str]:
    """Methods that failed, with their errors, each once."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if is_failure(row):
            found.setdefault((row["method"], row["error"]), {})[row["stream"]] = None
    return [
        f"failed: {method} on {next(iter(names)) if len(names) == 1 else _count(len(names), 'stream')}: {error}"
        for (method, error), names in found.items()
    ]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# --- Markdown ---


def markdown(comparison: Comparison, folder: str = "tables/") -> str:
    """Summary in Markdown, with a link to the CSV file of each ranking in `folder`."""
    found = rankings(comparison)
    whole = summary(found)
    rivals = [f"- {each.title}: [{each.name}.csv]({folder}{each.name}.csv)" for each in found]
    parts = (
        ["## Results", first_places(found), whole.section(folder), f"**{SERIES}**", whole.markdown(SUMMARY[1])]
        if whole.rows
        else []
    )
    parts += ["## All methods", "\n".join(rivals), *(f"- {failed}" for failed in failures(comparison.rows))]
    return "\n\n".join([*parts, f"{information(comparison.methods)}\n"])


def first_places(found: Sequence[Ranking]) -> str:
    """Number of kinds on which orcast ranks first, in a sentence."""
    places = [each.place() for each in found if each.place()]
    return f"orcast ranks first for {places.count(1)} of {len(places)} kinds of streams."


def information(methods: Mapping[str, Method]) -> str:
    """Information of each method, in a few sentences."""
    groups: dict[str, list[str]] = {}
    for method in methods.values():
        groups.setdefault(method.information, []).append(method.name)
    parts = " ".join(f"{'; '.join(names)}: {known}." for known, names in groups.items())
    return (
        f"Information of each method beside the base forecast of the row. {parts} With several experts orcast has all "
        "of them too, and the others have the first, which is the base forecast."
    )
