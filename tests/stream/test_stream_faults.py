"""Faults in a stream: interrupted answers, series that cannot be read, memory."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from orcast.store import states
from orcast.stream import session as sessions
from orcast.stream.session import Session
from stream_lines import WRONG, ask, content, forecast, known, some_lines

PACKAGE = str(Path(sessions.__file__).parents[1])


def interrupted(act: Callable[[], Any], moment: int, error: type[BaseException]) -> bool:
    """Call a function and raise an error at the n-th line of the package; return whether it came so far."""
    left = moment

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE) or frame.f_code.co_name == "quietly":
            return None  # if its end is interrupted, warnings stay off in this thread
        if event == "line":
            left -= 1
            if left == 0:
                raise error("interrupted")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except (error, ValueError) as reason:
        assert "interrupted" in str(reason)  # noqa: PT017 (a state for which there is no memory cannot be read)
        return True
    finally:
        sys.settrace(before)
    return False


LINES = [
    {"series": "new", "id": 1, "forecast": forecast(0)},
    {"series": "new", "id": 1, "y": 4.0},
    {"series": "bounded", "low": 0, "high": 9, "forecast": forecast(0)},
    {"series": "full", "id": 3, "forecast": forecast(0)},
    {"series": "full", "id": 2, "drop": True},
    {"forecast": {"members": [1, 2, 4]}},
    {"y": 2.0},
]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("pool", [False, True])
def test_an_interrupted_answer_is_whole_or_nothing(pool: bool, error: type[BaseException], tmp_path: Path) -> None:
    """Wherever it is interrupted, the line is answered when it comes again, as if it had come once."""
    step = 7 if error is MemoryError else 11  # a part of the moments each
    whole, kept = (Session(tmp_path / name, max_pending=2, pool=pool) for name in ("whole", "kept"))
    for id in (1, 2):
        for each in (whole, kept):
            ask(each, {"series": "full", "id": id, "forecast": forecast(id)})
    moments = 0
    for line in LINES:
        text = json.dumps(line).encode()
        before, moment = known(kept), 1
        expected = whole.answer(text)
        after = known(whole)
        while interrupted(lambda text=text: kept.answer(text), moment, error):  # type: ignore[misc]
            found = known(kept)
            if found == after:
                break  # it was in the store
            assert found == before
            moment, moments = moment + step, moments + 1
        assert kept.answer(text) == expected
        assert known(kept) == after
    assert moments > 200
    for each in (whole, kept):
        each.close()
    assert content(tmp_path / "whole") == content(tmp_path / "kept")


def answers(kept: Any, lines: list[bytes]) -> list[Any]:
    """Answers, or the sentences with which lines are refused."""
    found: list[Any] = []
    for line in lines:
        try:
            found.append(kept.answer(line))
        except (TypeError, ValueError) as reason:
            found.append(str(reason))
    return found


def of_series(name: str, lines: list[bytes]) -> list[bool]:
    return [f'"series": "{name}"'.encode() in line for line in lines]


def put(path: Path, table: str, key: Any, value: bytes | None) -> Any:
    """Replace the bytes in a row of a closed store, or delete the row; returns what was there."""
    column, by = ("record", "id = ?")
    if table == "states":
        column, by = "state", "series = (SELECT number FROM series WHERE name = ?)"
    with closing(sqlite3.connect(path)) as file, file:
        (was,) = file.execute(f"SELECT {column} FROM {table} WHERE {by}", (key,)).fetchone()
        if value is None:
            file.execute(f"DELETE FROM {table} WHERE {by}", (key,))
        else:
            file.execute(f"UPDATE {table} SET {column} = ? WHERE {by}", (value, key))
    return was


def changed(data: bytes) -> bytes:
    """A state or round in which one number is another."""
    return data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]


def test_an_unreadable_series_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    lines = some_lines(4, 300)
    whole, kept = Session(tmp_path / "whole"), Session(tmp_path / "kept")
    for each in (whole, kept):
        answers(each, lines[:120])
    kept.close()
    intact = put(tmp_path / "kept", "states", '"late"', b"nothing")
    kept = Session(tmp_path / "kept")
    middle = lines[120:200]
    told = zip(middle, answers(whole, middle), answers(kept, middle), of_series("late", middle), strict=True)
    for line, theirs, mine, bad in told:
        if bad and line not in WRONG:
            assert re.match(r"expected a state of series 'late' that can be read, got one that cannot: ", mine)
        else:
            assert mine == theirs
    kept.close()
    put(tmp_path / "kept", "states", '"late"', intact)
    kept = Session(tmp_path / "kept")  # once it is repaired, nothing is lost
    answers(kept, [line for line, late in zip(middle, of_series("late", middle), strict=True) if late])
    assert answers(kept, lines[200:]) == answers(whole, lines[200:])
    for each in (whole, kept):
        each.close()


@pytest.mark.parametrize("table", ["states", "rounds"])
@pytest.mark.parametrize("damage", ["changed", "missing", "another's"])
def test_damage_is_found_when_its_series_is_used(table: str, damage: str, tmp_path: Path) -> None:
    kept = Session(tmp_path / "state")
    for name in ("a", "b"):
        ask(kept, {"series": name, "id": f"{name} 1", "forecast": forecast(0)})
        ask(kept, {"series": name, "id": f"{name} 0", "forecast": forecast(0)})
        ask(kept, {"series": name, "id": f"{name} 0", "y": 4.0})  # an outcome writes the state
    kept.close()
    keys = ['"a"', '"b"'] if table == "states" else ['"a 1"', '"b 1"']
    rows = [put(tmp_path / "state", table, key, b"?") for key in keys]
    put(tmp_path / "state", table, keys[1], rows[1])
    wrong = {"changed": changed(rows[0]), "missing": None, "another's": rows[1]}[damage]
    put(tmp_path / "state", table, keys[0], wrong)
    kept = Session(tmp_path / "state")
    with pytest.raises(ValueError, match=r"expected a (state of series 'a' that can be read|forecast first), got"):
        ask(kept, {"series": "a", "id": "a 1", "y": 4.0})
    assert ask(kept, {"series": "b", "id": "b 1", "y": 4.0})["guarantee"]["rounds"] == 2
    kept.close()


MEMORY = """
import json, sys
from pathlib import Path
from orcast.stream.session import Session

def resident():
    return 1024 * int(Path("/proc/self/statm").read_text().split()[1]) * 4

def play(session, series, rounds):
    for t in range(rounds):
        for kind in ("forecast", "y"):
            for name in range(series):
                value = {"0.1": 1 + name % 7, "0.5": 3 + t % 5, "0.9": 9} if kind == "forecast" else (name * t) % 7
                session.answer(json.dumps({"series": name, "id": t, kind: value}).encode())

play(Session(), 50, 3)
before, session, count = resident(), Session(), int(sys.argv[1])
play(session, count, 20)
print((resident() - before) / count)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell")
def test_a_series_takes_30_kilobytes() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY, "5000"], capture_output=True, text=True, check=True)
    assert float(done.stdout) <= 30_000


def test_series_that_share_a_recalibrator_are_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one recalibrator at a time, each line loads its series again: the answers are those of one session each."""
    lines = some_lines(6, 300)
    session = Session()
    for cache in ("_cache", "shared"):
        monkeypatch.setattr(session.store, cache, states.Cache(1))
    together = answers(session, lines)
    apart: dict[Any, Session] = {}
    for line, mine in zip(lines, together, strict=True):
        try:
            name = json.loads(line).get("series")
        except (AttributeError, ValueError):
            continue
        assert answers(apart.setdefault(name, Session()), [line]) == [mine]
