"""A store answers as recalibrators do, whichever process calls, and keeps what was forecast and known."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from postgres import database, restart, server
from writers import SERIES, forecast_of, outcome_of, space_of

import orcast as oc
from orcast.store import Store

Url = Callable[[], str]
Open = Callable[..., Store]
WRITER = str(Path(__file__).with_name("writers.py"))
# Columns that tell of the clock.
CLOCK = ("issued", "target", "known", "checksum")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    with server() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Url:
    """A function that makes a new store of each kind."""
    if request.param == "postgresql":
        return lambda: database(request.getfixturevalue("postgresql"))
    numbers = iter(range(100))
    return lambda: f"sqlite:///{tmp_path}/store{next(numbers)}.db"


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens stores, and closes them at the end."""
    stores: list[Store] = []

    def begin(*address: str, **options: Any) -> Store:
        stores.append(oc.open(*address, **options))
        return stores[-1]

    yield begin
    for each in stores:
        each.close()


def content(store: Store) -> list[Any]:
    """Everything but times."""
    found = []
    for table, order in {
        "series": "number",
        "states": "series",
        "rounds": "series, opened",
        "snapshots": "series, event",
    }.items():
        cursor = store.database.execute(f"SELECT * FROM {table} ORDER BY {order}")
        kept = [i for i, column in enumerate(cursor.description) if column[0] not in CLOCK]
        found.append([tuple(row[i] for i in kept) for row in cursor.fetchall()])
    return found


def same(p: Any, q: Any) -> bool:
    """Whether two forecasts are the same to the last bit."""
    return np.array_equal(p.mass, q.mass) and p.certificate == q.certificate


# --- as a recalibrator

CASES: dict[str, tuple[Any, dict[str, Any], Callable[[int], dict[str, Any]], Callable[[int], Any]]] = {
    "quantity": (oc.Interval(0, 100), {"memory": 50.0}, lambda t: {"forecast": oc.Normal(50 + t, 5)}, lambda t: 40 + t),
    "randomised": (oc.Line(), {"randomised": 3}, lambda t: {"forecast": {0.1: t, 0.9: t + 4}}, lambda t: 2.0 * t),
    "event": (oc.Binary(), {}, lambda t: {"forecast": 0.3 + t / 100}, lambda t: t % 2),
    "labels": (oc.Labels(["a", "b"]), {}, lambda t: {"forecast": {"a": 0.4, "b": 0.6}}, lambda t: "ab"[t % 2]),
    "box": (oc.Box([(0, 1), (0, 1)], cells=(3, 3)), {}, lambda t: {"forecast": [oc.Normal(0.5, 0.2)] * 2},
            lambda t: [0.4, t / 40]),
    "experts": (oc.Interval(0, 9), {}, lambda t: {"experts": {"x": oc.Normal(4, 1), "y": oc.Normal(5, 1 + t % 2)}},
                lambda t: t % 8),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_series_answers_as_a_recalibrator(case: str, url: Url, opened: Open) -> None:
    space, options, forecast, outcome = CASES[case]
    address, recal = url(), oc.Recalibrator(space, **options)
    for t in range(24):
        if t % 6 == 0:  # each process continues from the store, with no state in memory
            store = opened(address, memory=1)
            series = store.series("wind", space=space, **options)
        given = forecast(t)
        p = series.predict(**given, id=t, horizon=1)
        assert same(p, recal.predict(*given.values(), id=t) if "forecast" in given else recal.predict(**given, id=t))
        assert same(p, series.predict(**given, id=t))
        if t % 3:  # the outcome of every third round comes late
            for each in (t, t - 2) if t % 3 == 2 else (t,):
                series.update(outcome(each), id=each)
                series.update(outcome(each), id=each)
                recal.update(outcome(each), id=each)
        if t % 6 == 5:
            assert series.guarantee == recal.guarantee
            assert series.pending == recal.pending


def test_payoff_with_functions_is_given_again(tmp_path: Path) -> None:
    payoff = oc.QuantileCalibration() + oc.Recipe(lambda y: [y > 80], bound=1, jumps=[80])
    with oc.open(tmp_path / "db") as store:
        store.series("wind", space=oc.Interval(0, 100), payoff=payoff).predict(oc.Normal(50, 5), id=1)
    with oc.open(tmp_path / "db") as store:
        with pytest.raises(ValueError, match="expected payoff= for a Recipe"):
            store.series("wind")
        series = store.series("wind", payoff=payoff)
        series.update(70.0, id=1)
        assert series.guarantee.rounds == 1


def test_unnamed_rounds_follow_one_another_and_stay_in_the_log(opened: Open) -> None:
    store = opened()
    series, recal = store.series(7), oc.Recalibrator()
    for t in range(3):
        series.predict(oc.Normal(9, 9))  # another forecast takes its place
        recal.predict(oc.Normal(9, 9))
        assert same(series.predict(oc.Normal(t, 1)), recal.predict(oc.Normal(t, 1)))
        series.update(t)
        recal.update(t)
    assert series.guarantee == recal.guarantee
    assert [each.status for each in series.history()] == ["settled", "dropped"] * 3


def test_refused_calls_change_nothing(url: Url, opened: Open) -> None:
    store = opened(url())
    series = store.series("wind", space=oc.Interval(0, 100), max_pending=2)
    for id in "ab":
        series.predict(oc.Normal(50, 5), id=id)
    with pytest.warns(RuntimeWarning, match="dropped the oldest"):
        series.predict(oc.Normal(50, 5), id="c")
    assert series.round("a").status == "dropped"  # too many were pending
    series.update(40, id="b")
    before = content(store)
    refused: dict[str, Callable[[], Any]] = {
        "got another forecast for 'b', which is settled": lambda: series.predict(oc.Normal(50, 6), id="b"),
        r"expected 40.0, with which .* got 41.0 \(revise replaces": lambda: series.update(41, id="b"),
        "which was dropped": lambda: series.update(41, id="a"),
        "which was settled with 40.0": lambda: series.drop("b"),
        "expected the id of a pending round, got 'x'": lambda: series.update(41, id="x"),
        r"expected an outcome in \[0, 100\]": lambda: series.update(101, id="c"),
        "expected a settled round to revise, got one that is pending": lambda: series.revise(41, id="c"),
        "expected a time from .* on as known": lambda: series.revise(41, id="b", known="2001-01-01"),
        "of UTC as target": lambda: series.predict(oc.Normal(50, 6), id="n", target="9999-12-31T23:59-14:00"),
        "expected a time such as": lambda: series.predict(oc.Normal(50, 6), id="n", target="tomorrow"),
        "expected the same space as was saved": lambda: store.series("wind", space=oc.Interval(0, 10)),
        "expected max_pending=2, as series 'wind' began, got 3": lambda: store.series("wind", max_pending=3),
        "expected at most 2000 characters in an id": lambda: series.predict(oc.Normal(5, 6), id="n" * 2001),
        "expected a series of the store": lambda: store.rounds("solar"),
    }  # fmt: skip
    for message, call in refused.items():
        with pytest.raises((TypeError, ValueError), match=message):
            call()
    assert content(store) == before


def test_rolled_back_transactions_leave_nothing(url: Url, opened: Open) -> None:
    """Two stores take turns, with rollbacks after new series and experts; a third has only what was committed."""
    address, rng = url(), random.Random(5)
    stores, alone = [opened(address), opened(address)], opened()
    kinds = {"a": {"space": oc.Interval(0, 1)}, "b": {"space": oc.Line(), "pool": True}, "c": {"space": oc.Line()}}

    def call(store: Store, name: str, t: int, fails: bool) -> Any:
        series = store.series(name, **kinds[name])
        experts = {"x": oc.Normal(0.4, 0.1 + t / 99)} | ({} if name == "b" else {"y": oc.Normal(0.5, 0.2)})
        p = series.predict(experts=experts, id=t)
        series.update(t / 99, id=t)
        found = p.mass.tolist(), series.guarantee
        return found if not fails else 1 / 0

    for t in range(60):
        name, store = rng.choice("abc"), rng.choice(stores)
        fails = rng.choice([True, False])
        if fails:
            with pytest.raises(ZeroDivisionError):
                store.transact(lambda: [call(store, each, 99, True) for each in name])  # noqa: B023
        else:
            assert call(store, name, t, False) == call(alone, name, t, False)
        if t % 10 == 9:
            stores[rng.randrange(2)] = opened(address)
    assert store.names() == alone.names()
    stale = []
    with pytest.raises(ZeroDivisionError):
        store.transact(lambda: (stale.append(store.series("d", space=oc.Binary())), 1 / 0))
    store.series("e", space=oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1))
    with pytest.raises(ValueError, match="'d', whose opening was rolled back"):
        stale[0].predict(0.5)


UTC, EAST = timezone.utc, timezone(timedelta(hours=5))  # noqa: UP017
EQUAL_IDS: list[list[Any]] = [
    [datetime(2026, 1, 1, 7, tzinfo=UTC), datetime(2026, 1, 1, 12, tzinfo=EAST)],
    [(1,), (1.0,), (True,)],
    [np.datetime64("2026-01-01"), np.datetime64("2026-01-01T00", "h"), datetime(2026, 1, 1)],
    [True, 1, 1.0, np.int64(1)],
]


@pytest.mark.parametrize("ids", EQUAL_IDS)
def test_equal_ids_are_one(ids: list[Any], tmp_path: Path, opened: Open) -> None:
    series, recal = opened(tmp_path / "db").series("wind", space=oc.Interval(0, 100)), oc.Recalibrator()
    p = series.predict(oc.Normal(50, 5), id=ids[0])
    recal.predict(oc.Normal(50, 5), id=ids[0])
    for id in ids[1:]:
        assert same(series.predict(oc.Normal(50, 5), id=id), p)
        with pytest.raises(ValueError, match="another forecast for"):
            series.predict(oc.Normal(51, 5), id=id)
        with pytest.raises(ValueError, match="which is pending already"):
            recal.predict(oc.Normal(50, 5), id=id)
    series.update(40, id=ids[-1])
    again = opened(tmp_path / "db").series("wind")
    again.update(40, id=ids[0])
    recal.update(40, id=ids[0])
    with pytest.raises(ValueError, match="which was settled"):
        recal.predict(oc.Normal(50, 5), id=ids[-1])
    assert (again.guarantee.rounds, again.pending, len(again.history())) == (1, (), 1)


# --- many processes


def run_writers(address: str, count: int, *, kills: int = 0) -> list[list[str]]:
    """Eight writers, of which some are killed and begin again; returns the lines of what they did."""
    command = [sys.executable, WRITER, address]
    texts: list[list[str]] = []
    running = [
        subprocess.Popen(
            [*command, str(k), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in range(8)
    ]
    for each in running:
        assert each.stdin is not None
        each.stdin.write("begin\n")
        each.stdin.flush()
    for k in range(kills):
        each = running[k % 8]
        assert each.stdout is not None
        texts.append([each.stdout.readline() for _ in range(3)])
        each.kill()
        texts.append(each.communicate()[0].splitlines())
        arguments = [*command, str(k % 8), str(count)]
        running[k % 8] = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    for each in running:
        text, errors = each.communicate(timeout=300)
        texts.append(text.splitlines())
        assert each.returncode == 0, errors
    return texts


def check_writers(opened: Open, address: str, texts: list[list[str]], count: int) -> None:
    """No acknowledged call was lost, none counts twice, and one process that makes the calls in order gets the same."""
    store, alone = opened(address), opened()
    acknowledged = {tuple(line.strip().split("\t")) for text in texts for line in text if line.count("\t") == 2}
    names = [name for name in store.names() if name in SERIES]
    for name in names:
        alone.series(name, space=space_of(name))
        calls = []
        for number, id, opened, closed in store.database.rows("SELECT series, id, opened, closed FROM rounds"):
            if store.names()[number - 1] == name:
                calls += [(opened, True, id.strip('"')), (closed, False, id.strip('"'))]
        assert sorted(event for event, *_ in calls) == list(range(1, len(calls) + 1))
        for _, issues, id in sorted(calls):
            series = alone.series(name)
            series.predict(forecast_of(name, id), id=id) if issues else series.update(outcome_of(name, id), id=id)
            acknowledged.discard(("issued" if issues else "settled", name, id))
    assert not acknowledged
    assert sum(store.series(name).guarantee.rounds for name in names) == 8 * count
    for mine, theirs in zip(content(store), content(alone), strict=True):
        assert mine == theirs


def test_eight_writers_equal_one(url: Url, opened: Open) -> None:
    address = url()
    store = opened(address)
    for name in SERIES:  # so that the series have the same numbers
        store.series(name, space=space_of(name))
    check_writers(opened, address, run_writers(address, 30), 30)


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_writers_lose_nothing_and_count_nothing_twice(kills: int, url: Url, opened: Open) -> None:
    address = url()
    store = opened(address)
    for name in SERIES:
        store.series(name, space=space_of(name))
    check_writers(opened, address, run_writers(address, 20, kills=kills), 20)


@pytest.mark.parametrize("restarts", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_server_that_is_killed_under_load_loses_nothing(restarts: int, opened: Open) -> None:
    """A writer waits for the server, and repeats the call that was interrupted."""
    with server() as started:
        address = database(started)
        store = opened(address)
        for name in SERIES:
            store.series(name, space=space_of(name))
        texts: list[list[str]] = []
        writers = threading.Thread(target=lambda: texts.extend(run_writers(address, 25 * restarts)))
        writers.start()
        rng = random.Random(restarts)
        for _ in range(restarts):
            time.sleep(1.0 + rng.random())
            restart(started)
        writers.join()
        check_writers(opened, address, texts, 25 * restarts)


# --- revisions and the log


def day(number: int, hour: int = 0) -> str:
    return f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}T{hour:02d}:00"


def play(series: Any, outcomes: list[float], *, late: int) -> None:
    """A round a day, each settled `late` days later."""
    for t, y in enumerate([*outcomes, *[None] * late]):
        if y is not None:
            series.predict(oc.Normal(50 + t % 5, 6), id=t, issued=day(t), target=day(t, 12))
        if t >= late:
            series.update(outcomes[t - late], id=t - late, known=day(t, 13))


@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize("settled", [40, 300])  # without and with snapshots
def test_revised_series_equals_one_that_had_the_outcomes(late: int, settled: int, url: Url, opened: Open) -> None:
    outcomes = [float(50 + 9 * np.sin(t)) for t in range(settled)]
    store, other = opened(url()), opened(url())
    series, twin = (each.series("wind", space=oc.Interval(0, 100)) for each in (store, other))
    play(series, outcomes, late=late)
    published = [each.forecast for each in series.history(settled)]
    series.predict(oc.Normal(50, 6), id="pending", target=day(settled + 9))
    for id, y in {3: 90.0, settled - 2: 10.0, 7: 20.0}.items():
        outcomes[id] = y
        series.revise(y, id=id, known=day(settled + 9))
        series.revise(y, id=id, known=day(settled + 9))  # a repeated call changes nothing
    assert all(map(same, published, (each.forecast for each in series.history(settled + 1)[1:])))
    play(twin, outcomes, late=late)
    twin.predict(oc.Normal(50, 6), id="pending")
    for each in (series, twin):
        each.update(44.0, id="pending")
    assert series.guarantee == twin.guarantee
    found = [[(side.rounds, side.evidence) for side in (m.input, m.output)] for m in (series.monitor, twin.monitor)]
    assert found[0] == found[1]
    assert found[0][0][0] == settled + 1
    given = {"forecast": oc.Normal(47, 7), "id": "next"}
    assert same(series.predict(**given), twin.predict(**given))
    assert series.round(3).revisions == 1


def test_revision_is_in_force_at_once(tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    store = opened(tmp_path / "db")
    series = store.series("wind", space=oc.Interval(0, 100))
    for t in range(3):
        series.predict(oc.Normal(50, 5), id=t)
        series.update(54, id=t)
    monkeypatch.setattr("orcast.store.times.now", lambda: 10**15)  # the clock was set back
    found = series.revise(90, id=1)
    assert found.guarantee["miscalibration"] == series.guarantee.miscalibration
    assert found.known == series.round(1).known == store.rounds()["known"][1].tz_localize("UTC")
    assert series.revise(90, id=1).guarantee == found.guarantee
    assert series.update(90, id=1).repeated
    with pytest.raises(ValueError, match=r"expected 90.0, with which round 1 was settled, got 54.0"):
        series.update(54, id=1)


def test_revision_that_is_refused_within_a_transaction_changes_nothing(tmp_path: Path, opened: Open) -> None:
    store = opened(tmp_path / "db", remember=5)
    series = store.series("wind", space=oc.Interval(0, 100))
    play(series, [50.0] * 20, late=1)
    before = content(store)

    def work() -> None:
        with pytest.raises(ValueError, match="no longer remembered"):
            series.revise(60, id=17)

    store.transact(work)
    assert content(store) == before


def test_file_that_is_deleted_or_replaced_is_an_error(tmp_path: Path, opened: Open) -> None:
    store = opened(tmp_path / "db")
    series = store.series("wind")
    os.rename(tmp_path / "db", tmp_path / "moved")
    for _ in range(2):
        with pytest.raises(OSError, match="got a deleted or replaced one"):
            series.predict(oc.Normal(50, 5), id=1)
        opened(tmp_path / "db")
    store.close()
    with pytest.raises(ValueError, match="expected an open store, got one that was closed"):
        store.names()


def test_damaged_options_and_other_files_are_refused(tmp_path: Path, opened: Open) -> None:
    store = opened(tmp_path / "db")
    store.series("wind")
    store.transact(lambda: store.database.execute("UPDATE options SET options = '{}'"))
    with pytest.raises(ValueError, match=r"got damaged ones: .*db"):
        opened(tmp_path / "db").series("wind")
    (tmp_path / "one").write_text("x")
    with pytest.raises(ValueError, match="expected a store, got another file"):
        opened(tmp_path / "one")
    pytest.importorskip("psycopg")
    begun = time.monotonic()
    with pytest.raises(OSError, match=r"Connection refused: postgresql://127\.0\.0\.1:5999/x"):
        opened("postgresql://127.0.0.1:5999/x")
    assert time.monotonic() - begun < 5


def test_transactions_in_opposite_orders_all_happen(postgresql: Any, opened: Open) -> None:
    address = database(postgresql)
    for name in "ab":
        opened(address).series(name, space=oc.Interval(0, 1))

    def work(store: Store, names: str, t: int) -> None:
        for name in names:
            store.series(name).predict(oc.Normal(0.5, 0.1), id=t)
            store.series(name).update(0.4, id=t)

    def run(k: int) -> None:
        store = opened(address)
        for t in range(4):
            store.transact(lambda: work(store, "ab" if k % 2 else "ba", 10 * k + t))  # noqa: B023

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [opened(address).series(name).guarantee.rounds for name in "ab"] == [16, 16]


def test_guarded_series_publishes_as_its_guard_says(url: Url, opened: Open) -> None:
    """Switches as a recalibrator does; what was published stays so, repeated, reopened, revised, and in the log."""
    pytest.importorskip("pandas")
    address, rng = url(), np.random.default_rng(8)
    outcomes = rng.normal(3.0, 3.0, 150).tolist()
    twin, revised = (oc.Recalibrator(oc.Line(), mode="guarded") for _ in range(2))
    store = opened(address)
    series = store.series("wind", space=oc.Line(), mode="guarded")
    told = []
    for t, y in enumerate(outcomes):
        told.append(series.predict(oc.Normal(0, 1), id=t, issued=day(t)))
        assert same(told[-1], twin.predict(oc.Normal(0, 1), id=t))
        series.update(y, id=t, known=day(t, 1))
        twin.update(y, id=t)
    assert series.guard == twin.guard
    since = series.guard.since
    assert 2 < since < 140
    assert [p.certificate is None for p in told] == [t + 1 < since for t in range(150)]
    series = opened(address).series("wind", mode="guarded")
    series.revise(0.0, id=1, known=day(200))
    for t, y in enumerate(outcomes):
        revised.predict(oc.Normal(0, 1))
        revised.update(0.0 if t == 1 else y)
    assert series.guard == revised.guard
    assert repr(series.monitor) == repr(revised.monitor)
    for t in (0, since - 2, since - 1, 149):
        assert same(series.predict(oc.Normal(0, 1), id=t), told[t])
        found = series.round(t)
        assert (found.published == "base") == (t + 1 < since)
        assert found.recalibrated.certificate.holds
    log = store.rounds("wind")
    assert (log["published"] == "base").sum() == since - 1


def test_series_goes_on_in_another_mode(url: Url, opened: Open) -> None:
    """From shadow on: in guarded mode with the evidence so far, in direct mode with what was learnt; snapshots stay."""
    address = url()
    store, other = opened(address), opened(address)
    series, twin = store.series("wind", space=oc.Line(), mode="shadow"), oc.Recalibrator(oc.Line(), mode="shadow")
    there = other.series("wind")
    steps = {140: "guarded", 160: "direct", 180: "shadow"}
    for t in range(200):
        for each in (series, twin) if t in steps else ():
            each.change_mode(steps[t])
        assert same(there.predict(oc.Normal(0, 1), id=t), twin.predict(oc.Normal(0, 1), id=t))
        for each in (series, twin):
            each.update(3.0 + t % 7, id=t)
        assert there.guard == twin.guard
    with pytest.raises(ValueError, match="expected mode="):
        store.series("wind", mode="live")
    assert store.series("wind", mode="guarded").guard.publishes == "base"  # in shadow mode since
    assert [there.round(t).published for t in (139, 141, 161, 199)] == ["base", "recalibrated", "recalibrated", "base"]
    assert there.guard.rounds == 20
    series.revise(2.0, id=150)
    assert (series.guard.publishes, series.guard.rounds, series.monitor.rounds) == ("base", 200, 200)
    with pytest.raises(ValueError, match="expected mode="):
        series.change_mode("live")


def test_log_has_what_was_known_at_each_time(url: Url, opened: Open) -> None:
    pytest.importorskip("pandas")
    store = opened(url())
    series = store.series("wind", space=oc.Interval(0, 100))
    store.series("rain", space=oc.Labels(["no", "yes"])).predict([0.3, 0.7], id="r", issued=day(3))
    play(series, [51.0, 52.0, 53.0, 54.0, 55.0], late=1)
    series.revise(61.0, id=1, known=day(4))
    series.revise(62.0, id=1, known=day(6))
    series.drop(series.predict(oc.Normal(50, 5), id="gone", issued=day(8)) and "gone")
    for as_of, known in {
        day(1, 12): [None, None],
        day(1, 13): [51.0, None],
        "2026-01-03": [51.0, 52.0, None],  # the whole day
        day(4): [51.0, 61.0, 53.0, None, None],
        day(7): [51.0, 62.0, 53.0, 54.0, 55.0],
    }.items():
        found = store.rounds("wind", as_of=as_of, levels=[0.1, 0.5])
        assert [None if y != y else y for y in found["y"].astype(float)] == known
        assert found["status"].tolist() == ["pending" if y is None else "settled" for y in known]
    dropped = store.rounds("wind")["known"].iloc[-1].tz_localize("UTC").to_pydatetime()
    for as_of, status in {dropped - timedelta(seconds=1): "pending", dropped: "dropped"}.items():
        assert store.rounds("wind", as_of=as_of)["status"].iloc[-1] == status
    assert found["orcast_q0.5"].tolist() == [each.forecast.median() for each in series.history()[1:]][::-1]
    assert found["base_q0.5"].tolist() == pytest.approx([50.0, 51.0, 52.0, 53.0, 54.0])
    assert store.rounds("wind", start=day(1), end=day(2, 12))["id"].tolist() == [1, 2]
    everything = store.rounds(backend="polars")
    assert everything["series"].to_list() == ["wind"] * 6 + ["rain"] or everything["series"].n_unique() == 2
    assert "orcast_p_yes" in everything.columns


def test_round_that_another_version_forecast_is_named(tmp_path: Path, opened: Open) -> None:
    """A pending round is computed again by the next process, so that a forecast writes one row."""
    store = opened(tmp_path / "db")
    series = store.series("wind", space=oc.Interval(0, 100))
    play(series, [50.0] * 3, late=0)
    state = store.database.row("SELECT state FROM states")
    series.predict(oc.Normal(50, 6), id="pending")
    assert store.database.row("SELECT state FROM states") == state
    assert store.database.row("SELECT record FROM rounds WHERE closed = 0") == (None,)
    row = store.tables.round(series.number, '"pending"')
    row.forecast_bytes = (1.01 * np.frombuffer(row.forecast_bytes)).tobytes()
    query = "UPDATE rounds SET forecast = ?, checksum = ? WHERE closed = 0"
    store.transact(lambda: store.database.execute(query, (row.forecast_bytes, row.checksum)))
    with pytest.warns(RuntimeWarning, match="'pending' was forecast by another version"):
        opened(tmp_path / "db").series("wind").update(50, id="pending")


def test_snapshots_are_seldom_while_many_rounds_are_pending(opened: Open) -> None:
    store = opened()
    series = store.series("wind", space=oc.Interval(0, 100), max_pending=2000)
    store.transact(lambda: [series.predict(oc.Normal(50, 5), id=t) for t in range(1100)])
    assert store.tables.snapshots(series.number) == []
    series.update(51, id=3)
    series.revise(52, id=3)
    assert (series.guarantee.rounds, len(series.pending)) == (1, 1099)


def test_remembered_rounds_are_bounded(tmp_path: Path, opened: Open) -> None:
    store = opened(str(tmp_path / "db"), remember=5)
    series = store.series("wind", space=oc.Interval(0, 100))
    play(series, [50.0] * 9, late=1)
    assert [each.id for each in series.history()] == [8, 7, 6, 5, 4]
    with pytest.raises(ValueError, match="no longer remembered"):
        series.revise(40.0, id=7)


def test_frames_keep_their_state_in_a_store(url: Url) -> None:
    pd = pytest.importorskip("pandas")
    address = url()
    frame = pd.DataFrame({"ds": range(6), "y": [1.0, 3.0, 2.0, 4.0, 2.0, None], "mean": [2.0] * 6, "sd": [1.0] * 6})
    state = oc.FrameState()
    for rows in (slice(0, 3), slice(2, 6)):
        expected = oc.recalibrate(frame[rows], state=state)
        pd.testing.assert_frame_equal(oc.recalibrate(frame[rows], state=address), expected)


# --- recalibrators alone


def test_recalibrator_refuses_settled_ids_after_loading(tmp_path: Path) -> None:
    recal = oc.Recalibrator(oc.Interval(0, 100))
    ids: list[Any] = ["a", 3, ("b", 1), 2.5]
    for id in ids:
        recal.predict(oc.Normal(50, 5), id=id)
        recal.update(51, id=id)
    recal.save(tmp_path / "state")
    again = oc.Recalibrator.load(tmp_path / "state")
    for id in [*ids, 3.0, np.int64(3)]:
        with pytest.raises(ValueError, match=r"expected a new id, got .*, which was settled"):
            again.predict(oc.Normal(50, 5), id=id)
    again.predict(oc.Normal(50, 5), id="a", reuse=True)
    again.predict(oc.Normal(50, 5), id="3")


def test_save_refuses_a_file_that_another_process_saved(tmp_path: Path) -> None:
    path = tmp_path / "state"
    oc.Recalibrator(oc.Interval(0, 100)).save(path)
    one, other = (oc.Recalibrator.load(path) for _ in range(2))
    for recal in (one, other):
        recal.predict(oc.Normal(50, 5))
        recal.update(50)
    one.save(path)
    one.save(path)
    before = path.read_bytes()
    other.update(other.predict(oc.Normal(50, 5)).median())
    with pytest.raises(ValueError, match="got one that another process saved since"):
        other.save(path)
    assert path.read_bytes() == before
    other.save(path, overwrite=True)
    assert oc.Recalibrator.load(path).guarantee.rounds == 2
