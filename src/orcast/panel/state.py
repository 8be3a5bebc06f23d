"""The state of a panel: every stream's game, the rounds that wait, and the last rows, in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.panel.experts import ForecastShape
from orcast.panel.ordering import Calendar
from orcast.panel.stream import ANSWERS, LOST, OK, OUTSIDE, PENDING, SERIAL, STATE, WAIT_SERIAL, WAIT_SIZE, Stream, Y
from orcast.persistence import files as storage
from orcast.serialise import features_from_json, features_to_json, id_from_plain, plain_id
from orcast.spaces.base import whole
from orcast.validation import short

OWNER = "PanelState"
# What a row may be remembered as.
KEPT = (OK, PENDING, OUTSIDE, LOST)
# What stands for bounds that were given for each series.
BY_SERIES = {"by": "series"}


@dataclass
class Book:
    """What is known of one model: its shape, and its streams by series and horizon."""

    shape: ForecastShape
    streams: dict[tuple[Hashable, Hashable], Stream] = field(default_factory=dict)


@dataclass
class PanelTerms:
    """What a panel was begun with; what is left out later is taken from here.

    ``low`` and ``high`` are as they were given, or `BY_SERIES`; ``kind`` is that of the times, ``at_once`` whether each
    outcome is known before the next forecast is made.
    """

    kind: str
    at_once: bool
    ranked: bool  # whether the horizon is the place of a row among those of its cutoff
    payoff: dict[str, Any] | None
    levels: list[float] | None
    low: Any
    high: Any
    by_row: bool


class PanelState:
    """Where a panel stands, so that the next frame goes on from there: give it, or the path of its file, as ``state=``.

    For each model, series and horizon it holds the game, the rows that wait for their outcome, and the last
    ``remember`` rows with what was said of them: a frame that repeats these gets the same answers again.

    >>> import orcast as oc, pandas as pd
    >>> frame = pd.DataFrame({"ds": range(4), "y": [1.0, 3.0, 2.0, None], "mean": [2.0] * 4, "sd": [1.0] * 4})
    >>> state = PanelState()
    >>> first = oc.recalibrate(frame, state=state)
    >>> state.pending
    1
    >>> again = oc.recalibrate(frame.assign(y=[1.0, 3.0, 2.0, 2.5]), state=state)
    >>> again["orcast_mean"].equals(first["orcast_mean"]), again["orcast_status"].tolist()
    (True, ['seen', 'seen', 'seen', 'ok'])
    """

    def __init__(self, *, remember: int = 1000) -> None:
        self.remember = whole(remember, "rows to remember of each stream", 1, 10**9)
        self._terms: PanelTerms | None = None
        self._models: dict[str, Book] = {}
        self._ends: dict[Hashable, tuple[float, float]] = {}  # bounds of each series
        self._calendar: Calendar = {}  # cutoffs and times of each series, where horizons are places among them
        self._counted: dict[Hashable, int] = {}  # rows of each series, where there are no times

    @property
    def models(self) -> tuple[str, ...]:
        """The models it has seen; "" is one without a name."""
        return tuple(self._models)

    @property
    def pending(self) -> int:
        """Rows that wait for their outcome, of all models together."""
        return sum(_waiting(stream) for book in self._models.values() for stream in book.streams.values())

    def __len__(self) -> int:
        """How many streams there are: a game for each model, series and horizon."""
        return sum(len(book.streams) for book in self._models.values())

    def __repr__(self) -> str:
        series = {key for book in self._models.values() for key, _ in book.streams}
        counts = {"model": len(self._models), "series": len(series), "game": len(self), "pending row": self.pending}
        said = (f"{n} {what}{'' if n == 1 or what == 'series' else 's'}" for what, n in counts.items())
        return f"PanelState({', '.join(said)})"

    # --- files
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        arrays: dict[str, NDArray[Any]] = {}
        models = []
        for number, (name, book) in enumerate(self._models.items()):
            order = sorted(book.streams, key=_text)
            streams = [book.streams[key] for key in order]
            for part in ("game", "pages", "when", "said"):
                _stack(arrays, f"{number}/{part}", [getattr(stream, part) for stream in streams])
            arrays[f"{number}/rows"] = np.array([stream.rows for stream in streams], dtype=np.int64)
            rounds = list(dict.fromkeys((stream.sizes, stream.fields) for stream in streams))
            features = {
                str(i): [features_to_json(each) for each in stream.features]
                for i, stream in enumerate(streams)
                if any(each is not None for each in stream.features)
            }
            models.append(
                {
                    "name": name,
                    "shape": asdict(book.shape),
                    "streams": [[plain_id(key), plain_id(horizon)] for key, horizon in order],
                    "rounds": rounds,
                    "round": [rounds.index((stream.sizes, stream.fields)) for stream in streams],
                    "features": features,
                }
            )
        _stack(arrays, "calendar", list(self._calendar.values()))
        arrays["ends"] = np.array(list(self._ends.values()), dtype=np.float64).ravel()
        header = {
            "class": OWNER,
            "remember": self.remember,
            "terms": None if self._terms is None else asdict(self._terms),
            "models": models,
            "series": [plain_id(key) for key in self._ends],
            "calendar": [plain_id(key) for key in self._calendar],
            "counted": [[plain_id(key), count] for key, count in self._counted.items()],
        }
        storage.write(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PanelState:
        """Read it from a file; refuses what it cannot read, in one sentence."""
        header, arrays = storage.read(path)
        if header.get("class") != OWNER:
            raise ValueError(f"expected the state of a panel, got that of a {header.get('class')}: {path}")
        try:
            self = cls(remember=header["remember"])
            self._terms = None if header["terms"] is None else PanelTerms(**header["terms"])
            ends = arrays["ends"].reshape(-1, 2).tolist()
            self._ends = {id_from_plain(key): (a, b) for key, (a, b) in zip(header["series"], ends, strict=True)}
            for number, data in enumerate(header["models"]):
                self._models[data["name"]] = _book(number, data, arrays)
            dates = _unstack(arrays, "calendar", len(header["calendar"]))
            self._calendar = {id_from_plain(key): each for key, each in zip(header["calendar"], dates, strict=True)}
            self._counted = {id_from_plain(key): int(count) for key, count in header["counted"]}
        except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as reason:
            raise ValueError(
                f"expected a state that this version can use, got one that it cannot ({reason}): {path}"
            ) from reason
        return self


def open_state(
    state: PanelState | str | os.PathLike[str] | None,
) -> tuple[PanelState | None, Path | None, tuple[int, int, int] | None]:
    """The state that is given, the file it goes to, and the stamp that this had."""
    if state is None or isinstance(state, PanelState):
        return state, None, None
    if not isinstance(state, (str, os.PathLike)):
        raise TypeError(f"expected a path or a PanelState as state, got {short(state)}")
    path = Path(state)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"expected a folder that exists for the state, got {path.parent}")
    was = stamp(path)
    return (PanelState() if was is None else PanelState.load(path)), path, was


def stamp(path: str | os.PathLike[str]) -> tuple[int, int, int] | None:
    """What tells whether a file is still the one that was read; None if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def check_unchanged(path: str | os.PathLike[str], read: tuple[int, int, int] | None) -> None:
    """Refuse to write over what another process has written since."""
    if stamp(path) != read:
        raise ValueError(f"expected the state as it was when it was read, got one that was written since: {path}")


def _waiting(stream: Stream) -> int:
    """Rows of a stream whose outcome is not known."""
    if not len(stream.pages):
        return 0
    waits = np.isin(stream.said[:, SERIAL], stream.pages[:, WAIT_SERIAL])
    return int(np.isnan(stream.said[waits, Y]).sum())


def _text(key: Any) -> str:
    return json.dumps(plain_id(key))


def _stack(arrays: dict[str, NDArray[Any]], name: str, parts: Sequence[NDArray[Any]]) -> None:
    """Many arrays as one, and their shapes."""
    # flat: a file with nothing else in it has no room for sides
    arrays[f"{name}/shapes"] = np.array(
        [side for part in parts for side in (*part.shape, *([1] * (2 - part.ndim)))], dtype=np.int64
    )
    arrays[name] = np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0)


def _unstack(arrays: dict[str, NDArray[Any]], name: str, count: int) -> list[NDArray[Any]]:
    shapes, whole_ = arrays[f"{name}/shapes"].reshape(-1, 2), arrays[name]
    if len(shapes) != count or (shapes < 0).any() or int(shapes.prod(axis=1).sum()) != whole_.size:
        raise ValueError(f"{name} has other shapes")
    cuts = [0, *np.cumsum(shapes.prod(axis=1)).tolist()]
    return [whole_[a:b].reshape(side).copy() for (a, b), side in zip(pairwise(cuts), shapes.tolist(), strict=True)]


def _book(number: int, data: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Book:
    shape = data["shape"]
    book = Book(
        ForecastShape(
            str(shape["kind"]),
            int(shape["columns"]),
            tuple(map(float, shape["levels"])),
            tuple(map(str, shape["labels"])),
            tuple((str(what), level, place) for what, level, place in shape["outputs"]),
        )
    )
    keys = [(id_from_plain(key), id_from_plain(horizon)) for key, horizon in data["streams"]]
    parts = {part: _unstack(arrays, f"{number}/{part}", len(keys)) for part in ("game", "pages", "when", "said")}
    rows = arrays[f"{number}/rows"].tolist()
    width = ANSWERS + len(book.shape.outputs)
    rounds = [
        (None if sizes is None else tuple(sizes), tuple((name, kind, tuple(shape)) for name, kind, shape in fields))
        for sizes, fields in data["rounds"]
    ]
    for i, key in enumerate(keys):
        game, pages, when, said = (parts[part][i] for part in ("game", "pages", "when", "said"))
        game = game.ravel()
        if not (len(when) == len(said) and when.shape[1] == 2 and said.shape[1] == width):
            raise ValueError(f"the stream {key!r} has other shapes")
        if len(pages) and not (pages.shape[1] > WAIT_SIZE and np.isin(pages[:, WAIT_SERIAL], said[:, SERIAL]).all()):
            raise ValueError(f"the stream {key!r} has forgotten a row that waits")
        if not np.isin(said[:, STATE], KEPT).all():
            raise ValueError(f"the stream {key!r} has rows in no known state")
        sizes, fields = rounds[data["round"][i]]
        features = data["features"].get(str(i))
        waiting = [None] * len(pages) if features is None else [features_from_json(each) for each in features]
        book.streams[key] = Stream(game, pages, when, said, rows[i], sizes, fields, waiting)
    return book
