"""The state of a panel: every stream's game, its pending rows, and the last rows, in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import persistence
from orcast.coins import seed_of
from orcast.constants import LONGEST_SEASON
from orcast.packed import PackedRounds, record_fields
from orcast.panel.calendar import seasons_of
from orcast.panel.experts import ForecastShape
from orcast.panel.horizons import Step, step_from_plain
from orcast.panel.pools import PoolState, pool_from_plain, pool_to_plain
from orcast.panel.row_times import Calendar, Timing, stamps_of
from orcast.panel.runner import RunState
from orcast.panel.statuses import Status
from orcast.panel.stream import LogColumn, PendingColumn, Stream
from orcast.payoffs import payoff_from_plain
from orcast.payoffs.calibration import increasing
from orcast.persistence import oracle_from_plain
from orcast.rounds import MOST_COUNTED
from orcast.serialise import features_from_json, features_to_json, id_from_plain, plain_id
from orcast.spaces.base import single, whole
from orcast.validation import short

Arrays = dict[str, NDArray[Any]]

OWNER = "PanelState"
# What a row may be remembered as.
REMEMBERED = (Status.OK, Status.PENDING, Status.OUTSIDE, Status.LOST, Status.GIVEN_UP)
# What stands for bounds that were given for each series.
BY_SERIES = {"by": "series"}


@dataclass
class ModelStreams:
    """The streams of one model by series and horizon, and the shape of its forecasts."""

    shape: ForecastShape
    streams: dict[tuple[Hashable, Hashable], Stream] = field(default_factory=dict)


@dataclass
class PanelOptions:
    """What a panel was begun with; what is left out later is taken from here.

    ``low`` and ``high`` are as they were given, or `BY_SERIES`; ``kind`` is that of the times, ``at_once``
    whether each outcome is known before the next forecast is made.
    """

    kind: str
    at_once: bool
    ranked: bool  # whether no column says the horizon, so that it is counted from the cutoff on
    payoff: dict[str, Any] | None
    levels: list[float] | None
    low: Any
    high: Any
    by_row: bool
    oracle: dict[str, Any] | None = None
    known: bool = False  # whether a column says when outcomes were known
    lag: Any = None
    issued_every: int | str | None = None
    nowcast: bool = False
    pool: bool | list[str] = (
        False  # as it was given: whether streams learn together, or the columns that tell pools apart
    )
    randomised: int | None = None  # the seed of the coins


# The group of a pool, and whether what is played is how far below a bound the outcome lies.
PoolKey = tuple[Hashable, bool]


@dataclass
class PanelContent:
    """What a panel knows, for the code of panels: by model, and by series."""

    options: PanelOptions | None = None
    models: dict[str, ModelStreams] = field(default_factory=dict)
    bounds: dict[Hashable, tuple[float, float]] = field(default_factory=dict)
    calendar: Calendar = field(default_factory=dict)  # cutoffs and times, where horizons are counted from them
    steps: dict[Hashable, Step] = field(default_factory=dict)  # what they are counted in; places if it is not said
    counted: dict[Hashable, int] = field(default_factory=dict)  # rows, where there are no times
    pools: dict[tuple[str, PoolKey], PoolState] = field(default_factory=dict)  # by model and key
    groups: dict[Hashable, Hashable] = field(default_factory=dict)  # of each series, if columns tell pools apart

    def pending_rows(self, models: Iterable[str]) -> Iterator[tuple[Hashable, Hashable, Any, Any, float, float]]:
        """Series, horizon, cutoff, time and bounds of the pending rows of some models."""
        for model in models:
            found = self.models.get(model)
            for (key, horizon), stream in () if found is None else found.streams.items():
                places = {serial: place for place, serial in enumerate(stream.log[:, LogColumn.SERIAL].tolist())}
                for serial, _, _, low, high, _ in stream.pending.tolist():
                    cutoff, time, _ = stream.stamps[places[serial]].tolist()
                    yield key, horizon, cutoff, time, low, high


class PanelState:
    """Where a panel stands, so that the next frame goes on from there: give it, or the path of its file, as ``state=``.

    For each model, series and horizon it holds the game, the pending rows, and the last ``remember`` rows with their
    answers: a frame that repeats these gets the same answers again.

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
        self.content = PanelContent()

    @property
    def models(self) -> tuple[str, ...]:
        """The models it has seen; "" is one without a name."""
        return tuple(self.content.models)

    @property
    def pending(self) -> int:
        """Rows without an outcome, of all models together."""
        return sum(_pending(stream) for model in self.content.models.values() for stream in model.streams.values())

    def __len__(self) -> int:
        """How many streams there are: a game for each model, series and horizon."""
        return sum(len(model.streams) for model in self.content.models.values())

    def __repr__(self) -> str:
        models = self.content.models
        series = {key for model in models.values() for key, _ in model.streams}
        counts = {"model": len(models), "series": len(series), "game": len(self), "pending row": self.pending}
        texts = (f"{n} {what}{'' if n == 1 or what == 'series' else 's'}" for what, n in counts.items())
        return f"PanelState({', '.join(texts)})"

    # --- files
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        content = self.content
        arrays: Arrays = {}
        models = [_model_header(number, *each, arrays) for number, each in enumerate(content.models.items())]
        _stack(arrays, "calendar", list(content.calendar.values()))
        pools = [_pool_header(number, *each, arrays) for number, each in enumerate(content.pools.items())]
        arrays["bounds"] = np.array(list(content.bounds.values()), dtype=np.float64).ravel()
        header = {
            "class": OWNER,
            "remember": self.remember,
            "options": None if content.options is None else asdict(content.options),
            "models": models,
            "pools": pools,
            "groups": [[plain_id(key), plain_id(group)] for key, group in content.groups.items()],
            "series": [plain_id(key) for key in content.bounds],
            "calendar": [plain_id(key) for key in content.calendar],
            "steps": [[plain_id(key), *step] for key, step in content.steps.items()],
            "counted": [[plain_id(key), count] for key, count in content.counted.items()],
        }
        persistence.write(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PanelState:
        """Read it from a file; refuses what it cannot read, in one sentence."""
        header, arrays = persistence.read(path)
        if header.get("class") != OWNER:
            raise ValueError(f"expected the state of a panel, got that of a {header.get('class')}: {path}")
        try:
            self = cls(remember=header["remember"])
            content = self.content
            content.options = None if header["options"] is None else _options(header["options"])
            bounds = arrays["bounds"].reshape(-1, 2).tolist()
            content.bounds = {id_from_plain(key): (a, b) for key, (a, b) in zip(header["series"], bounds, strict=True)}
            for number, data in enumerate(header["models"]):
                content.models[data["name"]] = _model_streams(number, data, arrays)
            dates = _unstack(arrays, "calendar", len(header["calendar"]))
            if not all(each.shape[1] == 2 and len(np.unique(each, axis=0)) == len(each) for each in dates):
                raise ValueError("a time stands twice in the calendar")
            content.calendar = {id_from_plain(key): each for key, each in zip(header["calendar"], dates, strict=True)}
            content.steps = {id_from_plain(key): step_from_plain(*step) for key, *step in header["steps"]}
            content.counted = {
                id_from_plain(key): whole(count, "rows", 0, MOST_COUNTED) for key, count in header["counted"]
            }
            for number, data in enumerate(header["pools"]):
                _take_pool(content, number, data, arrays)
            content.groups = {id_from_plain(key): id_from_plain(group) for key, group in header["groups"]}
        except persistence.UNREADABLE as reason:
            raise persistence.unusable(reason, path) from reason
        return self


@contextmanager
def open_state(state: PanelState | str | os.PathLike[str] | None) -> Iterator[PanelState | None]:
    """The state that is given, or the one in a file, to which it is written at the end if nothing was refused."""
    if state is None or isinstance(state, PanelState):
        yield state
        return
    if not isinstance(state, (str, os.PathLike)):
        raise TypeError(f"expected a path or a PanelState as state, got {short(state)}")
    path = Path(state)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"expected a folder that exists for the state, got {path.parent}")
    was = stamp(path)
    panel = PanelState() if was is None else PanelState.load(path)
    yield panel
    check_unchanged(path, was)
    panel.save(path)


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


# --- options that a state began with


def bound_to_keep(side: Any) -> Any:
    """A bound as a state keeps it."""
    if side is None or isinstance(side, str):
        return side
    return BY_SERIES if isinstance(side, Mapping) or hasattr(side, "to_dict") else float(side)


# --- parts of a file


def _pending(stream: Stream) -> int:
    """Rows of a stream whose outcome is not known."""
    if not len(stream.pending):
        return 0
    pending = np.isin(stream.log[:, LogColumn.SERIAL], stream.pending[:, PendingColumn.SERIAL])
    return int(np.isnan(stream.log[pending, LogColumn.Y]).sum())


def _model_header(number: int, name: str, model: ModelStreams, arrays: Arrays) -> dict[str, Any]:
    """The plain data of one model; its arrays are put among the others."""
    order = sorted(model.streams, key=lambda key: json.dumps(plain_id(key)))
    streams = [model.streams[key] for key in order]
    parts: dict[str, list[NDArray[Any]]] = {
        "counters": [np.concatenate((stream.game.rounds.counters, stream.game.errors)) for stream in streams],
        "memory": [stream.game.memory for stream in streams],
        "issued": [stream.game.rounds.issued for stream in streams],
        "records": [stream.game.rounds.records for stream in streams],
        "pending": [stream.pending for stream in streams],
        "stamps": [stream.stamps for stream in streams],
        "log": [stream.log for stream in streams],
    }
    for part, each in parts.items():
        _stack(arrays, f"{number}/{part}", each)
    arrays[f"{number}/rows"] = np.array([stream.rows for stream in streams], dtype=np.int64)
    arrays[f"{number}/step"] = np.array([stream.step for stream in streams], dtype=np.int64)
    kinds = [(stream.game.sizes, stream.game.rounds.fields) for stream in streams]
    distinct = list(dict.fromkeys(kinds))
    features = {
        str(i): [features_to_json(each) for each in stream.game.rounds.features]
        for i, stream in enumerate(streams)
        if any(each is not None for each in stream.game.rounds.features)
    }
    return {
        "name": name,
        "shape": asdict(model.shape),
        "streams": [[plain_id(key), plain_id(horizon)] for key, horizon in order],
        "records": distinct,
        "record": [distinct.index(kind) for kind in kinds],
        "features": features,
    }


def _options(plain: dict[str, Any]) -> PanelOptions:
    """The options of a state, or a reason why they are none."""
    options = PanelOptions(**plain)
    flags = (options.at_once, options.ranked, options.by_row, options.known, options.nowcast)
    if not isinstance(options.kind, str) or not all(isinstance(flag, bool) for flag in flags):
        raise TypeError(f"{short(plain)} are no options")
    columns = options.pool
    if not (isinstance(columns, bool) or (isinstance(columns, list) and all(isinstance(c, str) for c in columns))):
        raise TypeError(f"{short(columns)} are no columns of pools")
    seed_of(options.randomised)
    if options.levels is not None:
        options.levels = increasing(options.levels, "levels strictly between 0 and 1", 0.0, 1.0).tolist()
    for side in (options.low, options.high):
        if not (side is None or isinstance(side, str) or side == BY_SERIES):
            single(side, "bound")
    if options.oracle is not None:
        oracle_from_plain(options.oracle)
    if options.lag is not None:
        stamps_of(options.lag, options.kind, "lag")
    Timing(None, options.issued_every).checked()
    if options.payoff is not None:
        try:
            payoff_from_plain(options.payoff)
        except ValueError as reason:
            if " payoff= " not in str(reason):  # it has functions, and is given again
                raise
    return options


def _model_streams(number: int, data: dict[str, Any], arrays: Arrays) -> ModelStreams:
    model = ModelStreams(ForecastShape.from_plain(data["shape"]))
    keys = [(id_from_plain(key), id_from_plain(horizon)) for key, horizon in data["streams"]]
    names = ("counters", "memory", "issued", "records", "pending", "stamps", "log")
    parts = zip(*(_unstack(arrays, f"{number}/{part}", len(keys)) for part in names), strict=True)
    kinds = [(None if sizes is None else tuple(sizes), record_fields(fields)) for sizes, fields in data["records"]]
    rows = [whole(count, "rows", 0, MOST_COUNTED) for count in arrays[f"{number}/rows"].tolist()]
    steps = arrays[f"{number}/step"].tolist()
    if len(steps) != len(keys) or not all(step == 0 or seasons_of(step) for step in steps):
        raise ValueError("steps are not those of a calendar")
    for i, (key, (counters, memory, issued, records, pending, stamps, log)) in enumerate(zip(keys, parts, strict=True)):
        counters, count = counters.ravel(), len(pending)
        if not (len(stamps) == len(log) and stamps.shape[1] == 3 and len(counters) == 5 and len(records) == count):
            raise ValueError(f"the stream {key!r} has other shapes")
        if log.shape[1] != LogColumn.ANSWERS + len(model.shape.outputs) or pending.shape[1] != PendingColumn.SKIPS + 1:
            raise ValueError(f"the stream {key!r} has other shapes")
        if not np.isin(pending[:, PendingColumn.SERIAL], log[:, LogColumn.SERIAL]).all():
            raise ValueError(f"the stream {key!r} has forgotten a pending row")
        if not np.isin(pending[:, PendingColumn.SKIPS], np.arange(LONGEST_SEASON + 1)).all():
            raise ValueError(f"the stream {key!r} skips steps that cannot be")
        if not np.isin(log[:, LogColumn.STATUS], REMEMBERED).all():
            raise ValueError(f"the stream {key!r} has rows in no known state")
        sizes, fields = kinds[data["record"][i]]
        own = data["features"].get(str(i), [None] * count)
        packed = PackedRounds(counters[:3], fields, records, issued.ravel(), [features_from_json(each) for each in own])
        game = RunState(packed, counters[3:], memory.ravel(), sizes)
        model.streams[key] = Stream(game, pending, stamps, log, rows[i], steps[i])
    return model


def _pool_header(number: int, name: tuple[str, PoolKey], pool: PoolState, arrays: Arrays) -> dict[str, Any]:
    """A pool; its arrays are put among the others."""
    plain, own = pool_to_plain(pool)
    arrays.update({f"pool/{number}/{part}": array for part, array in own.items()})
    model, (group, mirrored) = name
    return {"model": model, "group": plain_id(group), "mirrored": mirrored, **plain}


def _take_pool(content: PanelContent, number: int, data: dict[str, Any], arrays: Arrays) -> None:
    """A pool from a file, or a reason why it is none."""
    start = f"pool/{number}/"
    own = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
    if data["model"] not in content.models or not isinstance(data["mirrored"], bool):
        raise ValueError(f"there is no model {short(data['model'])} for a pool")
    content.pools[data["model"], (id_from_plain(data["group"]), data["mirrored"])] = pool_from_plain(data, own)


def _stack(arrays: Arrays, name: str, parts: Sequence[NDArray[Any]]) -> None:
    """Many arrays as one, and their shapes."""
    # flat: a file with nothing else in it has no room for sides
    arrays[f"{name}/shapes"] = np.array(
        [side for part in parts for side in (*part.shape, *([1] * (2 - part.ndim)))], dtype=np.int64
    )
    arrays[name] = np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0)


def _unstack(arrays: Arrays, name: str, count: int) -> list[NDArray[Any]]:
    """Many arrays from one, which `_stack` made."""
    shapes, all_ = arrays[f"{name}/shapes"].reshape(-1, 2), arrays[name]
    if len(shapes) != count or (shapes < 0).any() or int(shapes.prod(axis=1).sum()) != all_.size:
        raise ValueError(f"{name} has other shapes")
    cuts = [0, *np.cumsum(shapes.prod(axis=1)).tolist()]
    return [all_[a:b].reshape(side).copy() for (a, b), side in zip(pairwise(cuts), shapes.tolist(), strict=True)]
