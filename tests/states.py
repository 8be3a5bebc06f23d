"""States of every kind, made on the spot: the seeds of `mutations.py`, which damages and loads them.

A state has the bytes of its file, a function that loads such a file, and one that continues from what was loaded.
Functions that users would pass again when they load are defined here.
"""

from __future__ import annotations

import datetime
import json
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import orcast as oc
from frozen.cases import LABELS, LEVELS, events, matches, numbers, panel_frame, stream_lines

SMALL: dict[str, Any] = {"cells": 12, "tail_cells": 1}
INTERVAL = oc.Interval(0, 100, **SMALL)
IDS = ("late", 7, ("north", 3), datetime.datetime(2026, 1, 5, 14), None)
ROUNDS = 12


@dataclass(frozen=True)
class Saved:
    """A state file, and how to load and continue it."""

    name: str
    data: bytes
    load: Callable[[Path], Any]
    kind: str = "game"  # "game", "stream" or "steps"
    steps: tuple[Any, ...] = ()  # features of a game, lines of a stream, or functions of what was loaded
    fields: tuple[slice, ...] = ()  # places of the fields in the row of a pending round


# --- functions that a state does not hold


def _peak(y: float) -> list[float]:
    return [float(y > 60.0)]


def _share(x: Any, p: Any) -> list[float]:
    share = min(max(p.mean() / 100.0, 0.0), 1.0)
    return [share * (x["hour"] < 2), share * (x["hour"] >= 2)]


def _witness(y: float, x: Any) -> list[float]:
    late = x["when"].hour >= 12 and x["day"].day > 1 and x["stamp"].astype(int) > 0
    return [(y > x["limit"]) * 0.6, late * y / 200.0 + len(x["tags"]) * 0.1 + float(x["row"][0]) * 0.001]


def _stock(action: str, y: float) -> float:
    order = 70.0 if action == "much" else 35.0
    return min(order, y) / 100.0 - 0.004 * order


def _weather(x: Any) -> list[float]:
    return [0.6 * (x["wind"] > 7.0), 0.05 * x["wind"]]


def _features(t: int) -> dict[str, Any]:
    """Features of every kind that can be saved."""
    day = 1 + t % 28
    return {
        "hour": t % 4,
        "wind": (3.7 * t) % 15.0,
        "limit": 30.0 + t,
        "when": datetime.datetime(2026, 1, day, t % 24, 30),
        "day": datetime.date(2026, 1, day),
        "stamp": np.datetime64(f"2026-01-{day:02d}"),
        "tags": ("dry", t % 3, None),
        "row": np.array([0.5, np.nan]),
        "list": [1, 2.5, "three"],
        "far": np.inf,
        "flag": t % 2 == 0,
    }


# --- games


def _with_experts(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Three experts, of which one is missing at times."""
    return [({"tree": f, "net": f, **({"none": f} if t % 4 != 2 else {})}, y) for t, (f, y) in enumerate(pairs)]


def _forecaster(
    name: str, make: Callable[[], Any], pairs: list[tuple[Any, Any]], *, x: bool = False, **given: Any
) -> Saved:
    """A game after some rounds, with others pending under ids of every kind."""
    forecaster = make()
    ids = IDS if hasattr(forecaster, "rounds") and forecaster.max_pending > 4 else IDS[-1:]

    def predict(t: int, **more: Any) -> None:
        forecast = pairs[t % len(pairs)][0]
        several = isinstance(forecast, dict) and "tree" in forecast
        features = {"x": _features(t)} if x else {}
        forecaster.predict(
            *(() if several else (forecast,)), **({"experts": forecast} if several else {}), **features, **more
        )

    for t in range(ROUNDS):
        predict(t)
        forecaster.update(pairs[t % len(pairs)][1])
    for t, id in enumerate(ids):
        predict(ROUNDS + t, id=id)
    record = forecaster.rounds.find(ids[0]).record
    places = getattr(record, "round", record).rules.round_places.values()
    fields = tuple(slice(at, at + math.prod(shape)) for at, shape in places if math.prod(shape))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.orcast"
        forecaster.save(path)
        load, steps = partial(type(forecaster).load, **given), tuple(map(_features, range(8))) if x else ()
        return Saved(name, path.read_bytes(), load, steps=steps, fields=fields)


def _forecasters() -> Iterator[Callable[[], Saved]]:
    """Every space, context, payoff and oracle."""
    count = ROUNDS + len(IDS)
    y, p, m = numbers(count, 1), events(count, 2), matches(count, 3)
    q, regret, labels = oc.QuantileCalibration(LEVELS), oc.NoRegret(oc.CRPS()), oc.Labels(LABELS)
    turns = [(oc.Normal(30.0 * t % 360.0, 25.0), 25.0 * t % 360.0) for t in range(count)]
    sides = [([oc.Normal(0.5, 0.15), oc.Normal(1.0, 1.0)], [0.4, 0.1 * t]) for t in range(count)]
    by_hour = oc.by("hour", values=[0, 1, 2], other=True)
    by_wind = oc.by("wind", edges=[5, 10], soft=2.0) * oc.by_last_error()
    alone = [(None, each) for _, each in y]

    def recal(name: str, space: Any, pairs: Any, payoff: Any = None, *, x: bool = False, **options: Any) -> Any:
        given = options.pop("given", {})
        return partial(_forecaster, name, partial(oc.Recalibrator, space, payoff, **options), pairs, x=x, **given)

    def forecaster(name: str, space: Any, pairs: Any, payoff: Any, oracle: Any, given: Any = None) -> Any:
        return partial(_forecaster, name, partial(oc.Forecaster, space, payoff, oracle=oracle), pairs, **(given or {}))

    yield recal("interval", INTERVAL, y)
    yield recal("usual cells", oc.Interval(0, 100), y, max_pending=2)
    yield recal("half line", oc.HalfLine(0, **SMALL), y, randomised=7)
    yield recal("line", oc.Line(**SMALL), y, seasons=(7,))
    yield recal("clipped", oc.Interval(20, 60, **SMALL), y, memory=20, outside="clip")
    yield recal("binary", oc.Binary(), p)
    yield recal("labels", labels, m)
    yield recal("drawn", labels, m, randomised=7)
    yield recal("circle", oc.Circle(360, cells=8), turns)
    yield recal("box", oc.Box([(0, 1), (-5, 5)], cells=(2, 3)), sides)
    yield recal("experts", INTERVAL, _with_experts(y))
    yield recal("experts of events", oc.Binary(), _with_experts(p))
    yield recal("experts of labels", labels, _with_experts(m))
    yield recal("by hour", INTERVAL, y, oc.QuantileCalibration(LEVELS, context=by_hour) + regret, x=True)
    yield recal("by wind", INTERVAL, y, oc.QuantileCalibration([0.5], context=by_wind, weight=2.0) + q, x=True)
    yield recal("events by hour", oc.Binary(), p, oc.BinaryCalibration(5, context=by_hour), x=True)
    yield recal("labels by hour", labels, m, oc.LabelCalibration(5, context=by_hour) + oc.NoRegret(oc.Brier()), x=True)
    own = oc.QuantileCalibration(LEVELS, context=oc.by(_weather, size=2)) + regret
    yield recal("by function", INTERVAL, y, own, x=True, given={"payoff": own})
    several = (
        q
        + oc.IntervalCalibration([0.5, 0.9])
        + oc.MomentMatching(3)
        + oc.payoffs.ThresholdCalibration([20, 60], grid=1)
    )
    yield recal("payoffs", INTERVAL, y, several + oc.NoRegret(oc.CRPS(), oc.MSE()))
    yield recal("thresholds", INTERVAL, y, oc.payoffs.ThresholdCalibration([30, 60], grid=5) + q)
    for name, part in {"recipe": oc.Recipe(_peak, _share, bound=1, jumps=[60.0]),
                       "recipe by features": oc.Recipe(_witness, by_hour, bound=1)}.items():  # fmt: skip
        yield recal(name, INTERVAL, y, q + part, x=True, given={"payoff": q + part})
    actions = ["much", "little"]
    bets = oc.payoffs.DecisionCalibration(actions, _stock) + oc.payoffs.SwapRegret(actions, _stock, sharpness=10)
    yield recal("decisions", INTERVAL, y, bets, given={"payoff": bets})
    yield forecaster("equilibrium", INTERVAL, alone, q, oc.Equilibrium(temperature=3))
    yield forecaster("orca", INTERVAL, y, q, oc.Orca(steps=20, cells=10))
    yield forecaster("binary root", oc.Binary(), p, oc.BinaryCalibration(5), oc.paper.BinaryRoot())
    yield forecaster("two cells", INTERVAL, y, q + oc.IntervalCalibration(0.8), oc.paper.TwoCells())
    yield forecaster("moment hull", INTERVAL, y, oc.payoffs.MomentBasedCalibration(3), oc.paper.LogitPath())
    yield forecaster("simplex grid", labels, m, oc.payoffs.SimplexCalibration(3), oc.paper.LogitPath())
    yield forecaster("decision game", INTERVAL, y, bets, oc.paper.LogitPath(), {"payoff": bets})


# --- frames and streams


class PanelFile:
    """A panel's state in a file, which each frame reads and writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        oc.FrameState.load(path)


def _recalibrate(frame: Any, options: dict[str, Any], panel: PanelFile) -> None:
    oc.recalibrate(frame, state=panel.path, workers=1, **options)


def _nixtla(frame: Any, options: dict[str, Any], panel: PanelFile) -> None:
    from orcast.integrations import nixtla

    said = frame.drop(columns=["y", "cutoff"]).drop_duplicates(["unique_id", "ds"], keep="last")
    nixtla.recalibrate(said, frame[["unique_id", "ds", "y"]].dropna().drop_duplicates(), state=panel.path, workers=1)


def _panel(name: str, change: Callable[[Any], Any], act: Any = _recalibrate, **options: Any) -> Saved:
    """A panel after a frame, of which some rows are pending; two more frames follow."""
    first, *later = (change(panel_frame(*days)) for days in ((0, 7, 6), (5, 10, 9), (8, 14, 16)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.orcast"
        oc.recalibrate(first, state=path, workers=1, **options)
        steps = tuple(partial(act, frame, options) for frame in later)
        return Saved(f"panel of {name}", path.read_bytes(), PanelFile, "steps", steps)


def _normals(frame: Any) -> Any:
    return frame.drop(columns=["ETS", "ETS-lo-80", "ETS-hi-80"]).assign(mean=frame["ETS"], sd=5.0)


def _events(frame: Any) -> Any:
    y = (frame["y"] > 50.0).where(frame["y"].notna()).astype(float)
    return frame.drop(columns=["ETS", "ETS-lo-80", "ETS-hi-80"]).assign(y=y, p=(frame["ETS"] / 100.0).clip(0.1, 0.9))


def _labels(frame: Any) -> Any:
    home = (frame["ETS"] / 150.0).clip(0.1, 0.7)
    y = frame["y"].map(lambda value: None if value != value else LABELS[int(value) % 3])
    rest = frame.drop(columns=["ETS", "ETS-lo-80", "ETS-hi-80"])
    return rest.assign(y=y, p_home=home, p_draw=0.2, p_away=0.8 - home)


def _one_step(frame: Any) -> Any:
    return frame[frame.groupby(["unique_id", "cutoff"]).cumcount() == 0].drop(columns="cutoff")


def _panels() -> Iterator[Callable[[], Saved]]:
    hourly = oc.QuantileCalibration(LEVELS, context=oc.by("hour", values=range(3))) + oc.NoRegret(oc.CRPS())
    own = oc.QuantileCalibration(LEVELS) + oc.Recipe(_peak, _share, bound=1)
    yield partial(_panel, "quantiles", lambda frame: frame, low=0, high=100)
    yield partial(_panel, "normals", lambda frame: _one_step(_normals(frame)), pool=True)
    yield partial(_panel, "points", lambda f: _one_step(f.drop(columns=["ETS-lo-80", "ETS-hi-80"])), pool=False)
    yield partial(_panel, "events", lambda frame: _one_step(_events(frame)))
    yield partial(_panel, "labels", lambda frame: _one_step(_labels(frame)))
    for name, payoff in {"hours": hourly, "functions": own}.items():

        def with_hours(frame: Any) -> Any:
            return _one_step(_normals(frame)).assign(hour=frame["ds"].dt.day % 3)

        yield partial(_panel, name, with_hours, low=0, high=100, payoff=payoff)
    yield partial(_panel, "Nixtla", lambda frame: frame, _nixtla)


def _stream() -> Saved:
    """A stream that was killed after some lines."""
    from orcast.stream.session import Session

    lines = stream_lines()
    lines += [{"series": "cup", "id": t, "forecast": {"probabilities": {"home": 0.5, "away": 0.5}}} for t in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.orcast"
        session = Session(path)
        for line in lines[-3:] + lines[:40]:
            session.answer(json.dumps(line).encode())
        session.close()
        return Saved("stream", path.read_bytes(), Session, "stream", tuple(lines[30:70]))


@cache
def saved_states() -> tuple[Saved, ...]:
    """All states that the installed libraries allow."""
    makers = [*_forecasters(), _stream]
    makers += [*_panels()] if find_spec("pandas") else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(make() for make in makers)
