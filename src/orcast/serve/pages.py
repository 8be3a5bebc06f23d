"""Pages for people, without scripts: all series with the worst first, and the report of one series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from orcast.evaluate import plots, report
from orcast.evaluate.evaluation import Evaluation
from orcast.evaluate.information import Information
from orcast.evaluate.svg import Picture, percent, plain, shortened
from orcast.kernels.records import EVIDENCE
from orcast.monitors import ALPHA, EVER, SIDES, Alarm, Watch, false_discovery_alarms, pit_of, pit_rows
from orcast.rounds import watchable
from orcast.spaces import Binary, OrderedSpace
from orcast.store import Store, StoredSeries
from orcast.store.log import base_quantiles

# Series and alarms that the first page shows, and rounds that the page of a series evaluates.
MOST_SERIES, MOST_LISTED, ROUNDS = 100, 20, 1_000
EMPTY = "No series yet: PUT /v1/series/NAME opens one."
EXPLAINED = (
    "An alarm names the side that is miscalibrated, and 5% of the series in alarm are expected to be false. "
    "Share of bound: miscalibration as a share of what the guarantee allows."
)
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


class Row(NamedTuple):
    """A series on the first page: its standing alarms, and the share of its bound that it uses."""

    series: StoredSeries
    alarms: list[Alarm]
    used: float
    rounds: int
    pending: int

    @property
    def order(self) -> tuple[float, float]:
        """The most evidence first, then the largest share of the bound."""
        return -max((alarm.evidence for alarm in self.alarms), default=0.0), -self.used


def index(store: Store, names: Iterable[str] = ()) -> Callable[[], str]:
    """Read the series with these names and those used last; returns a function that draws the page, the worst first."""
    found = dict.fromkeys([*islice(names, MOST_SERIES), *store.recent(MOST_SERIES)])
    rows, total = [_row(store.series(name)) for name in found], len(store)
    for side in SIDES:
        own = [(row.alarms, alarm) for row in rows for alarm in row.alarms if alarm.side == side]
        named = false_discovery_alarms([alarm.evidence for _, alarm in own], total=total)
        for (alarms, alarm), keep in zip(own, named, strict=True):
            if not keep:
                alarms.remove(alarm)
    rows.sort(key=lambda row: row.order)
    listed = [(_link(row.series), _words(row.series, row.alarms)[0]) for row in rows if row.alarms]
    return lambda: _index(rows, listed, total)


def _row(series: StoredSeries) -> Row:
    found, alarms = series.guarantee, [alarm for alarm in series.alarms if alarm.standing]
    used = found.miscalibration / max(found.promised + found.excess, 1e-300)
    return Row(series, alarms, used, found.rounds, len(series.pending))


def _words(series: StoredSeries, alarms: Iterable[Alarm]) -> list[str]:
    """Alarms of a series in words."""
    found = [(SIDES[alarm.side or "input"], alarm, alarm.text(series.when)) for alarm in alarms]
    return [f"{side}{'' if alarm.question == EVER else ', changed'}: {text}" for side, alarm, text in found]


def _link(series: StoredSeries) -> str:
    name = str(series.name)
    return f'<a href="/series/{plain(quote(name, safe=""))}">{report.name_html(name)}</a>'


def _index(rows: list[Row], alarms: list[tuple[str, str]], total: int) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    over = sum(row.used > 1.0 for row in rows)
    text = (
        f"{len(alarms) or 'None'} of {total:,} series {'is' if len(alarms) == 1 else 'are'} in alarm" if rows else EMPTY
    )
    text += f"; {over} above {'its' if over == 1 else 'their'} bound" if over else ""
    shown = "" if total <= len(rows) else f"{len(rows)} of {total:,} series are shown: in alarm, or used last."
    body = f'<p class="headline {"avoid" if alarms or over else "use"}">{plain(text)}</p><p class="soft">{shown}</p>'
    listed = "".join(f"<li>{link}: {plain(words)}</li>" for link, words in alarms[:MOST_LISTED])
    body += f"<ul>{listed}</ul>" if listed else ""
    columns = {
        "Series": [_link(row.series) for row in rows],
        "Alarm": [
            plain("; ".join(f"{SIDES[each.side or 'input']}: {each.kind}" for each in row.alarms)) for row in rows
        ],
        "Rounds": [f"{row.rounds:,}" for row in rows],
        "Pending": [f"{row.pending:,}" for row in rows],
        "Share of bound": [percent(row.used) for row in rows],
    }
    under = f'<p class="soft">{now} UTC. {EXPLAINED}</p>' if rows else ""
    return report.page("Series", under, body + (report.table_html(columns, "Series") if rows else ""))


def series(found: StoredSeries) -> Callable[[], str]:
    """Read one series; returns a function that draws its page: its alarms, and the report of its last rounds."""
    history = found.history(ROUNDS)
    rounds = [each for each in reversed(history) if each.status == "settled" and each.base is not None]
    title, space = shortened(str(found.name), 120) or "(no name)", found.space
    listed = "".join(f"<li>{plain(text)}</li>" for text in _words(found, found.alarms)) or "<li>none</li>"
    guard = found.guard
    published = "" if guard is None else f'<p class="soft">{plain(guard.text())}</p>'
    under = f'<p class="soft">{plain(found.guarantee)}</p>{published}<p><a href="/">All series</a></p>'
    under += f"<h3>Alarms</h3><ul>{listed}</ul>"
    if not rounds or not watchable(space):
        text = "No report on outcomes of this kind." if rounds else "No outcomes yet."
        return lambda: report.page(title, under, f"<p>{text}</p>")
    model, evidence = str(found.name), evidence_of(found, history, rounds)
    return lambda: report.page(
        title, under, report.model_html(_evaluation(model, space, rounds), evidence), f"<p>{report.FOOT}</p>"
    )


def evidence_of(found: StoredSeries, history: Sequence[Any], rounds: Sequence[Any]) -> Picture:
    """Evidence of the monitors, of the recalibrated forecast and of the expert with the most, as outcomes came."""
    monitor, opened = found.monitor, np.sort([each.opened for each in history])
    watch, kept = Watch(found.space, len(monitor.inputs), "direct"), sorted(rounds, key=lambda each: each.closed)
    paths = np.empty((len(kept), 1 + len(monitor.inputs)))
    for path, each in zip(paths, kept, strict=True):
        issued, clock = np.searchsorted(opened, [each.opened, each.closed]).tolist()
        watch.put(_pits(each, found.space), float(issued), float(clock))
        path[:] = [watcher.state[EVIDENCE] for watcher in watch.watchers]
    worst = list(monitor.inputs.values()).index(monitor.input)
    before, since = monitor.rounds - len(kept), {}
    for side, own in (("before", monitor.input), ("after", monitor.output)):
        if own.miscalibrated is not None and own.miscalibrated.since > before:
            since[side] = own.miscalibrated.since - before - 1
    times = np.array([each.target.replace(tzinfo=None) for each in kept], dtype="datetime64[us]")
    part = f", of the last {len(kept):,} rounds alone" if before else ""
    sides = {"before": paths[:, 1 + worst], "after": paths[:, 0]}
    return plots.evidence_over(sides, times, since, 1.0 / ALPHA, f"Evidence against calibration{part}")


def _pits(each: Any, space: Any) -> Any:
    """Ends of the PITs of the recalibrated forecast of a round and of those of its experts."""
    rows = np.atleast_2d(each.base)
    if not isinstance(space, OrderedSpace):
        rows = np.column_stack((1.0 - rows, rows)) if isinstance(space, Binary) else rows
        rows = np.vstack((each.recalibrated.mass, rows))
        y = np.full(len(rows), float(space.cell(space.outcome(each.y))))
        return pit_rows("labels", rows, None, y).ravel()
    base = pit_rows("quantiles", rows, space.levels, np.full(len(rows), float(each.y)))
    return np.append(pit_of(each.recalibrated, float(each.y), space), base)


def _evaluation(model: str, space: Any, rounds: Sequence[Any]) -> Evaluation:
    """Evaluation of settled rounds; of several experts the first is the base forecast."""
    ordered, horizons = isinstance(space, OrderedSpace), [each.horizon for each in rounds]
    y = [float(each.y) if ordered else space.outcome(each.y) for each in rounds]
    time = np.array([each.target.replace(tzinfo=None) for each in rounds], dtype="datetime64[us]")
    horizon = np.array(horizons, dtype=np.float64) if all(type(each) in (int, float) for each in horizons) else None
    issued, known = (np.array([getattr(each, name) for each in rounds]) for name in ("issued_at", "known_at"))
    series = np.zeros(len(rounds), dtype=np.intp)
    information = Information.of(series, time.astype(np.int64), np.array(y, float), issued, known, horizon, time)
    common: dict[str, Any] = {"model": model, "time": time, "horizon": horizon, "timed": True}
    common |= {"known": (information, slice(None)), "overlap": information.overlap()}
    if ordered:
        before: Any = base_quantiles(np.array([each.base[0] for each in rounds]), space, LEVELS)
        after = [each.recalibrated.quantile(LEVELS) for each in rounds]
        bounds = {"low": space.low, "high": space.high}
        return Evaluation.of(before, y, after=after, levels=LEVELS, **bounds, **common)
    if isinstance(space, Binary):
        before = [float(np.ravel(each.base)[-1]) for each in rounds]
        return Evaluation.of(before, y, after=[each.recalibrated.probability() for each in rounds], **common)
    before = [np.atleast_2d(each.base)[0] for each in rounds]
    after = [each.recalibrated.mass for each in rounds]
    return Evaluation.of(before, y, after=after, labels=tuple(map(str, space.labels)), **common)
