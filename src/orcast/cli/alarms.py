"""Alarms of tables and stores that are watched: what is new at each look."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from orcast.cli import tables
from orcast.cli.columns import bounds_and_times, names_of
from orcast.cli.common import printable, say, stored
from orcast.evaluate.frames import read_rows
from orcast.evaluate.monitoring import kind_of, too_late, watched_sides
from orcast.frame.state import FrameState
from orcast.monitors import EVER, SIDES, Alarm, Evidence, false_discovery_alarms, watcher_for
from orcast.persistence import UNREADABLE
from orcast.store import Store
from orcast.validation import quietly, short


class Key(NamedTuple):
    """Names of a stream of forecasts; the side is "input", "output" or "" if unknown."""

    source: str
    series: str
    model: str
    side: str


class Stream(NamedTuple):
    """Evidence of a stream of forecasts, and the plain forms of its alarms by question."""

    evidence: float
    alarms: dict[str, dict[str, Any]]


Streams = dict[Key, Stream]


def stream_of(key: Key, evidence: float, alarms: Iterable[Alarm], when: Callable[[int], str]) -> Stream:
    """Stream with these alarms; `when` is the time of a round."""
    more = {**key._asdict(), "evidence": evidence}
    return Stream(evidence, {alarm.question: alarm.to_plain(when) | more for alarm in alarms})


class Table:
    """A table in a file, which is read when it has changed."""

    def __init__(self, options: argparse.Namespace, path: str) -> None:
        self.options = argparse.Namespace(**{**vars(options), "file": path})
        self.mark: list[Any] | None = None
        self.rows, self.shrunk, self.late = 0, False, False

    def look(self) -> Streams | None:
        """Read the table; None if it is as it was."""
        options = self.options
        mark = [_mark(path) for path in (options.file, options.target) if path is not None]
        settled = mark == self.mark
        if settled and not self.shrunk:
            return None
        self.mark = mark
        table, frame = tables.open_frame(options, growing=True)
        # a table that lost rows may be half written: it counts if the next look finds the same
        self.shrunk = table.frame.height < self.rows and not settled
        if self.shrunk:
            return None
        self.rows = table.frame.height
        found, name = {}, Path(options.file).name
        with table.located():
            rows = read_rows(frame, **names_of(options), **bounds_and_times(options))
            for form in rows.layout.forms:
                sides = watched_sides(rows, form, options.alpha, options.run_length)
                late = "" if options.quiet else next(filter(None, map(too_late, sides.values())), "")
                if late and not self.late:
                    say(f"alarms of {name}: {late}")
                self.late |= bool(late)
                for side, each in ((side, each) for side, series in sides.items() for each in series):
                    key = Key(name, each.name, form.model, side if len(sides) > 1 else "")
                    found[key] = stream_of(key, each.evidence, each.monitor.alarms, each.when)
        return found


def _mark(path: str) -> tuple[int, ...] | None:
    """Numbers that change when a file does; None if it is missing."""
    found = Path(path).stat() if Path(path).is_file() else None
    return None if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)


class Database:
    """A store, of which the series that have changed are read."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store: Store | None = None
        self.source = url.rpartition("/")[2]
        self.versions: dict[Any, int] = {}
        self.streams: dict[Any, Streams] = {}
        self.frame: tuple[int, Streams] = (0, {})  # version and streams of the state of a frame

    def look(self) -> Streams | None:
        """Read the monitors of the series, and of the frame, that have changed; None if none has."""
        self.store = store = stored(self.url) if self.store is None else self.store
        frame = store.transact(lambda: store.tables.about("frame"))
        renewed = frame is not None and frame[0] != self.frame[0]
        if frame is not None and renewed:
            self.frame = frame[0], dict(_frame_streams(FrameState.from_bytes(frame[1]), self.source))
        before, self.versions = self.versions, store.versions()
        changed = [name for name, version in self.versions.items() if before.get(name) != version]
        for name in changed:
            self.streams[name] = self._series(store, name, new=name not in before)
        if not changed and not renewed:
            return None
        return self.frame[1] | {key: each for own in self.streams.values() for key, each in own.items()}

    def _series(self, store: Store, name: Any, *, new: bool) -> Streams:
        found = {}
        try:
            series = store.series(name)
            monitor = series.monitor
        except (TypeError, ValueError) as reason:  # a state that cannot be read, or a space without monitors
            if new:
                say(f"series {short(name)} is not watched: {reason}")
            return {}
        for expert, own in [*monitor.inputs.items(), ("", monitor.output)]:
            model = expert if len(monitor.inputs) > 1 else ""
            key = Key(self.source, "" if name is None else str(name), model, own.side or "")
            found[key] = stream_of(key, own.evidence, own.alarms, series.when)
        return found


def _frame_streams(state: FrameState, source: str) -> Iterator[tuple[Key, Stream]]:
    """Streams of a frame, one for each series, horizon and side; their rounds count as outcomes came."""
    models = state.content.models
    for name, model in models.items():
        kind, several = kind_of(model.shape.split()[1]), len({horizon for _, horizon in model.streams}) > 1
        for (series, horizon), stream in model.streams.items():
            parts = list(series) if isinstance(series, tuple) else [] if series is None else [series]
            text = " / ".join(map(str, [*parts, f"horizon {horizon}"] if several else parts))
            for side, row in zip(("output", "input"), stream.monitors, strict=False):
                watcher = watcher_for(kind)
                watcher.take(row)
                own, key = Evidence(kind, [watcher]), Key(source, text, name if len(models) > 1 else "", side)
                yield key, stream_of(key, own.evidence, own.alarms, "round {:,}".format)


class Watch:
    """Alarms of all sources, each printed once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = Path(options.source).is_dir()
        self.sources: dict[str, Table | Database] = {}
        if not self.folder:
            table = "://" not in options.source and tables.is_table(options.source)
            found = Table(options, options.source) if table else Database(options.source)
            self.sources[options.source] = found
        self.looks: dict[str, Streams] = {}
        self.errors: dict[str, str] = {}
        self.named: set[Key] = set()
        self.printed: dict[tuple[Key, str], tuple[str, dict[str, Any]]] = {}

    def look(self) -> None:
        """Look at what has changed, and print what is new."""
        self._find()
        for path, source in self.sources.items():
            try:
                with quietly():
                    found = source.look()
            except (OSError, *UNREADABLE) as reason:
                text = " ".join(str(reason).split()) or type(reason).__name__
                if isinstance(reason, FileNotFoundError) and path in self.looks:
                    text = f"{path} is missing; its alarms stay until the end of the watch"
                if self.errors.get(path) != text:
                    say(text if path in text else f"{text} ({path})")
                self.errors[path] = text
                continue
            if found is not None:
                self.looks[path] = found
                self.errors.pop(path, None)
        for event, key, plain in self._news():
            self._print(event, key, plain)

    def close(self) -> None:
        """Close the store."""
        for source in self.sources.values():
            if isinstance(source, Database) and source.store is not None:
                source.store.close()

    def _find(self) -> None:
        """Find the tables that are there."""
        if self.folder:
            there = sorted(path for path in Path(self.options.source).glob("[!.]*") if path.is_file())
            for path in (str(path) for path in there if tables.is_table(path.name)):
                self.sources.setdefault(path, Table(self.options, path))
            folder = self.options.source
            if self.sources:
                self.errors.pop(folder, None)
            elif folder not in self.errors:
                self.errors[folder] = f"expected tables (.csv, .tsv or .parquet) in the folder, got none: {folder}"
                say(self.errors[folder])

    @property
    def streams(self) -> int:
        """Number of streams of forecasts."""
        return sum(map(len, self.looks.values()))

    @property
    def standing(self) -> int:
        """Number of streams in alarm."""
        return sum(event == "alarm" for event, _ in self.printed.values())

    def _news(self) -> list[tuple[str, Key, dict[str, Any]]]:
        """New alarms, the worst first, then changes, then alarms that ended."""
        streams = {key: stream for look in self.looks.values() for key, stream in look.items()}
        evidence = {key: stream.evidence for key, stream in streams.items()}
        self.named = named_now(evidence, self.named, self.options.alpha)
        before, self.printed, news = self.printed, {}, []
        for key in sorted(streams, key=lambda key: -evidence[key]):
            for question, plain in streams[key].alarms.items():
                if question == EVER and key not in self.named:
                    continue
                was, last = before.pop((key, question), ("", None))
                later = last is None or plain["until"] != last["until"]
                # an alarm that has ended comes again only with a later peak of its evidence
                ended = plain["ended"] or (was == "ended" and not later)
                event = "changed" if question != EVER else "ended" if ended else "alarm"
                self.printed[key, question] = event, plain
                if event != was or (event == "changed" and later):
                    news.append((event, key, plain))
        news += [("ended", key, plain) for (key, _), (event, plain) in before.items() if event == "alarm"]
        return sorted(news, key=lambda each: each[0])

    def _print(self, event: str, key: Key, plain: dict[str, Any]) -> None:
        if self.options.json:
            print(json.dumps({"event": event, **plain}), flush=True)
            return
        about = ", ".join(filter(None, (key.model, SIDES.get(key.side))))
        place = f"{key.source}: " if self.folder and key.series else ""
        name = f"{place}{key.series or key.source}{f' ({about})' if about else ''}"
        size = f"; evidence {plain['evidence']:.2g}" if event == "alarm" else ""
        print(printable(f"{event:<8} {name}: {plain['text']}{size}"), flush=True)


def named_now(evidence: dict[Key, float], named: set[Key], alpha: float) -> set[Key]:
    """Streams that are named at a look, with those that were named before."""
    before = [key in named for key in evidence]
    found = false_discovery_alarms(list(evidence.values()), alpha, named=before)
    return {key for key, now in zip(evidence, found, strict=True) if now}
