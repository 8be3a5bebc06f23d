"""Faults in a stream: interrupted answers, series that cannot be read, budgets, memory."""

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

from orcast import persistence
from orcast.store import _sum
from orcast.stream import durable_session, series
from orcast.stream import session as sessions
from orcast.stream.durable_session import DurableSession
from orcast.stream.session import Session
from stream_lines import WRONG, ask, content, forecast, some_lines

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
    except error:
        return True
    finally:
        sys.settrace(before)
    return False


def known(session: Session) -> list[Any]:
    """All that a session knows, to be compared."""
    states = {name: session.encode(name) for name in session.series}
    pool = None if session.pool is None else session.pool.encode()
    return [states, repr(session.settled), session.remembered, pool]


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
    whole, kept = (DurableSession(tmp_path / name, {"max_pending": 2, "pool": pool}) for name in ("whole", "kept"))
    for id in (1, 2):
        for each in (whole, kept):
            ask(each, {"series": "full", "id": id, "forecast": forecast(id)})
    moments = 0
    for line in LINES:
        text = json.dumps(line).encode()
        before, moment = known(kept.session), 1
        expected = whole.answer(text).text
        after = known(whole.session)
        while interrupted(lambda text=text: kept.answer(text), moment, error):  # type: ignore[misc]
            found = known(kept.session)
            if found == after:
                break  # it was in the store
            assert found == before
            moment, moments = moment + step, moments + 1
        assert kept.answer(text).text == expected
        assert known(kept.session) == after
    assert moments > 200
    for each in (whole, kept):
        each.close()
    assert content(tmp_path / "whole") == content(tmp_path / "kept")


def answers(kept: Any, lines: list[bytes]) -> list[Any]:
    """Answers, or the sentences with which lines are refused."""
    found: list[Any] = []
    for line in lines:
        try:
            found.append(kept.answer(line).text)
        except (TypeError, ValueError) as reason:
            found.append(str(reason))
    return found


def of_series(name: str, lines: list[bytes]) -> list[bool]:
    return [f'"series": "{name}"'.encode() in line for line in lines]


def put(path: Path, table: str, key: Any, value: bytes) -> bytes:
    """Replace a row of a closed store, under a right checksum; returns what was there."""
    column, by = ("state", "series") if table == "states" else ("line", "number")
    with closing(sqlite3.connect(path)) as file, file:
        (was,) = file.execute(f"SELECT {column} FROM {table} WHERE {by} = ?", (key,)).fetchone()
        checksum = _sum(value) if table == "states" else _sum(key, '"late"', value)
        file.execute(f"UPDATE {table} SET {column} = ?, checksum = ? WHERE {by} = ?", (value, checksum, key))
    return bytes(was)


@pytest.mark.parametrize("damage", ["state", "state before lines", "line"])
def test_an_unreadable_series_is_named_and_the_others_go_on(damage: str, tmp_path: Path) -> None:
    lines = some_lines(4, 300)
    whole, kept = DurableSession(tmp_path / "whole"), DurableSession(tmp_path / "kept")
    for each in (whole, kept):
        answers(each, lines[:100])
        each.snapshot()
        answers(each, lines[100:120] if damage != "state" else [])
    late = [number for number, name, *_ in rows(kept, "lines") if name == '"late"']
    row = ("lines", late[-1], b'{"series": "late", "id": "none", "y": 1}') if damage == "line" else (
        "states", '"late"', b"nothing")  # fmt: skip
    for each in (whole, kept):
        each.close(save=False)
    intact = put(tmp_path / "kept", *row)
    whole, kept = DurableSession(tmp_path / "whole"), DurableSession(tmp_path / "kept")
    assert list(kept.unreadable) == (["late"] if damage != "state" else [])
    middle = lines[120:200]
    told = zip(middle, answers(whole, middle), answers(kept, middle), of_series("late", middle), strict=True)
    for line, theirs, mine, bad in told:
        if bad and line not in WRONG:
            assert re.match(r"expected a state of series 'late' that can be read, got one that cannot: ", mine)
        else:
            assert mine == theirs
    kept.close()
    put(tmp_path / "kept", *row[:2], intact)
    kept = DurableSession(tmp_path / "kept")  # once it is repaired, nothing is lost
    assert not kept.unreadable
    answers(kept, [line for line, late in zip(middle, of_series("late", middle), strict=True) if late])
    assert answers(kept, lines[200:]) == answers(whole, lines[200:])
    for each in (whole, kept):
        each.close()


def test_a_state_that_cannot_be_read_back_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = some_lines(4, 300)
    whole, kept = DurableSession(tmp_path / "whole"), DurableSession(tmp_path / "kept")
    for each in (whole, kept):
        answers(each, lines[:100])
        each.snapshot()
        answers(each, lines[100:200])
    encode = persistence.encode

    def damaged(header: Any, arrays: Any) -> bytes:
        if header["last"] is None and len(arrays["memory/total"]) == 102 and header["space"]["kind"] == "Line":
            arrays["memory/account"][0] = -1.0
        return encode(header, arrays)

    with monkeypatch.context() as patched:
        patched.setattr(persistence, "encode", damaged)
        with pytest.raises(ValueError, match="expected states that can be read back, got another of series 'late'"):
            kept.snapshot()
    assert {json.loads(line)["series"] for _, _, line, _ in rows(kept, "lines")} == {"late"}
    kept.release()
    kept = DurableSession(tmp_path / "kept")
    assert kept.recovered == len(rows(kept, "lines"))
    for each in (whole, kept):
        answers(each, lines[200:])
        each.close()
    assert content(tmp_path / "whole")[3] == content(tmp_path / "kept")[3]


def rows(kept: DurableSession, table: str) -> list[Any]:
    return kept.store._file.execute(f"SELECT * FROM {table}").fetchall()


# --- budgets


MEMBERS = {"forecast": {"members": [float(i) for i in range(600)]}}


@pytest.mark.parametrize("pending", [False, True])
def test_remembered_answers_have_a_budget_in_bytes(
    pending: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_PENDING_BYTES" if pending else "MOST_BYTES", 100_000)
    kept = DurableSession(tmp_path / "state", every=50)
    for id in range(60):
        ask(kept, {**MEMBERS, "id": id})
        if not pending:
            ask(kept, {"id": id, "y": 3.0})
        if kept.due:
            kept.snapshot()
    kept.close()
    kept = DurableSession(tmp_path / "state")
    assert not kept.answer(json.dumps({**MEMBERS, "id": 59}).encode()).changed
    session = kept.session
    if pending:
        size = sum(len(entry.attached[1]) for entry in session.series[None].pending.values())
        with pytest.raises(ValueError, match="expected a line whose answer is remembered, got 3 once more"):
            ask(kept, {**MEMBERS, "id": 3})
    else:
        size = session.remembered
        assert size == sum(over.size for over in session.settled.values())
        with pytest.raises(ValueError, match="got the id 3"):
            ask(kept, {"id": 3, "y": 3.0})
    assert 80_000 < size <= 100_000
    kept.close()


def test_a_snapshot_is_due_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_session, "MOST_BYTES", 10_000)
    kept = DurableSession(tmp_path / "state")
    for id in range(3):
        assert not kept.due
        ask(kept, {**MEMBERS, "id": id})
    assert kept.due
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
    monkeypatch.setattr(series, "MOST_GAMES", 1)
    lines = some_lines(6, 300)
    together = answers(Session(), lines)
    apart: dict[Any, Session] = {}
    for line, mine in zip(lines, together, strict=True):
        try:
            name = json.loads(line).get("series")
        except (AttributeError, ValueError):
            continue
        assert answers(apart.setdefault(name, Session()), [line]) == [mine]
