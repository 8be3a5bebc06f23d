"""Compiles what games use into the cache of kernels: for images, continuous integration and new machines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from orcast.jit import background
from orcast.jit.background import Wanted
from orcast.jit.entry import recorded

VALUES = (40.0, 60.0, 50.0)


def short_games() -> Iterator[Callable[[], object]]:
    """Games of a few rounds that call the entry kernels of ordinary use; rarer ones are compiled when they are used."""
    import orcast as oc

    space, normal = oc.Interval(0, 100), oc.Normal(50, 5)
    hour = oc.by("hour", values=range(2))
    everything = oc.QuantileCalibration(context=hour) + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS(), oc.MSE())
    experts = {"a": normal, "b": oc.Normal(52, 9)}
    events = oc.payoffs.ThresholdCalibration([45.0, 55.0])

    def play(game: Any, *forecast: Any, values: Any = VALUES, **options: Any) -> None:
        for i in range(len(values)):
            p = game.predict(*forecast, id=i, **options)
            if hasattr(p, "quantile"):
                p.quantile([0.1, 0.9])
                p.to_normal()
            if hasattr(p, "var"):
                p.var()
        for i, y in enumerate(values):
            game.update(y, id=i)

    yield lambda: play(oc.Recalibrator(space), normal)
    yield lambda: play(oc.Recalibrator(), normal)
    yield lambda: oc.Recalibrator(space).run([normal] * 3, VALUES)
    yield lambda: play(oc.Recalibrator(space, everything), experts=experts, x={"hour": 1})
    yield lambda: play(oc.Forecaster(space))
    yield lambda: play(oc.Forecaster(space, oc.QuantileCalibration() + events, oracle=oc.Committee()), normal)
    yield lambda: play(oc.Recalibrator(space, oc.Recipe(witness=lambda y: [y > 45.0], bound=1.0)), normal)
    yield lambda: play(oc.Forecaster(space, oracle=oc.Orca(steps=2)))
    yield lambda: play(oc.Recalibrator(oc.Binary()), 0.4, values=(0, 1, 1))
    yield lambda: oc.Recalibrator(oc.Binary()).run([0.4] * 3, [0, 1, 1])
    yield lambda: play(oc.Recalibrator(oc.Labels(["a", "b", "c"])), [0.5, 0.3, 0.2], values="abb")
    yield lambda: play(oc.Recalibrator(oc.Circle(360)), oc.Normal(50, 5))
    if find_spec("pandas") or find_spec("polars"):
        yield frame


def frame() -> object:
    """A frame with late outcomes."""
    from importlib import import_module

    import orcast as oc

    library = import_module("pandas" if find_spec("pandas") else "polars")
    columns = {"time": [4, 5, 6], "cutoff": [1, 2, 3], "model": [45.0, 55.0, 52.0], "y": VALUES}
    return oc.recalibrate(library.DataFrame(columns), y="y", model="model", time="time", cutoff="cutoff")


# Called with what is done, and how many of how many are.
Step = Callable[[str, int, int], object]


def wanted(step: Step = lambda what, done, of: None) -> list[Wanted]:
    """Every entry kernel that the games call, with the types of its arguments."""
    found: dict[str, Wanted] = {}
    games = list(short_games())
    for done, play in enumerate(games):
        step("short games played, to see what is called", done, len(games))
        with recorded() as calls:
            play()
        for entry, args in calls:
            one = background.wanted_for(entry, args)
            found.setdefault(one.key, one)
    return list(found.values())


def warm(step: Step = lambda what, done, of: None) -> tuple[int, float]:
    """Compile what the cache has not; how many entry kernels there are, and the seconds it took."""
    began = time.perf_counter()
    every = wanted(step)
    for done, one in enumerate(every):
        step("kernels compiled", done, len(every))
        if not background.compile_here(one):
            raise RuntimeError("expected numba to compile kernels with, got none that can be imported")
    step("kernels compiled", len(every), len(every))
    return len(every), time.perf_counter() - began
