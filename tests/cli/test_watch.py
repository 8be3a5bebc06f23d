"""`orcast watch`: alarms of tables and folders as they come, each once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from orcast import cli
from orcast.cli.alarms import Key, Table, Watch, named_now
from pages import NASTY

HEAD = "unique_id,ds,y,mean,sd\n"
Capture = pytest.CaptureFixture[str]


def rows(name: str, count: int, *, first: int = 0, shift: float = 0.0) -> str:
    """Rows of a calibrated series, or of one whose outcomes are shifted."""
    y = np.random.default_rng(first + len(name)).normal(size=count) + shift
    text = name.replace('"', '""')
    return "".join(f'"{text}",{np.datetime64("2026-01-01") + first + t},{y[t]:.6f},0,1\n' for t in range(count))


def wait_for(found: Callable[[], Any]) -> Any:
    """Result of a condition, once it is true."""
    end = time.monotonic() + 60
    while not (result := found()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return result


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_watch_follows_a_table_that_is_missing_wrong_and_grows(how: signal.Signals, code: int, tmp_path: Path) -> None:
    path, out, err = (tmp_path / name for name in ("f.csv", "out", "err"))
    command = [sys.executable, "-m", "orcast", "watch", str(path), "--every", "0.05", "--json"]
    with open(out, "wb") as answers, open(err, "wb") as errors:
        process = subprocess.Popen(command, stdout=answers, stderr=errors, env=os.environ)
    try:
        wait_for(lambda: "nothing by that name" in err.read_text())
        path.write_text(HEAD + rows("a", 100) + "a,2026-04-30,wrong,0,1\n")
        wait_for(lambda: "column 'y'" in err.read_text())
        # a torn last line, which would be an outcome far away, is not read
        path.write_text(HEAD + rows("a", 100) + rows("b", 100) + '"b",2026-04-11,99')
        time.sleep(1.0)
        assert out.read_text() == ""
        path.write_text(HEAD + rows("a", 100) + rows("b", 100) + rows("b", 60, first=100, shift=2.0))
        alarm, change = (
            json.loads(line)
            for line in wait_for(lambda: out.read_text().splitlines()[1:] and out.read_text()).splitlines()
        )
        path.write_text(path.read_text() + rows("b", 5, first=160, shift=2.0))
        path.write_text(path.read_text() + rows("b", 300, first=165))
        ended = wait_for(lambda: [line for line in out.read_text().splitlines() if 'ended": true' in line])
    finally:
        process.send_signal(how)
        assert process.wait(60) == code
    assert (alarm["event"], alarm["series"], alarm["kind"], change["event"]) == ("alarm", "b", "too low", "changed")
    assert abs(np.datetime64(alarm["since"]) - np.datetime64("2026-04-11")).astype(int) <= 3
    assert len(ended) == 1
    assert json.loads(ended[0])["event"] == "ended"
    events = [json.loads(line)["event"] for line in out.read_text().splitlines()]
    assert (events.count("alarm"), events.count("ended")) == (1, 1)
    said = err.read_text().splitlines()
    assert all(line.startswith("orcast: ") for line in said)
    assert sum("nothing by that name" in line for line in said) == sum("column 'y'" in line for line in said) == 1


def test_once_names_the_worst_first_and_fails(tmp_path: Path, capsys: Capture) -> None:
    for k in range(20):
        (tmp_path / f"{k:02d}.csv").write_text(HEAD + rows(f"s{k}", 200, shift={3: 0.8, 17: 1.5}.get(k, 0.0)))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    (tmp_path / ".hidden.csv").write_text("no table")
    assert cli.main(["watch", str(tmp_path), "--once"]) == 1
    told = capsys.readouterr()
    assert [line.split()[:3] for line in told.out.splitlines() if line.startswith("alarm")] == [
        ["alarm", "17.csv:", "s17:"],
        ["alarm", "03.csv:", "s3:"],
    ]
    assert "20 streams of forecasts, 2 in alarm" in told.err
    assert "broken.parquet" in told.err
    for name in ("03.csv", "17.csv"):
        (tmp_path / name).unlink()
    assert cli.main(["watch", str(tmp_path), "--once", "--quiet"]) == 2
    (tmp_path / "broken.parquet").unlink()
    assert cli.main(["watch", str(tmp_path), "--once", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_table_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEAD + rows("a", 30))
    table = Table(cli.parser().parse_args(["watch", str(path)]), str(path))
    assert table.look() is not None
    assert table.look() is None
    path.write_text(path.read_text() + rows("a", 1, first=30))
    assert table.look() is not None
    path.write_text(HEAD + rows("a", 20))  # may be half written
    assert table.look() is None
    assert table.look() is not None
    assert table.look() is None


def test_a_store_is_watched_by_its_monitors(tmp_path: Path, capsys: Capture) -> None:
    url, rng = str(tmp_path / "wind.db"), np.random.default_rng(2)
    assert cli.main(["watch", url, "--once", "-q"]) == 2  # it is not there yet
    with oc.open(url) as store:

        def settle(name: str, rounds: range, shift: float) -> None:
            for t in rounds:
                times = {"issued": "2026-03-01", "target": np.datetime64("2026-03-02") + t}
                store.series(name).predict(oc.Normal(0, 1), id=t, **times)
                store.series(name).update(rng.normal() + shift, id=t)

        store.series("box", space=oc.Box([(0, 1)] * 2, cells=(3, 3)))  # there is no PIT
        for name in ("calm", "broken \x1b[2J"):
            store.series(name, space=oc.Line())
            settle(name, range(40), 0.0)
        watch = Watch(cli.parser().parse_args(["watch", url, "--json"]))
        watch.look()
        assert (watch.streams, watch.standing) == (4, 0)
        settle("broken \x1b[2J", range(40, 70), 2.0)
        watch.look()
        (database,) = watch.sources.values()
        assert database.look() is None
        watch.close()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    alarm = next(each for each in told if each["event"] == "alarm")
    assert (alarm["series"], alarm["side"], alarm["kind"]) == ("broken \x1b[2J", "input", "too low")
    assert abs(np.datetime64(alarm["since"]) - np.datetime64("2026-04-11")).astype(int) <= 4
    assert cli.main(["watch", f"sqlite:///{url}", "--once"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("alarm    broken  [2J (base forecast): 90% interval covers")
    assert "4 streams of forecasts" in said.err
    assert said.err.count("series 'box' is not watched: expected") == 1


def test_the_state_of_a_frame_in_a_store_is_watched_and_has_no_log(tmp_path: Path, capsys: Capture) -> None:
    url = f"sqlite:///{tmp_path / 'p.db'}"
    y = np.random.default_rng(0).normal(size=(2, 80)) + np.array([[0.0], [2.0]])
    ids, times = np.repeat(["calm", "broken"], 80), np.tile(np.arange(80), 2)
    frame = pd.DataFrame({"unique_id": ids, "ds": times, "y": y.ravel(), "mean": 0.0, "sd": 1.0})
    oc.recalibrate(frame, state=url)
    oc.recalibrate(frame.assign(y=1.0, p=0.1)[["unique_id", "ds", "y", "p"]], state=f"{url}2")
    assert cli.main(["watch", url, "--once"]) == 1
    told = capsys.readouterr()
    assert "alarm    broken (base forecast): 90% interval covers" in told.out
    assert "4 streams of forecasts, " in told.err
    assert "calm" not in told.out
    assert cli.main(["watch", f"{url}2", "--once"]) == 1
    assert "percentage points more often than forecast since round" in capsys.readouterr().out
    assert cli.main(["log", url]) == 0
    assert "no rounds: the store has the state of a frame" in capsys.readouterr().err


def test_missing_tables_are_named_and_their_alarms_stay(tmp_path: Path, capsys: Capture) -> None:
    assert cli.main(["watch", str(tmp_path), "--once"]) == 2
    assert "expected tables" in capsys.readouterr().err
    path = tmp_path / "c.csv"
    path.write_text(HEAD + rows("c", 60, shift=3.0))
    watch = Watch(cli.parser().parse_args(["watch", str(tmp_path)]))
    watch.look()
    path.unlink()
    watch.look()
    watch.look()
    told = capsys.readouterr()
    assert "ended" not in told.out
    assert (watch.standing, told.err.count("c.csv is missing; its alarms stay")) == (1, 1)


def test_a_server_that_is_restarted_is_watched_on(capsys: Capture) -> None:
    from postgres import database, restart, server

    with server() as started:
        url = database(started)
        with oc.open(url) as store:
            series = store.series("wind", space=oc.Line())
            for t in range(30):
                series.predict(oc.Normal(0, 1), id=t, target=np.datetime64("2026-03-02") + t)
                series.update(1.5 + 0.1 * (t % 5), id=t)
            watch = Watch(cli.parser().parse_args(["watch", url]))
            watch.look()
            restart(started)
            watch.look()
            watch.close()
            assert (watch.streams, watch.errors) == (2, {})
    assert capsys.readouterr().out.count("alarm    wind (base forecast): ") == 1


def test_hostile_names_are_one_printable_line(tmp_path: Path, capsys: Capture) -> None:
    names = [
        "\x1b[2Jgone\u202e\x9b",
        *(each for each in NASTY if each.strip() not in ("", "nan") and "\ud800" not in each),
    ]
    path = tmp_path / "f.csv"
    path.write_text(HEAD + "".join(rows(name, 60, shift=3.0) for name in names), encoding="utf-8")
    assert cli.main(["watch", str(path), "--once", "--quiet"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() and line.split()[0] in ("alarm", "changed") for line in lines)
    assert cli.main(["watch", str(path), "--once", "--quiet", "--json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert {json.loads(line)["series"] for line in lines} == set(names)


def test_share_of_false_names_over_all_looks_is_at_most_alpha() -> None:
    """Likelihood ratios of 40 correlated streams, 8 of them shifted, looked at after each of 200 rounds."""
    rng, alpha, shares, empty = np.random.default_rng(5), 0.1, [], []
    keys = [Key("", str(k), "", "") for k in range(40)]
    for draw in range(120):
        broken = 8 if draw % 2 else 0
        z = 0.6 * rng.standard_normal((200, 1)) + 0.8 * rng.standard_normal((200, 40))
        z[:, :broken] += 0.5
        paths = np.exp(np.cumsum(0.5 * z - 0.125, axis=0))
        named: set[Key] = set()
        for now in paths:
            before, named = named, named_now(dict(zip(keys, now, strict=True)), named, alpha)
            assert before <= named
        false = sum(int(key.series) >= broken for key in named)
        (shares if broken else empty).append(false / max(len(named), 1))
        assert len(named) - false >= 0.9 * broken
    assert np.mean(empty) <= alpha
    assert np.mean(shares) <= alpha
