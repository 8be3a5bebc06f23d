"""Alarms of tables and stores that are watched: what is new at each look."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from orcast.cli import tables
from orcast.cli.columns import bounds_and_times, names_of, text_columns
from orcast.cli.common import printable, say
from orcast.evaluate.frames import read_rows
from orcast.evaluate.monitoring import watched_sides
from orcast.frame.reader import find_in
from orcast.monitors import Alarm, false_discovery_alarms
from orcast.persistence import UNREADABLE
from orcast.validation import quietly

EVER = "miscalibrated"
SIDES = {"input": "base forecast", "output": "recalibrated"}


class Key(NamedTuple):
    """Names of a stream of forecasts; the side is "input", "output" or "" if unknown."""

    source: str
    series: str
    model: str
    side: str


@dataclass(frozen=True, slots=True)
class Notice:
    """An alarm of a stream in words and as plain data; `until` orders the alarms of one question."""

    key: Key
    question: str
    until: int
    ended: bool
    text: str
    plain: dict[str, Any]

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Order of printing: alarms, the most evidence first, then changes, then what has ended."""
        return self.ended, self.question != EVER, -self.plain["evidence"]


@dataclass(slots=True)
class Look:
    """Streams of a source: their number, and of those with alarms the evidence and the alarms."""

    streams: int = 0
    evidence: dict[Key, float] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)

    def add(self, key: Key, evidence: float, alarms: Iterable[Alarm | None], when: Callable[[int], str]) -> None:
        """Add a stream and its alarms; `when` is the time of a round."""
        self.streams += 1
        for alarm in filter(None, alarms):
            self.evidence[key] = evidence
            text = alarm.text(when)
            times = {name: when(getattr(alarm, name)) for name in ("since", "earliest", "latest", "until")}
            names = ("question", "kind", "group", "rounds", "level", "coverage", "shift", "scale", "ended")
            plain = {**key._asdict(), **{name: getattr(alarm, name) for name in names}, **times}
            plain |= {"raised": when(alarm.round), "evidence": evidence, "text": text}
            self.notices.append(Notice(key, alarm.question, alarm.until, alarm.ended, text, plain))


class Table:
    """A table in a file, which is read when it has changed."""

    def __init__(self, options: argparse.Namespace, path: str) -> None:
        self.options = argparse.Namespace(**{**vars(options), "file": path})
        self.mark: list[Any] | None = None
        self.rows, self.shrunk = 0, False

    def look(self) -> Look | None:
        """Read the table; None if it is as it was."""
        options = self.options
        mark = [_mark(path) for path in (options.file, options.target) if path is not None]
        settled = mark == self.mark
        if settled and not self.shrunk:
            return None
        self.mark = mark
        table, frame = tables.open_frame(options, text_columns(options), growing=True)
        # a table that lost rows may be half written: it counts if the next look finds the same
        self.shrunk = table.frame.height < self.rows and not settled
        if self.shrunk:
            return None
        self.rows = table.frame.height
        found, name = Look(), Path(options.file).name
        with table.located():
            layout = find_in(frame, **names_of(options))
            rows = read_rows(frame, layout, **bounds_and_times(options))
            for form in layout.forms:
                sides = watched_sides(rows, form, options.alpha, options.run_length)
                for side, each in ((side, each) for side, series in sides.items() for each in series):
                    key = Key(name, each.name, form.model, side if len(sides) > 1 else "")
                    found.add(key, each.evidence, (each.miscalibrated, each.changed), each.when)
        return found


def _mark(path: str) -> tuple[int, ...] | None:
    """Numbers that change when a file does; None if it is missing."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class Watch:
    """Alarms of all sources, each printed once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = Path(options.source).is_dir()
        self.sources: dict[str, Table] = {}
        self.looks: dict[str, Look] = {}
        self.errors: dict[str, str] = {}
        self.named: set[Key] = set()
        self.printed: dict[tuple[Key, str], Notice] = {}
        self.seconds = 0.0

    def look(self) -> None:
        """Look at what has changed, and print what is new."""
        start = time.monotonic()
        self._find()
        for path, source in self.sources.items():
            try:
                with quietly():
                    found = source.look()
            except (OSError, *UNREADABLE) as reason:
                text = " ".join(str(reason).split()) or type(reason).__name__
                if self.errors.get(path) != text:
                    say(text if path in text else f"{text} ({path})")
                self.errors[path] = text
                continue
            if found is not None:
                self.looks[path] = found
                self.errors.pop(path, None)
        for event, notice in self._events():
            self._print(event, notice)
        self.seconds = time.monotonic() - start

    def _find(self) -> None:
        """Find the tables that are there."""
        paths = [self.options.source]
        if self.folder:
            there = sorted(Path(self.options.source).iterdir())
            paths = [str(path) for path in there if tables.is_table(path)]
        self.sources = {path: self.sources.get(path) or Table(self.options, path) for path in paths}
        self.looks = {path: look for path, look in self.looks.items() if path in self.sources}

    @property
    def streams(self) -> int:
        """Number of streams of forecasts."""
        return sum(look.streams for look in self.looks.values())

    @property
    def standing(self) -> int:
        """Number of streams in alarm."""
        return sum(not each.ended for (_, question), each in self.printed.items() if question == EVER)

    def _events(self) -> Iterator[tuple[str, Notice]]:
        """New alarms, the worst first, and alarms that ended."""
        evidence = {key: value for look in self.looks.values() for key, value in look.evidence.items()}
        self.named = named_now(evidence, self.named, self.streams, self.options.alpha)
        there = {(each.key, each.question): each for look in self.looks.values() for each in look.notices}
        for at in [at for at in self.printed if at not in there]:
            gone = self.printed.pop(at)
            if at[1] == EVER and not gone.ended:
                yield "ended", replace(gone, text=f"{gone.text} (no longer in the data)", ended=True)
        for at, notice in sorted(there.items(), key=lambda each: each[1].order):
            if at[1] == EVER and at[0] not in self.named:
                continue
            event = _event(self.printed.get(at), notice)
            if event:
                self.printed[at] = notice
                yield event, notice

    def _print(self, event: str, notice: Notice) -> None:
        key = notice.key
        if self.options.json:
            print(json.dumps({"event": event, **notice.plain, "text": notice.text}), flush=True)
            return
        about = ", ".join(filter(None, (key.model, SIDES.get(key.side))))
        place = f"{key.source}: " if self.folder and key.series else ""
        name = f"{place}{key.series or key.source}{f' ({about})' if about else ''}"
        size = f"; evidence {notice.plain['evidence']:.2g}" if event == "alarm" else ""
        print(printable(f"{event:<8} {name}: {notice.text}{size}"), flush=True)


def named_now(evidence: dict[Key, float], named: set[Key], streams: int, alpha: float) -> set[Key]:
    """Streams that e-BH names at a look, with those that were named before.

    The evidence of a stream is that of the look that named it: a stopped e-process.  So of all streams named until any
    stopping time the expected share of false ones is at most alpha.

    >>> key = Key("wind.csv", "north", "", "")
    >>> named_now({key: 900.0}, set(), 40, 0.05), named_now({key: 3.0}, {key}, 40, 0.05) == {key}
    ({Key(source='wind.csv', series='north', model='', side='')}, True)
    """
    values = [math.inf if key in named else value for key, value in evidence.items()]
    # the other streams have too little evidence to be named, and count
    found = false_discovery_alarms(values, alpha * max(len(values), 1) / max(streams, 1))
    return {key for key, now in zip(evidence, found, strict=True) if now}


def _event(before: Notice | None, notice: Notice) -> str:
    """Name of what is new in an alarm; "" if nothing is."""
    later = before is None or notice.until > before.until
    if notice.question != EVER:
        return "changed" if later else ""
    if notice.ended:
        return "ended" if before is None or not before.ended else ""
    return "alarm" if before is None or (before.ended and later) else ""
