"""All methods on all streams: longest jobs first, on all cores, from where the last run stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from orcast.contest import leagues
from orcast.contest.methods import METHODS, ORCAST, TRACKED, Method, load
from orcast.contest.play import Played
from orcast.contest.results import NOT_FOR_IT, Results, Row, key_of, source_digest
from orcast.contest.scores import Score, chance_gap, score
from orcast.contest.stream import Stream
from orcast.parallel import Progress, WorkerPool, silent

# Rounds of a job, about: many methods on a long stream are several jobs.
ROUNDS = 60_000


class Entry(Protocol):
    """A stream that can be made: see `orcast.contest.catalogue`."""

    name: str
    kind: str
    source: str
    rows: int

    def make(self) -> Stream:
        """The stream."""
        ...


class Wanted(NamedTuple):
    """A row that is to be there."""

    stream: str
    league: int
    method: str


class Contest(NamedTuple):
    """What was played: the rows, in the order of the streams, and the methods by name."""

    rows: list[Row]
    methods: dict[str, Method]


Streams = Callable[[], Sequence[Entry]]


@lru_cache(maxsize=1)
def _entries(streams: Streams) -> dict[str, Entry]:
    return {entry.name: entry for entry in streams()}


@lru_cache(maxsize=2)
def _made(streams: Streams, name: str) -> tuple[Stream, float]:
    stream = _entries(streams)[name].make()
    return stream, chance_gap(stream)


@lru_cache(maxsize=2)
def _tracked(streams: Streams, name: str) -> leagues.Tracked:
    return leagues.tracked(_made(streams, name)[0])


def wanted(entries: Sequence[Entry], methods: dict[str, Method]) -> list[Wanted]:
    """Every row: what is the same in both leagues is played once, in the first."""
    found = []
    for entry in entries:
        found += [Wanted(entry.name, 1, name) for name in methods]
        found.append(Wanted(entry.name, 2, TRACKED))
        found += [Wanted(entry.name, 2, name) for name, method in methods.items() if not method.own]
    return found


def run(
    streams: Streams,
    out: str | Path,
    *,
    methods: str | Path | None = None,
    workers: int = 1,
    again: bool = False,
    progress: Progress = silent,
) -> Contest:
    """Play what is not in the folder's table yet; `streams` gives the entries, in each process anew."""
    entries = _entries(streams)
    table = load(methods)
    # an own method depends on its file too
    usual, own = source_digest(), source_digest(methods)
    sources = {name: usual if name in METHODS or name == TRACKED else own for name in (TRACKED, *table)}
    every = wanted(list(entries.values()), table)
    keys = {
        each: key_of(sources[each.method], each.stream, entries[each.stream].rows, each.method, each.league)
        for each in every
    }
    results = Results(out)
    there = {row["key"] for row in results.rows.values()}
    missing = [each for each in every if again or keys[each] not in there]
    jobs = _jobs(missing, entries)
    progress("begins", 0.0)
    # kernels are compiled before anything is timed
    was = os.environ.get("ORCAST_KERNELS")
    os.environ["ORCAST_KERNELS"] = was or "compiled"
    try:
        with WorkerPool(min(workers, max(len(jobs), 1)), len(jobs), progress) as pool:
            given = {i: (streams, name, league, names, methods) for i, (name, league, names) in enumerate(jobs)}

            def done(rows: list[Row]) -> None:
                for row in rows:
                    row["key"] = keys[Wanted(row["stream"], row["league"], row["method"])]
                results.add(rows)

            pool.run(play_job, given, lambda i: f"{jobs[i][0]}, league {jobs[i][1]}", done)
    finally:
        if was is None:
            del os.environ["ORCAST_KERNELS"]
    return Contest(results.only(keys.values()), table)


def _jobs(missing: Sequence[Wanted], entries: dict[str, Entry]) -> list[tuple[str, int, tuple[str, ...]]]:
    """Streams and leagues with the methods to be played, the longest first."""
    groups: dict[tuple[str, int], list[str]] = {}
    for each in missing:
        groups.setdefault((each.stream, each.league), []).append(each.method)
    jobs = []
    for (name, league), names in groups.items():
        most = max(ROUNDS // max(entries[name].rows, 1), 1)
        jobs += [(name, league, tuple(names[i : i + most])) for i in range(0, len(names), most)]
    # the tracked expert of the second league is played first
    return sorted(jobs, key=lambda job: -entries[job[0]].rows * (len(job[2]) + 4 * (job[1] == 2)))


def play_job(streams: Streams, name: str, league: int, names: Sequence[str], methods: str | Path | None) -> list[Row]:
    """Some methods on a stream, a row each; a method that fails has a row that says why."""
    stream, chance = _made(streams, name)
    _warm_up(stream.binary)
    table = load(methods)
    what = {
        "key": "", "stream": name, "kind": stream.kind, "source": stream.source, "knew": stream.knew,
        "rows": stream.rows, "games": len(stream.games()), "league": league,
    }  # fmt: skip
    found = []
    for each in names:
        row = {**what, "method": each, "error": "", **dict.fromkeys(Score._fields, float("nan"))}
        try:
            played = _played(streams, stream, league, each, table)
            if played is None:
                row["error"] = NOT_FOR_IT
            else:
                row |= score(stream, played, chance)._asdict()
        except Exception as reason:  # a rival's fault must not end the contest; it is shown
            row["error"] = f"{type(reason).__name__}: {reason}"
        found.append(row)
    return found


def _played(streams: Streams, stream: Stream, league: int, name: str, table: dict[str, Method]) -> Played | None:
    if league == 1:
        return table[name].play(stream)
    expert = _tracked(streams, stream.name)
    return expert.played if name == TRACKED else leagues.play_on_tracked(table[name], stream, expert)


@lru_cache(maxsize=2)
def _warm_up(binary: bool) -> None:
    """Load what is compiled, so that no round pays for it."""
    rows = np.arange(8)
    levels = np.empty(0) if binary else np.array([0.25, 0.75])
    given = np.full(8, 0.5) if binary else np.tile([0.0, 1.0], (8, 1))
    small = Stream("", "one-step", "", "", levels, {"": given}, (rows % 2).astype(np.float64), rows // 2, rows // 2 + 1,
                   series=rows % 2)  # fmt: skip
    METHODS[ORCAST].play(small)
    leagues.tracked(small)
