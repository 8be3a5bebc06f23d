"""The state of `orcast stream`: nothing is lost or counted twice, at whatever moment the process dies."""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import orcast as oc
from orcast.limits import LIMITS
from orcast.store.sqlite import SQLite
from orcast.stream import serve
from orcast.stream.session import Session
from stream_lines import ask, content, forecast, some_lines


def run_rounds(kept: Session, said: list[bytes]) -> list[bytes]:
    """Answers, or the sentences with which lines are refused."""
    answers = []
    for line in said:
        try:
            answers.append(kept.answer(line))
        except (TypeError, ValueError) as reason:
            answers.append(str(reason).encode())
    return answers


@pytest.mark.parametrize("pool", [False, True])
def test_a_state_goes_on_bit_for_bit(tmp_path: Path, pool: bool) -> None:
    said = some_lines(5, 240)
    wanted: dict[str, Any] = {"levels": (0.05, 0.95), "pool": pool}
    whole = Session(tmp_path / "whole", **wanted)
    expected = run_rounds(whole, said)
    whole.close()
    answers: list[bytes] = []
    for start in range(0, 240, 40):
        part = Session(tmp_path / "parts", **wanted)
        answers += run_rounds(part, said[start : start + 40])
        part.close()
    assert answers == expected
    assert content(tmp_path / "whole") == content(tmp_path / "parts")
    other = Session(tmp_path / "other", **{**wanted, "pool": not pool})
    assert run_rounds(other, said) != expected
    other.close()


class Killed(BaseException):
    """The process is gone."""


class Death:
    """Lets the process die at the n-th of all the moments around transactions."""

    def __init__(self, moment: int) -> None:
        self.left = moment
        self.what = ""

    def here(self, what: str) -> None:
        self.left -= 1
        if self.left < 0:
            self.what = what
            raise Killed

    def around(self, act: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def dying(store: SQLite) -> Iterator[None]:
            self.here("before")
            with act(store):
                yield
                self.here("within")
            self.here("after")

        return dying


@pytest.mark.parametrize("pool", [False, True])
def test_a_death_at_any_moment_loses_nothing_and_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: bool
) -> None:
    said = [line for line in some_lines(8, 60) if b"nonsense" not in line][:11]
    whole = Session(tmp_path / "whole", pool=pool)
    expected = run_rounds(whole, said)
    whole.close()
    result = content(tmp_path / "whole")
    transaction = SQLite.transaction
    deaths = set()
    for moment in range(10_000):
        folder = tmp_path / str(moment)
        folder.mkdir()
        death = Death(moment)
        monkeypatch.setattr(SQLite, "transaction", death.around(transaction))
        answers: list[bytes] = []
        kept = None
        try:
            kept = Session(folder / "state", pool=pool)
            for line in said:
                answers += run_rounds(kept, [line])
        except Killed:
            pass
        if kept is not None:
            kept.close()  # as the system does
        monkeypatch.undo()
        deaths.add(death.what)
        kept = Session(folder / "state", pool=pool)
        # the client does not know whether its last line was taken
        answers += run_rounds(kept, said[len(answers) :])
        kept.close()
        assert answers == expected, (moment, death.what)
        assert content(folder / "state") == result, (moment, death.what)
        assert [path.name for path in folder.iterdir()] == ["state"]
        shutil.rmtree(folder)
        if not death.what:
            break
    assert deaths == {"", "before", "within", "after"}


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("something else" * 100)
    with pytest.raises(ValueError, match="expected an intact store"):
        Session(tmp_path / "state")


def test_a_full_disk_ends_it_before_an_answer(tmp_path: Path) -> None:
    said = [line for line in some_lines(9, 60) if b"late" in line][:6]
    kept = Session(tmp_path / "state")
    run_rounds(kept, said[:4])
    kept.store.database._file.execute("PRAGMA max_page_count = 1")
    long = {"id": "long", "forecast": {"p": 0.5}, "x": {"note": "long " * 10_000}}
    for _ in range(2):  # nothing has changed: the line that is sent again is no repeat
        with pytest.raises(OSError, match=r"full: .*state"):
            ask(kept, long)
    kept.store.database._file.execute("PRAGMA max_page_count = 100000")
    kept.close()
    kept = Session(tmp_path / "state")
    assert ask(kept, long)["id"] == long["id"]
    kept.close()


@pytest.mark.parametrize("sync", [False, True])
def test_sync_waits_for_the_disk(tmp_path: Path, sync: bool) -> None:
    kept = Session(tmp_path / "state", sync=sync)
    assert kept.store.database._file.execute("PRAGMA synchronous").fetchone() == (2 if sync else 1,)
    kept.close()


@pytest.mark.parametrize("pool", [False, True])
def test_two_sessions_that_take_turns_answer_as_one(tmp_path: Path, pool: bool) -> None:
    lines = some_lines(3, 160)
    expected = run_rounds(Session(pool=pool), lines)
    (tmp_path / "link").symlink_to(tmp_path / "state")
    sessions = [Session(tmp_path / name, pool=pool) for name in ("state", "link")]
    assert [run_rounds(sessions[t % 3 % 2], [line])[0] for t, line in enumerate(lines)] == expected
    for each in sessions:
        each.close()
    assert (tmp_path / "link").is_symlink()


def test_series_keeps_the_options_with_which_it_began(tmp_path: Path) -> None:
    with closing(Session(tmp_path / "state", low=0.0, high=10.0)) as kept:
        ask(kept, {"series": "a", "id": 1, "forecast": forecast(0)})
    with closing(Session(tmp_path / "state", high=12.0, levels=(0.25, 0.75))) as kept:
        assert kept.store.series("a").space == oc.Interval(0, 10)
        assert list(ask(kept, {"series": "a", "id": 1, "forecast": forecast(0)})["forecast"]) == ["0.25", "0.75"]
        assert ask(kept, {"series": "b", "low": 3, "forecast": forecast(0)})["space"] == {"low": 3, "high": 12}


def test_other_files_are_refused(tmp_path: Path) -> None:
    oc.Recalibrator(oc.Interval(0, 1)).save(tmp_path / "game")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "folder").mkdir()
    for name in ("game", "text", "folder", "no/where"):
        with pytest.raises((ValueError, OSError), match="expected"):
            Session(tmp_path / name)


# --- pipes ---


def piped(said: list[bytes], *, at_a_time: int) -> list[dict[str, Any]]:
    """Answers to bytes that come in pieces."""
    source, sink = os.pipe(), os.pipe()
    pieces = b"".join(said)

    def feed() -> None:
        for start in range(0, len(pieces), at_a_time):
            os.write(source[1], pieces[start : start + at_a_time])
        os.close(source[1])

    thread = threading.Thread(target=feed)
    thread.start()
    assert serve.serve(Session(), source=source[0], sink=sink[1]) == 0
    thread.join()
    found = os.read(sink[0], 2**16)
    for end in (source[0], *sink):
        os.close(end)
    return [json.loads(line) for line in found.splitlines()]


@pytest.mark.parametrize("at_a_time", [1, 7, 5000])
def test_lines_are_told_apart_however_they_come(at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "line_bytes", 200)
    said = [
        b'{"id": 1, "forecast": {"p": 0.5}}\r\n',
        b"\n  \n",
        b"x" * 500 + b"\n",
        b'{"id": 1, "y": 1}\n',
        b'{"id": 2, "forecast": {"mean": 3}}\n',
        b'{"id": "' + b"y" * 300 + b'"}\n',
        b'  {"id": 3, "forecast": {"p": 0.5}}',
    ]
    answers = piped(said, at_a_time=at_a_time)
    assert [answer.get("line", answer.get("id")) for answer in answers] == [1, 4, 1, 6, 7, 3]
    assert answers[1]["error"] == "expected a line of at most 200 bytes, got a longer one"
