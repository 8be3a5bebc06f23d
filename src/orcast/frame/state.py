"""The state of a frame: every stream's recalibrator, committee, pending rows and last rows, in one file."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import persistence
from orcast.frame.options import FrameFacts, FrameOptions
from orcast.frame.pools import MOST_STEPS, GroupState, SeriesState, name_of
from orcast.frame.runner import RunState
from orcast.frame.statuses import Status
from orcast.frame.stream import PENDING_WIDTH, LogColumn, PendingColumn, Stream, StreamKey
from orcast.frame.times import Calendar, Clock, Step, seasons_of, step_from_plain
from orcast.locks import file_lock
from orcast.monitors import PIT, check_row, watcher_for
from orcast.packed import PackedRounds, State, pack, record_fields, unpack
from orcast.serialise import features_from_json, features_to_json, id_from_plain, plain_id
from orcast.spaces.base import whole
from orcast.validation import short

Arrays = dict[str, NDArray[Any]]

OWNER = "FrameState"
# What a row may be remembered as.
REMEMBERED = (Status.OK, Status.PENDING, Status.OUTSIDE, Status.EVICTED, Status.EXPIRED)


@dataclass
class ModelStreams:
    """The streams of one model by series and horizon, the shape of its forecasts, and the number of its outputs."""

    shape: str
    outputs: int
    streams: dict[StreamKey, Stream] = field(default_factory=dict)


@dataclass
class PanelContent:
    """Content of a state: by model, and by series."""

    options: FrameOptions | None = None  # of the first frame, as its facts; None before it
    facts: FrameFacts | None = None
    models: dict[str, ModelStreams] = field(default_factory=dict)
    calendar: Calendar = field(default_factory=dict)  # cutoffs and times, where horizons are counted from them
    step: Step | None = None  # what they are counted in
    pools: dict[str, GroupState] = field(default_factory=dict)  # by model


class FrameState:
    """State of a frame, from which the next one continues; pass it, or the path of its file, as ``state=``.

    For each model, series and horizon it holds the recalibrator, the pending rows, and the last ``remember`` rows with
    their answers: a frame that repeats these gets the same answers again.

    Parameters
    ----------
    remember : int
        Answered rows of each stream to keep, beside the pending ones.

    Attributes
    ----------
    remember : int
        As given.

    Examples
    --------
    >>> import orcast as oc, pandas as pd
    >>> frame = pd.DataFrame({"ds": range(4), "y": [1.0, 3.0, 2.0, None], "mean": [2.0] * 4, "sd": [1.0] * 4})
    >>> state = FrameState()
    >>> first = oc.recalibrate(frame, state=state)
    >>> state.pending
    1
    >>> again = oc.recalibrate(frame.assign(y=[1.0, 3.0, 2.0, 2.5]), state=state)
    >>> again["orcast_mean"].equals(first["orcast_mean"]), again["orcast_status"].tolist()
    (True, ['already answered', 'already answered', 'already answered', 'ok'])
    """

    def __init__(self, *, remember: int = 1000) -> None:
        self.remember = whole(remember, "rows to remember of each stream", 1, 10**9)
        self.content = PanelContent()

    @property
    def pending(self) -> int:
        """Number of rows without an outcome, of all models together."""
        streams = [stream for model in self.content.models.values() for stream in model.streams.values()]
        return sum(int(np.isnan(each.log[each.pending_at, LogColumn.Y]).sum()) for each in streams)

    def __len__(self) -> int:
        """Number of streams: one for each model, series and horizon."""
        return sum(len(model.streams) for model in self.content.models.values())

    def __repr__(self) -> str:
        return f"FrameState(models={len(self.content.models)}, streams={len(self)}, pending={self.pending})"

    # --- files
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one.

        Parameters
        ----------
        path : path
            File to write.
        """
        persistence.write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Encode the state as `save` does, with a checksum.

        Returns
        -------
        bytes
            Content of a state file.
        """
        return persistence.encode(*self._plain())

    def _plain(self) -> tuple[dict[str, Any], Arrays]:
        content = self.content
        arrays: Arrays = {}

        def packed(name: str, states: Iterable[State], *keys: str) -> dict[str, Any]:
            header, own = pack(states, ("key", *keys))
            arrays.update({f"{name}/{part}": array for part, array in own.items()})
            return header

        header = {
            "class": OWNER,
            "remember": self.remember,
            "options": content.options and content.options._asdict(),
            "facts": content.facts,
            "models": [
                {
                    "name": name,
                    "shape": [model.shape, model.outputs],
                    "streams": packed(f"models/{i}", map(_plain_stream, _sorted(model.streams)), "features"),
                }
                for i, (name, model) in enumerate(content.models.items())
            ],
            "calendar": packed("calendar", (({"key": plain_id(k)}, {"dates": v}) for k, v in content.calendar.items())),
            "step": content.step,
            "committees": packed("committees", _plain_committees(content.pools)),
        }
        return header, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FrameState:
        """Read a state from a file.

        Parameters
        ----------
        path : path
            File that `save` wrote.

        Returns
        -------
        FrameState
            State to continue from.

        Raises
        ------
        ValueError
            The file is damaged or holds another kind of state.
        """
        return cls._read(path)

    @classmethod
    def from_bytes(cls, data: bytes) -> FrameState:
        """Decode a state.

        Parameters
        ----------
        data : bytes
            Result of `to_bytes`.

        Returns
        -------
        FrameState
            State to continue from.

        Raises
        ------
        ValueError
            The bytes are damaged or hold another kind of state.
        """
        return cls._read(bytes(data))

    @classmethod
    def _read(cls, source: bytes | str | os.PathLike[str]) -> FrameState:
        with persistence.reading(source, OWNER) as (header, arrays, _):

            def unpacked(plain: dict[str, Any], name: str, *keys: str) -> Iterator[State]:
                return unpack(plain, persistence.inside(arrays, f"{name}/"), ("key", *keys))

            self = cls(remember=header["remember"])
            content = self.content
            if header["options"] is not None:
                content.options = FrameOptions.from_plain(header["options"])
                content.facts = FrameFacts.from_plain(header["facts"])
            for i, data in enumerate(header["models"]):
                model = content.models[data["name"]] = ModelStreams(*data["shape"])
                streams = unpacked(data["streams"], f"models/{i}", "features")
                model.streams = dict(_stream(*state, model.outputs) for state in streams)
            for plain, own in unpacked(header["calendar"], "calendar"):
                dates = own["dates"]
                if dates.shape[1] != 2 or len(np.unique(dates, axis=0)) != len(dates):
                    raise ValueError("a time stands twice in the calendar")
                content.calendar[id_from_plain(plain["key"])] = dates
            content.step = None if header["step"] is None else step_from_plain(*header["step"])
            for plain, own in unpacked(header["committees"], "committees"):
                _add_committee(content, plain["key"], own)
        return self


@contextmanager
def open_state(state: FrameState | str | os.PathLike[str] | None) -> Iterator[FrameState | None]:
    """Yield the state that is given, or that of a file or store, which is written at the end if nothing is raised.

    Other calls on the same file wait, in all processes; of two calls on a store at the same time the second one that
    ends raises ValueError.
    """
    if state is None or isinstance(state, FrameState):
        yield state
        return
    if not isinstance(state, (str, os.PathLike)):
        raise TypeError(f"expected a path, the URL of a store or a FrameState as state, got {short(state)}")
    if "://" in str(state):
        from orcast.store import Store

        with Store(state) as store, store.value("frame") as held:
            panel = FrameState() if held[0] is None else FrameState.from_bytes(held[0])
            yield panel
            held[0] = panel.to_bytes()
        return
    path = Path(state)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"expected a folder that exists for the state, got {path.parent}")
    with file_lock(path):
        panel = FrameState.load(path) if path.exists() else FrameState()
        yield panel
        panel.save(path)


# --- streams


def _sorted(states: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return sorted(states.items(), key=lambda each: name_of(each[0]))


def _plain_stream(item: tuple[StreamKey, Stream]) -> State:
    key, stream = item
    recal, rounds = stream.recal, stream.recal.rounds
    given = any(each is not None for each in rounds.features)
    features = [features_to_json(each) for each in rounds.features] if given else []
    header = {"key": plain_id(key), "features": features, "sizes": recal.sizes, "fields": rounds.fields}
    arrays = {name: getattr(rounds, name) for name in ("counters", "issued", "records")}
    arrays |= {"memory": recal.memory}
    arrays |= {name: getattr(stream, name) for name in ("pending", "stamps", "log", "committee", "memos", "base")}
    arrays |= {f"monitor {i}": row for i, row in enumerate(stream.monitors)}
    return header, arrays


def _stream(header: dict[str, Any], arrays: Arrays, outputs: int) -> tuple[StreamKey, Stream]:
    """A stream from its state, or a reason why it is none."""
    key: Any = id_from_plain(header["key"])
    series, horizon = key
    pending, stamps, log, records = (arrays[name] for name in ("pending", "stamps", "log", "records"))
    count, width = len(pending), LogColumn.ANSWERS + outputs
    sides: dict[str, tuple[int, ...]] = {"stamps": (len(log), 3), "log": (len(log), width)}
    base, monitors = arrays["base"], [array for name, array in arrays.items() if name.startswith("monitor ")]
    sides |= {"pending": (count, PENDING_WIDTH), "counters": (3,), "issued": (count,)}
    sides |= {"base": (count, base.shape[-1])}
    if any(arrays[name].shape != side for name, side in sides.items()) or len(records) != count or records.ndim != 2:
        raise ValueError(f"the stream {key!r} has other shapes")
    places = np.unique(pending[:, PendingColumn.PLACE])
    if len(places) < count or not np.isin(places, np.arange(len(log))).all():
        raise ValueError(f"the stream {key!r} has forgotten a pending row")
    if not np.isin(log[:, LogColumn.STATUS], REMEMBERED).all():
        raise ValueError(f"the stream {key!r} has rows in no known state")
    features = [features_from_json(each) for each in header["features"]] or [None] * count
    packed = PackedRounds(arrays["counters"], record_fields(header["fields"]), records, arrays["issued"], features)
    sizes = None if header["sizes"] is None else tuple(header["sizes"])
    recal = RunState(packed, arrays["memory"], sizes)
    for row in monitors:
        check_row(watcher_for(PIT).bets, row)
    own = arrays["committee"], arrays["memos"], base, monitors
    return (series, horizon), Stream(recal, pending, stamps, log, *own)


# --- committees


def _plain_committees(pools: dict[str, GroupState]) -> Iterator[State]:
    """Series, with their clocks, and pools by horizon of all groups."""
    for model, state in pools.items():
        for key, series in _sorted(state.series):
            step, times, counts = series.clock
            own = {"row": series.row, "step": np.array([step]), "times": times, "counts": counts}
            yield {"key": [model, plain_id(key)]}, own
        for horizon, row in _sorted(state.pools):
            yield {"key": [model, plain_id(horizon)]}, {"row": row}


def _add_committee(content: PanelContent, plain: list[Any], own: Arrays) -> None:
    model, key = plain[0], id_from_plain(plain[1])
    if model not in content.models:
        raise ValueError(f"there is no model {short(model)} for a group")
    state = content.pools.setdefault(model, GroupState())
    if "times" in own:
        state.series[key] = SeriesState(own["row"], _clock(key, own))
    else:
        state.pools[key] = own["row"]


def _clock(key: Hashable, arrays: Arrays) -> Clock:
    clock = Clock(int(arrays["step"][0]), arrays["times"], arrays["counts"])
    _, times, counts = clock
    fine = counts.dtype == np.int64 and (np.abs(counts) <= MOST_STEPS).all() and times.dtype == np.int64
    if not fine or len(times) != len(counts) or (np.diff(times) <= 0).any() or (np.diff(counts) <= 0).any():
        raise ValueError(f"the clock of the series {key!r} does not go on")
    if not (clock.step in (-1, 0) or seasons_of(clock.step)):
        raise ValueError(f"the series {key!r} has steps that are not those of a calendar")
    return clock
