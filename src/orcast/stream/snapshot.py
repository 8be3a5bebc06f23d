"""A session in a file: the states of thousands of games, packed, and the answers about their rounds."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from orcast import persistence
from orcast.packed import pack, unpack
from orcast.persistence import inside
from orcast.pool import Pool
from orcast.rounds import MOST_COUNTED
from orcast.spaces import Labels, Space, space_from_plain
from orcast.spaces.base import single, whole
from orcast.stream.session import IssuedAnswer, SeriesSession, Session, Settled, StreamSettings
from orcast.validation import short

CLASS = "Stream"
# Arrays of the pool, if there is one.
POOL = "pool/"
# What games of one kind share; the rest of a state's header is each game's own.
OWN = ("crossing_reported", "rounds")
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], session: Session, lines: int) -> None:
    """Write a session that has taken so many lines; a reader sees the old file or the new one, never a part."""
    games, arrays = pack((series.state() for series in session.series.values()), OWN)
    header = {
        "class": CLASS,
        "lines": lines,
        "options": asdict(session.options),
        "games": games,
        "series": [[name, _plain(series.last)] for name, series in session.series.items()],
        "settled": [[*key, *_plain(over)] for key, over in session.settled.items()],
    }
    if session.pool is not None:
        arrays |= {POOL + name: array for name, array in session.pool.arrays().items()}
    persistence.write(path, header, arrays)


def read(path: str | os.PathLike[str]) -> tuple[Session, int]:
    """The session in a file and how many lines it had taken; refuses what it cannot read, in one sentence."""
    with persistence.reading(path, CLASS) as (header, arrays):
        options = dict(header["options"])
        for key in ("labels", "levels"):
            options[key] = tuple(options[key])
        if options["by"] is not None:
            options["by"] = (options["by"][0], tuple(options["by"][1]))
        settings = StreamSettings(**options)
        pool = Pool.from_arrays(inside(arrays, POOL)) if settings.pool else None
        session = Session(settings, pool=pool)
        seen: set[int] = set()
        states, kinds = unpack(header["games"], arrays, OWN), header["games"]["kind"]
        for (name, last), state, kind in zip(header["series"], states, kinds, strict=True):
            series = SeriesSession(space_from_plain(state[0]["space"]), None, state, pool)
            series.last = None if last is None else _settled(*last)
            if not (name is None or isinstance(name, (str, int))) or isinstance(name, bool) or name in session.series:
                raise ValueError(f"a series has the name {short(name)}")
            session.series[name] = series
            for *_, attached in state[0]["rounds"]["pending"]:
                _check_texts(*attached)
                IssuedAnswer(*attached)
            if kind not in seen:
                seen.add(kind)
                _ = series.game  # a state that this version cannot use is found now, not at some later line
        for name, id, *over in header["settled"]:
            session.settled[name, id] = _settled(*over)
        for name, each in [*((name, series.last) for name, series in session.series.items()),
                           *((name, over) for (name, _), over in session.settled.items())]:  # fmt: skip
            if each is not None and each.y is not None:
                _check_settled(each.y, session.series[name].space)
        return session, whole(header["lines"], "lines", 0, MOST_COUNTED)


def tidy(path: Path) -> None:
    """Remove the parts of snapshots that a killed process left beside the file."""
    for beside in path.absolute().parent.glob(f".{glob.escape(path.name)}.*"):
        if re.fullmatch(r"[a-z0-9_]{8}", beside.name[len(path.name) + 2 :]) and beside.is_file():
            with open(beside, "rb") as file:
                begins = file.read(len(persistence.MAGIC))
            if persistence.MAGIC.startswith(begins):
                beside.unlink()


def _plain(over: Settled | None) -> Any:
    return None if over is None else [over.digest, over.answer, over.y, over.closing.decode()]


def _check_texts(*texts: Any) -> None:
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"answers are text, not {short(texts)}")
    if not all(text.startswith("{") and text.endswith("}\n") for text in texts[1:]):
        raise ValueError(f"answers are lines, not {short(texts[1:])}")


def _check_settled(y: Any, space: Space) -> None:
    """Refuse what cannot have been the outcome of a round: a number, or the place of a label."""
    if isinstance(space, Labels):
        whole(y, "labels", 0, space.cells - 1)
    else:
        single(y)


def _settled(digest: str, answer: str, y: Any, closing: str) -> Settled:
    _check_texts(digest, answer, closing)
    return Settled(digest, answer, y, closing.encode())
