"""`orcast stream --state`: what it leaves when it is killed, a snapshot and lines in a journal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..players import Json, Stream
from .base import Case
from .frames import wave
from .rounds import event, match, rounded


def cases() -> Iterator[Case]:
    """All of them."""
    yield _stream("stream_mixed", _mixed(), 30, 34)
    bounds = ["--low", "0", "--high", "100", "--outside", "clip"]
    options = [*bounds, "--levels", "0.1,0.5,0.9", "--memory", "50", "--max-pending", "3", "--remember", "8"]
    yield _stream("stream_options", _late("a", CROWDED), 20, 28, *options)
    yield _stream("stream_by", _late(7, hours=True), 20, 33, "--by", "hour=0..2")
    yield _stream("stream_labels_by", _labelled(), 16, 23, "--labels", "home,draw,away", "--by", "hour=0..1")
    yield _stream("stream_binary_by", _events(), 16, 23, "--binary", "--by", "hour=a,b")


def _stream(name: str, lines: list[Json], snapshot: int, killed: int, *options: str) -> Case:
    """A stream that takes a snapshot after some lines, and is killed after some more, which its journal has."""
    # what was answered is answered again as it was, whether the snapshot has it or the journal
    unnamed = [line for line in lines[:killed] if "id" not in line][-1:]
    again = [line for line in lines[snapshot - 8 : killed] if "id" in line or ("y" in line and line in unnamed)]
    before, after = (
        [{"line": line} for line in some] for some in (lines[:killed], again + lines[killed : killed + 36])
    )
    return Case(name, "stream", lambda path: Stream(path, "--snapshot", str(snapshot), *options), before, after)


def _forecast_line(rng: np.random.Generator, t: int) -> Json:
    mean, sd = wave(t)
    forms = [
        {"mean": mean, "sd": sd},
        {"0.1": rounded(mean - sd), "0.5": mean, "0.9": rounded(mean + 1.2 * sd)},
        {"members": [rounded(value) for value in rng.normal(mean, sd, 3)]},
    ]
    return forms[t % 3]


# What happens to rounds, by their places in ten: p is a forecast, y its outcome, d says that there is none; places
# below 0 are those of the ten before.
LATE = "p0 p1 y1 p2 y0 y-5 p3 d2 p4 y4 p5 y3"
# The same, and four rounds at once of which three may be pending.
CROWDED = "p0 p1 y1 p2 y0 p3 d2 p4 y4 p5 y3 p6 p7 p8 p9 y7 y9 y8"


def _late(series: Json, moves: str = LATE, hours: bool = False) -> list[Json]:
    """Named rounds whose outcomes come late, out of order, or never."""
    rng = np.random.default_rng(11)
    lines: list[Json] = []
    for tens, move in ((tens, move) for tens in range(0, 50, 10) for move in moves.split()):
        t = tens + int(move[1:])
        line: Json = {"series": series, "id": t}
        if move[0] == "p":
            x = {"x": {"hour": t % 3}} if hours else {}
            lines.append({**line, "forecast": _forecast_line(rng, t), **x})
        elif t >= 0:
            lines.append(line | ({"drop": True} if move[0] == "d" else {"y": rounded(rng.normal(54.0, 25.0))}))
    return lines


def _mixed() -> list[Json]:
    """Series of every kind, with and without names of their own and of their rounds."""
    rng = np.random.default_rng(12)
    lines: list[Json] = []
    for t in range(14):
        settings = {"low": 0, "high": 100} if t == 0 else {}
        lines += [{"series": "bounded", "id": f"round {t}", **settings, "forecast": _forecast_line(rng, t)}]
        if t > 0:
            lines += [{"series": "bounded", "id": f"round {t - 1}", "y": rounded(min(rng.normal(54.0, 12.0), 100.0))}]
        lines += [{"forecast": _forecast_line(rng, t)}, {"y": rounded(rng.normal(54.0, 12.0))}]
        chained = {} if t == 0 else {"y": int(rng.random() < 0.6), "of": t - 1}
        lines += [{"series": 7, "id": t, "forecast": {"p": rounded(rng.uniform(0.1, 0.9), 2)}, **chained}]
        each = match(rng, 0)
        lines += [{"series": "match", "id": 2.5 + t, "forecast": {"probabilities": each.forecast}}]
        if t % 3:
            lines += [{"series": "match", "id": 2.5 + t, "y": each.y}]
    return lines


def _labelled() -> list[Json]:
    rng = np.random.default_rng(13)
    lines: list[Json] = []
    for t in range(22):
        each = match(rng, 0)
        lines.append({"series": "cup", "id": t, "x": {"hour": t % 2}, "forecast": {"probabilities": each.forecast}})
        if t % 4:
            lines.append({"series": "cup", "id": t, "y": each.y})
    return lines


def _events() -> list[Json]:
    rng = np.random.default_rng(14)
    lines: list[Json] = []
    for t in range(22):
        each = event(rng, t)
        lines.append({"series": "rain", "id": t, "x": {"hour": "ab"[t % 2]}, "forecast": {"p": each.forecast}})
        if t % 4:
            lines.append({"series": "rain", "id": t, "y": bool(each.y)})
    return lines
