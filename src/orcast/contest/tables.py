"""What the results say: a table for each class and league, who is first, and every loss of orcast's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from orcast.contest.leagues import LEAGUE_NAMES, LEAGUES
from orcast.contest.methods import LAST, ORCAST, RAW, Method
from orcast.contest.results import Row, is_failure
from orcast.contest.scores import Rank, geometric_mean, joint_ranks
from orcast.contest.stream import KINDS
from orcast.paper.experiments.output import Cell, ResultTable
from orcast.report.text import capital, count

# The share of the streams of a class that a method has to play for a place in it.
NEARLY = 0.8
# Differences of less are rounding.
HAIR = 1e-9


class Column(NamedTuple):
    """A column: its name for quantities and for events, how it is printed, and how streams are put together."""

    field: str
    name: str
    event: str
    form: str
    together: Callable[[Sequence[float]], float]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))


COLUMNS = (
    Column("loss", "pinball / raw", "Brier / raw", ".3f", geometric_mean),
    Column("gap", "coverage gap", "ECE", ".4f", _mean),
    Column("chance", "gap by chance", "ECE by chance", ".4f", _mean),
    Column("qce", "QCE", "", ".4f", _mean),
    Column("rolling", "worst rolling-200 QCE", "worst rolling-200 ECE", ".3f", max),
    Column("cover50", "50% band", "", ".1%", _mean),
    Column("cover90", "90% band", "", ".1%", _mean),
    Column("cover98", "98% band", "", ".1%", _mean),
    Column("width90", "90% width / raw", "", ".3f", geometric_mean),
    Column("worst", "worst game / raw", "worst game / raw", ".2f", max),
    Column("better", "games better", "games better", ".0%", _mean),
    Column("microseconds", "µs a round", "µs a round", ",.0f", _median),
)
# The joint rank if gaps below chance are all alike.
BEYOND = "beyond chance"
SHORT = ("loss", "gap", "worst", "microseconds")


class Line(NamedTuple):
    """A method in a class and league: its joint rank, and each column over the streams.

    `beyond` is the joint rank if gaps below chance are all alike: there a smaller one tells of no better calibration.
    """

    method: str
    rank: Rank
    beyond: Rank
    values: dict[str, float]


class Standing(NamedTuple):
    """A class in one league, the best joint rank first."""

    kind: str
    league: int
    lines: list[Line]
    streams: int

    @property
    def title(self) -> str:
        """What it is."""
        return f"{self.kind}, on {LEAGUE_NAMES[self.league]} ({count(self.streams, 'stream')})"

    @property
    def ranked(self) -> list[Line]:
        """Those who played nearly every stream; the others have no place, as their ranks are of other streams."""
        return [line for line in self.lines if line.rank.streams >= NEARLY * self.streams]

    def place(self, method: str = ORCAST) -> int:
        """The place of a method, from 1 on, which those of one joint rank share; 0 if it does not play."""
        ours = self.line(method)
        return 0 if ours is None else 1 + sum(line.rank.mean < ours.rank.mean - HAIR for line in self.ranked)

    def place_beyond(self, method: str = ORCAST) -> int:
        """The same where gaps below chance are all alike."""
        ours = self.line(method)
        return 0 if ours is None else 1 + sum(line.beyond.mean < ours.beyond.mean - HAIR for line in self.ranked)

    def line(self, method: str = ORCAST) -> Line | None:
        """The line of a method."""
        return next((line for line in self.lines if line.method == method), None)


def in_league(rows: Sequence[Row], league: int, methods: Mapping[str, Method]) -> list[Row]:
    """The rows of a league; what does not depend on the expert, and orcast itself, are in both."""
    own = {name for name, method in methods.items() if method.own}
    return [
        row for row in rows if not row["error"] and (row["league"] == league or (league == 2 and row["method"] in own))
    ]


def standings(rows: Sequence[Row], methods: Mapping[str, Method]) -> list[Standing]:
    """Every class that was played, in both leagues."""
    found = []
    for kind in KINDS:
        for league in LEAGUES:
            mine = [row for row in in_league(rows, league, methods) if row["kind"] == kind]
            if mine:
                found.append(_standing(kind, league, mine))
    return found


def _standing(kind: str, league: int, rows: list[Row]) -> Standing:
    pairs: dict[str, dict[str, tuple[float, float]]] = {}
    beyond: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows:
        pairs.setdefault(row["stream"], {})[row["method"]] = row["gap"], row["loss"]
        beyond.setdefault(row["stream"], {})[row["method"]] = np.fmax(row["gap"], row["chance"]), row["loss"]
    lines = []
    ranks_beyond = joint_ranks(beyond)
    for method, rank in joint_ranks(pairs).items():
        own = [row for row in rows if row["method"] == method]
        values = {}
        for column in COLUMNS:
            there = [row[column.field] for row in own if np.isfinite(row[column.field])]
            values[column.field] = column.together(there) if there else float("nan")
        lines.append(Line(method, rank, ranks_beyond[method], values))
    lines.sort(key=lambda line: (line.rank.streams < NEARLY * len(pairs), line.rank.mean, line.method != ORCAST))
    return Standing(kind, league, lines, len(pairs))


def columns_of(standing: Standing) -> list[tuple[Column, str]]:
    """The columns that a class has, with their names there."""
    events = standing.kind == "binary"
    named = [(column, column.event if events else column.name) for column in COLUMNS]
    return [
        (column, name)
        for column, name in named
        if name and any(np.isfinite(line.values[column.field]) for line in standing.lines)
    ]


def result_table(standing: Standing, fields: Sequence[str] | None = None) -> ResultTable:
    """A class as a table of the terminal or of a page in Markdown."""
    columns = [(c, name) for c, name in columns_of(standing) if fields is None or c.field in fields]
    most = max(line.rank.streams for line in standing.lines)
    rows: list[tuple[Cell, ...]] = []
    for line in standing.lines:
        name = line.method if line.rank.streams == most else f"{line.method} ({line.rank.streams} of {most})"
        cells = [line.values[column.field] for column, _ in columns]
        interval = f"{line.rank.low:.1f} to {line.rank.high:.1f}" if line.rank.streams > 1 else ""
        rows.append((name, line.rank.mean, interval, line.beyond.mean, *(None if np.isnan(v) else v for v in cells)))
    digits = {name: column.form for column, name in columns} | {"joint rank": ".2f", BEYOND: ".2f"}
    names = ("method", "joint rank", "90% interval", BEYOND, *(name for _, name in columns))
    file = f"{standing.kind.replace(' ', '_')}_{standing.league}"
    return ResultTable(file, standing.title, names, rows, digits, whole=names[2:3])


def verdict(standing: Standing) -> str:
    """Where orcast is in a class, in a sentence; where it is not first, by how much."""
    place, ours, first = standing.place(), standing.line(), standing.lines[0]
    if ours is None:
        return f"{standing.title}: orcast did not play."
    if place == 1:
        rest = [line for line in standing.ranked if line is not ours]
        beside = f", {rest[0].method} {rest[0].rank.mean:.2f}" if rest else ""
        return f"{standing.title}: orcast is first, joint rank {ours.rank.mean:.2f}{beside}; {_beyond(standing)}."
    worse = ", ".join(
        f"{name} {ours.values[c.field]:{c.form}} against {first.values[c.field]:{c.form}}"
        for c, name in columns_of(standing)
        if c.field in ("loss", "gap")
    )
    return (
        f"{standing.title}: orcast is NOT first but {place} of {len(standing.ranked)}, joint rank "
        f"{ours.rank.mean:.2f}; first is {first.method}, {first.rank.mean:.2f} ({worse}); {_beyond(standing)}."
    )


def _beyond(standing: Standing) -> str:
    ours, rivals = standing.line(), [line for line in standing.ranked if line.method != ORCAST]
    if ours is None or not rivals:
        return "nobody beside"
    best = min(rivals, key=lambda line: line.beyond.mean)
    where = f"beyond chance {standing.place_beyond()} of {len(standing.ranked)}"
    return f"{where}, {ours.beyond.mean:.2f} against {best.method}, {best.beyond.mean:.2f}"


# --- stream by stream


class Behind(NamedTuple):
    """By how much orcast is worse than another on a stream: in loss (a part of it) and in gap; 0 where it is not."""

    method: str
    league: int
    loss: float
    gap: float

    def __str__(self) -> str:
        parts = [f"loss {100 * self.loss:.2g}% higher"] if self.loss > 0.0 else []
        parts += [f"gap {self.gap:.2g} larger"] if self.gap > 0.0 else []
        return ", ".join(parts)


def behind(ours: Row, other: Row) -> Behind | None:
    """Where orcast is worse than another in loss or gap; None if in neither."""
    loss, gap = ours["loss"] / other["loss"] - 1.0, ours["gap"] - other["gap"]
    if not (loss > HAIR or gap > HAIR):
        return None
    return Behind(other["method"], other["league"], loss if loss > HAIR else 0.0, gap if gap > HAIR else 0.0)


class OneStream(NamedTuple):
    """All rows of a stream, the least loss first in each league, and what orcast is behind in."""

    rows: list[Row]
    losses: dict[tuple[str, int], Behind]
    errors: list[Row]

    @property
    def about(self) -> Row:
        """A row that says what the stream is."""
        return (self.rows or self.errors)[0]

    @property
    def worse_than_raw(self) -> bool:
        """Whether orcast's loss is above that of the expert as given."""
        found = self.losses.get((RAW, 1))
        return found is not None and found.loss > 0.0


def one_by_one(rows: Sequence[Row]) -> list[OneStream]:
    """Every stream, in the order of the rows."""
    names: dict[str, list[Row]] = {}
    for row in rows:
        names.setdefault(row["stream"], []).append(row)
    found = []
    for each in names.values():
        there = sorted((row for row in each if not row["error"]), key=lambda row: (row["league"], row["loss"]))
        ours = next((row for row in there if row["method"] == ORCAST), None)
        losses = {}
        for row in there:
            worse = None if ours is None or row is ours else behind(ours, row)
            if worse is not None:
                losses[row["method"], row["league"]] = worse
        errors = [row for row in each if is_failure(row)]
        found.append(OneStream(there, losses, errors))
    return found


def worst_cases(streams: Sequence[OneStream], most: int = 5) -> list[str]:
    """The streams on which orcast is worse than doing nothing, the worst first."""
    worse = sorted((s for s in streams if s.worse_than_raw), key=lambda s: -s.losses[RAW, 1].loss)
    told = [f"{s.about['stream']} ({s.about['kind']}): {s.losses[RAW, 1]} than the expert as given" for s in worse]
    rest = len(told) - most
    return told[:most] + ([f"and {rest} more, which are on the page"] if rest > 0 else [])


def failures(streams: Sequence[OneStream]) -> list[str]:
    """Methods that failed, with their reasons, each told once."""
    found: dict[tuple[str, str], list[str]] = {}
    for stream in streams:
        for row in stream.errors:
            names = found.setdefault((row["method"], row["error"]), [])
            if row["stream"] not in names:
                names.append(row["stream"])
    return [
        f"failed: {method} on {names[0] if len(names) == 1 else count(len(names), 'stream')}: {reason}"
        for (method, reason), names in found.items()
    ]


def about_own(streams: Sequence[OneStream], names: Sequence[str]) -> list[str]:
    """A sentence for each stream of the user's own: orcast, and who has the least loss and the smallest gap."""
    told = []
    for stream in streams:
        row = stream.about
        ours = next((each for each in stream.rows if each["method"] == ORCAST), None)
        if row["stream"] not in names or ours is None:
            continue
        best = [min(stream.rows, key=itemgetter(field)) for field in ("loss", "gap")]
        least, smallest = (f"{each['method']} on {LEAGUE_NAMES[each['league']]}" for each in best)
        told.append(
            f"{row['stream']} ({row['kind']}, {count(row['rows'], 'row')}): orcast {ours['loss']:.3f} of the loss of "
            f"the expert as given, gap {ours['gap']:.4f}; least loss {best[0]['loss']:.3f} ({least}), smallest gap "
            f"{best[1]['gap']:.4f} ({smallest})"
        )
    return told


# --- Markdown


def markdown(found: Sequence[Standing], methods: Mapping[str, Method], failed: Sequence[str] = ()) -> str:
    """The page of tables: all classes together, then one after the other, both leagues, every column; who failed."""
    parts = [f"## Results\n\n{summary(found).markdown()}\n"]
    for standing in found:
        table = result_table(standing)
        parts.append(f"### {standing.title}\n\n{verdict(standing)}\n\n{table.markdown()}\n")
    parts += [f"- {told}" for told in failed]
    parts.append(f"{captions(methods)}\n")
    return "\n".join(parts)


def captions(methods: Mapping[str, Method]) -> str:
    """What each method knew, in a few sentences."""
    groups: dict[str, list[str]] = {}
    for method in methods.values():
        groups.setdefault(method.knows, []).append(method.name)
    told = " ".join(f"{'; '.join(names)}: {knows}." for knows, names in groups.items())
    return (
        "What each was told beside the expert's forecast of the row. "
        f"{capital(told)} Where there are several experts orcast has all of them too, and the others have the "
        "first, which is the expert as given. On the tracked expert rivals also have, through it, what orcast's "
        "learners know."
    )


def summary(found: Sequence[Standing]) -> ResultTable:
    """One table over all classes: places, and loss / raw, gap and worst game of orcast and of the best rival."""
    rows: list[tuple[Any, ...]] = []
    for standing in found:
        ours = standing.line()
        rivals = [line for line in standing.ranked if line.method != ORCAST]
        if ours is None or not rivals:
            continue
        best, last = rivals[0], standing.line(LAST)
        rows.append(
            (
                f"{standing.kind}, {LEAGUE_NAMES[standing.league]}",
                standing.streams,
                f"{standing.place()} of {len(standing.ranked)}",
                str(standing.place_beyond()),
                *(_three(ours)),
                f"{ours.values['chance']:.4f}",
                best.method,
                *(_three(best)),
                "" if last is None else _three(last)[0],
            )
        )
    heads = ("class, league", "streams", "orcast's place", BEYOND, "loss / raw", "gap", "worst game / raw",
             "gap by chance", "best rival", "its loss / raw", "its gap", "its worst game",
             "last outcome's loss / raw")  # fmt: skip
    return ResultTable("summary", "All classes", heads, rows)


def _three(line: Line) -> tuple[str, str, str]:
    return f"{line.values['loss']:.3f}", f"{line.values['gap']:.4f}", f"{line.values['worst']:.2f}"
