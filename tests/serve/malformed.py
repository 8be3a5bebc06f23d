"""Malformed requests, drawn from a seed: bytes that are almost right, in every place that a request has."""

import copy
import json
import random
from typing import Any

CALLS: tuple[tuple[str, str, Any], ...] = (
    ("PUT", "/v1/series/wind", {"low": 0, "high": 100}),
    ("PUT", "/v1/series/lab", {"labels": ["a", "b"]}),
    ("POST", "/v1/series/wind/forecasts", {"id": "a", "forecast": {"0.1": 3, "0.5": 5, "0.9": 6}, "x": {"hour": 3}}),
    ("POST", "/v1/series/wind/forecasts", {"id": 7, "forecast": {"mean": 4, "sd": 1}, "target": "2026-03-03T14:00Z"}),
    ("POST", "/v1/series/wind/forecasts", {"id": 8, "forecast": {"members": [3, 4, 6]}, "levels": [0.1, 0.5]}),
    ("POST", "/v1/series/wind/outcomes", {"id": "old", "y": 5.5, "known": "2026-03-03"}),
    ("POST", "/v1/series/wind/revisions", {"id": "old", "y": 5.5}),
    ("POST", "/v1/series/wind/drops", {"id": "gone"}),
    ("GET", "/v1/series/wind/rounds?limit=3&before=2026-03-03", None),
    ("GET", "/v1/series?limit=10&after=1", None),
    ("POST", "/v1/batch", {"lines": [{"series": "wind", "id": 1, "forecast": {"p": 0.5}}, {"series": "wind", "y": 3}]}),
)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, -1e308, 10**30, 10**4000, 2**63, 2**64, "", "x" * 3000, "\x00", "NaN", [], {}, [[]],
    [0.5] * 3, {"mean": 1}, {"p": 2}, {"probabilities": {}}, {"members": []}, {"0.5": "x"}, {"": 0}, [None] * 50,
    "9999-12-31T23:59:59.999999-14:00", "0001-01-01T00:00+14:00", {"0.1": 5, "0.10": 6}, {"a": [1, {"b": {}}]},
)  # fmt: skip


def malformed(rng: random.Random) -> tuple[str, str, bytes | None]:
    """A request that differs from a right one in one to three places; some are still right."""
    method, path, body = rng.choice(CALLS)
    body = json.loads(json.dumps(body))
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.6 and isinstance(body, dict):
            _change(body, rng)
        elif kind < 0.75:
            path = _spoiled(path.encode(), rng).decode("latin-1")
        elif kind < 0.8:
            method = rng.choice(("GET", "PUT", "POST", "PATCH", "TRACE", "X" * 30))
        elif body is not None:
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            body = rng.choice((_spoiled(text, rng), text[: rng.randrange(len(text) + 1)], _deep(rng), text * 2))
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    return method, _printable(path), data


def _change(body: dict[str, Any], rng: random.Random) -> None:
    """Replace, remove or add a value at any depth."""
    place: Any = body
    while isinstance(place, (dict, list)) and place and rng.random() < 0.6:
        inner = rng.choice(list(place.values()) if isinstance(place, dict) else place)
        if not isinstance(inner, (dict, list)) or not inner:
            break
        place = inner
    value = copy.deepcopy(rng.choice(VALUES))
    if isinstance(place, list):
        place[rng.randrange(len(place))] = value
    elif rng.random() < 0.2 and place:
        del place[rng.choice(list(place))]
    else:
        names = [*place, "levels", "x", "issued", "horizon", "unknown"]
        place[rng.choice(names)] = value


def _spoiled(text: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(text) + 1)
    piece = rng.choice(
        (b"", b"%", b"%00", b"%ff", b"/", b"..", b'"', b"{", b"\xf0", b"\x00", b"1e999", b"-", b"?", b"&")
    )
    return text[:at] + piece + text[at + rng.randrange(3) :]


def _deep(rng: random.Random) -> bytes:
    depth = rng.choice((10, 500, 990, 5000, 100_000))
    begin, end = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    name = rng.choice((b"x", b"forecast", b"y"))
    return b'{"id": 1, "forecast": {"p": 1}, "' + name + b'": ' + begin * depth + b"1" + end * depth + b"}"


def _printable(path: str) -> str:
    """Path that an HTTP client sends: other bytes reach the parser of HTTP alone."""
    return "".join(each if "!" <= each <= "~" else f"%{ord(each):02x}" for each in path)
