"""A session with `orcast stream`: lines of every kind, of several series, some of them wrong."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from orcast.stream.session import Session

Maker = Iterator[dict[str, Any]]
# Columns with times, and what depends on them.
CLOCK = ("issued", "target", "known", "checksum")
WRONG = [b"nonsense", b'{"series": "late", "forecast": {"0.5": 3}}', b'{"series": "rain", "y": "three"}', b"[1]"]


def some_lines(seed: int, count: int) -> list[bytes]:
    """Lines in an order that a client could send them."""
    rng = random.Random(seed)
    makers = [_late(rng, "late"), _turns(rng, None), _chain(rng, "chain"), _matches(rng, 7), _events(rng, "rain")]
    lines: list[bytes] = []
    while len(lines) < count:
        lines.append(json.dumps(next(rng.choice(makers))).encode())
        if rng.random() < 0.03:
            lines.append(rng.choice(WRONG))
    return lines


def _late(rng: random.Random, name: str | int | None) -> Maker:
    """Named rounds whose outcomes come late, out of order, or never."""
    waiting, number = [], 0
    while True:
        if waiting and rng.random() < 0.5:
            id = waiting.pop(rng.randrange(len(waiting)))
            if rng.random() < 0.1:
                yield {"series": name, "id": id, "drop": True}
            else:
                yield {"series": name, "id": id, "y": rng.gauss(50, 20)}
        else:
            number += 1
            waiting.append(f"round {number}")
            q = sorted(rng.gauss(50, 15) for _ in range(3))
            yield {"series": name, "id": waiting[-1], "forecast": {"0.1": q[0], "0.50": q[1], "0.9": q[2]}}


def _turns(rng: random.Random, name: str | int | None) -> Maker:
    """Rounds without a name, in turn."""
    assert name is None
    while True:
        yield {"forecast": {"members": [rng.gauss(0, 1) for _ in range(4)]}}
        yield {"y": rng.gauss(0.5, 1)}


def _chain(rng: random.Random, name: str | int | None) -> Maker:
    """Rounds with bounds in the first line, each settled before the next."""
    number = 0
    yield {"series": name, "id": number, "low": 0, "high": 10, "forecast": {"mean": 5, "sd": 1}}
    while True:
        yield {"series": name, "id": number, "y": rng.uniform(0, 10)}
        number += 1
        yield {"series": name, "id": number, "forecast": {"mean": rng.uniform(3, 7), "sd": 1}}


def _matches(rng: random.Random, name: str | int | None) -> Maker:
    number = 0
    while True:
        number += 1
        a, b = sorted((rng.random(), rng.random()))
        forecast = {"home": a, "draw": b - a, "away": 1 - b}
        yield {"series": name, "id": number, "forecast": {"probabilities": forecast}}
        yield {"series": name, "id": number, "y": rng.choice(list(forecast))}


def _events(rng: random.Random, name: str | int | None) -> Maker:
    number = 0
    while True:
        number += 1
        yield {"series": name, "id": number, "forecast": {"p": rng.random()}}
        yield {"series": name, "id": number, "y": rng.random() < 0.6}


def content(path: Path) -> list[Any]:
    """All rows of the store of a stream that is closed."""
    assert not Path(f"{path}-wal").exists()
    with closing(sqlite3.connect(path)) as file:
        return _rows(file)


def known(session: Session) -> list[Any]:
    """All that a session knows, to be compared."""
    return _rows(session.store.database._file)  # type: ignore[attr-defined]


def _rows(file: sqlite3.Connection) -> list[Any]:
    found = []
    for table in ("about", "series", "rounds", "snapshots"):
        rows = file.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
        names = [each[0] for each in rows.description]
        kept = [i for i, name in enumerate(names) if name not in CLOCK]
        found.append([[row[i] for i in kept] for row in rows])
    return found


def ask(session: Session, line: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(session.answer(json.dumps(line).encode()))
    return answer


def forecast(t: int) -> dict[str, float]:
    return {"0.1": 3.0 + t % 3, "0.5": 5.0 + t % 4, "0.9": 8.0 + t % 5}
