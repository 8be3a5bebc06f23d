"""Data frames: panels of every form, and those of Nixtla's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import orcast as oc

from ..given import GIVEN
from ..given import LEVELS as FEW
from ..players import Json, Nixtla, Panel, Player, Step
from .base import Case
from .rounds import rounded

Frame = dict[str, Json]


class Rows:
    """Rows of forecasts of some series, in columns."""

    def __init__(self, seed: int, series: Sequence[Json], steps: int, *, dates: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.series, self.steps, self.dates = series, steps, dates
        self.y = {repr(key): [rounded(v) for v in self.rng.normal(54.0, 12.0, steps)] for key in series}

    def time(self, t: int) -> Json:
        return str(np.datetime64("2026-01-01") + t) if self.dates else t

    def frame(
        self, first: int, last: int, known: int, forms: Callable[[int], Frame], name: str | None = "unique_id"
    ) -> Frame:
        """The rows from one time to another, with the outcomes of times before `known`."""
        found: dict[str, list[Json]] = {}
        for key in self.series:
            for t in range(first, last):
                row = {"ds": self.time(t), "y": self.y[repr(key)][t] if t < known else {"float": "nan"}, **forms(t)}
                for column, value in (row if name is None else {name: key, **row}).items():
                    found.setdefault(column, []).append(value)
        return self.columns(found)

    def columns(self, found: dict[str, list[Json]]) -> Frame:
        return {k: {"dates": v} if self.dates and k in ("ds", "cutoff") else v for k, v in found.items()}


def wave(t: int) -> tuple[float, float]:
    """Mean and deviation of a forecast."""
    return rounded(50.0 + 10.0 * math.sin(t / 3.0)), 4.0 + t % 3


def quantile_columns(t: int) -> Frame:
    mean, sd = wave(t)
    return {f"q{level}": rounded(mean + z * sd) for level, z in ((0.1, -1.2), (0.5, 0.1), (0.9, 1.3))}


def normal_columns(t: int) -> Frame:
    mean, sd = wave(t)
    return {"mean": mean, "sd": sd}


def _quantities() -> Iterator[Case]:
    """Every form of a forecast of a number."""
    rows = Rows(1, ["north", "south"], 30, dates=True)
    for outcomes in rows.y.values():
        outcomes[5] = outcomes[14] = 85.0  # outside
    before = [rows.frame(0, 9, 7, quantile_columns), rows.frame(7, 12, 11, quantile_columns)]
    # with several rows pending, how late outcomes usually come matters
    after = [rows.frame(10, 20, 15, quantile_columns), rows.frame(13, 30, 30, quantile_columns)]
    after[1]["y"][0] += 1.0  # corrected
    levels = {"levels": [0.05, 0.5, 0.95]}
    yield _panel("panel_quantiles", before, after, {"low": 0, "high": 80, **levels}, levels)

    rows = Rows(3, [7], 30)

    def points(t: int) -> Frame:
        mean, _ = wave(t)
        return {"A": mean, "B": mean + 2.0, "B-lo-80": mean - 3.0, "B-hi-80": mean + 8.0}

    before, after = [rows.frame(0, 12, 11, points)], [rows.frame(11, 20, 19, points), rows.frame(18, 30, 30, points)]
    after.append(rows.frame(2, 6, 30, points))  # forgotten
    both = {"model": ["A", "B"]}
    bounds = {"low": {7: 0.0}, "high": {7: 100.0}}
    yield _panel("panel_two_models", before, after, {**both, **bounds}, both, remember=6)

    rows = Rows(8, ["east", "west"], 30)
    before = [rows.frame(0, 9, 8, normal_columns), rows.frame(8, 12, 11, normal_columns)]
    after = [rows.frame(10, 20, 18, normal_columns), rows.frame(17, 30, 28, normal_columns)]
    yield _panel("panel_pooled", before, after, {"low": 0, "pool": True})

    rows = Rows(6, ["x"], 30)

    def members(t: int) -> Frame:
        mean, sd = wave(t)
        return {f"member_{i}": rounded(mean + z * sd) for i, z in enumerate((-1.0, 1.2, 0.1))}

    yield _panel("panel_members", [rows.frame(0, 12, 11, members)], [rows.frame(11, 30, 28, members)])

    def bounded(t: int) -> Frame:
        return {**normal_columns(t), "floor": float(t % 4), "roof": 90.0 + t % 5}

    sides = {"low": "floor", "high": "roof"}
    yield _panel("panel_row_bounds", [rows.frame(0, 12, 11, bounded)], [rows.frame(11, 30, 28, bounded)], sides, sides)


def _probabilities() -> Iterator[Case]:
    """Events and labels."""
    rows = Rows(4, ["x"], 30)
    rows.y = {key: [int(value > 54.0) for value in values] for key, values in rows.y.items()}

    def chance(t: int) -> Frame:
        return {"p": rounded(0.5 + 0.4 * math.sin(t), 2)}

    after = [rows.frame(10, 18, 18, chance), rows.frame(18, 30, 28, chance)]
    yield _panel("panel_binary", [rows.frame(0, 12, 10, chance)], after)

    rows = Rows(5, ["x"], 30)
    rows.y = {key: [("home", "draw", "away")[int(value) % 3] for value in values] for key, values in rows.y.items()}

    def chances(t: int) -> Frame:
        home = rounded(0.4 + 0.3 * math.sin(t), 2)
        return {"p_home": home, "p_draw": 0.2, "p_away": rounded(0.8 - home, 2)}

    frames = [rows.frame(0, 12, 10, chances), rows.frame(10, 30, 28, chances)]
    for frame in frames:
        frame["y"] = [None if isinstance(y, dict) else y for y in frame["y"]]
    yield _panel("panel_labels", frames[:1], frames[1:])


def _payoffs() -> Iterator[Case]:
    """Payoffs with features, whose functions are given again."""
    rows = Rows(6, ["x"], 30)

    def hourly(t: int) -> Frame:
        return {**normal_columns(t), "hour": t % 3}

    before, after = [rows.frame(0, 12, 11, hourly)], [rows.frame(11, 30, 28, hourly)]
    payoff = oc.QuantileCalibration(FEW, context=oc.by("hour", values=range(3))) + oc.NoRegret(oc.CRPS())
    yield _panel("panel_context", before, after, {"payoff": payoff})
    given = "recipe by forecast"
    yield _panel("panel_function", before, after, {"low": 0, "high": 100, **GIVEN[given]()}, {"given": given})


def _keys_and_times() -> Iterator[Case]:
    """Series by two columns, cutoffs with and without horizons, and rows without a time."""
    rows = Rows(6, ["x"], 30)

    def placed(t: int) -> Frame:
        return {"region": "west", "site": t % 2, **normal_columns(t)}

    keys = {"series": ["region", "site"], "time": "ds", "y": "y"}
    before, after = [rows.frame(0, 13, 12, placed, None)], [rows.frame(12, 30, 28, placed, None)]
    yield _panel("panel_keys", before, after, keys, keys)

    frames = [
        {k: v for k, v in rows.frame(a, b, b, normal_columns).items() if k != "ds"} for a, b in ((0, 12), (12, 30))
    ]
    yield _panel("panel_counted", frames[:1], frames[1:])

    rows = Rows(2, ["a"], 40)
    frames = [_with_cutoffs(rows, first, last, known) for first, last, known in ((0, 9, 9), (9, 12, 12), (12, 24, 24))]
    # that the first row is the second step of its cutoff, only the state knows
    frames[2] = {name: values[1:] for name, values in frames[2].items()}
    yield _panel("panel_cutoffs", frames[:2], frames[2:], {"low": 0})
    rows.dates = True
    frames = [_with_cutoffs(rows, first, last, last + 1, horizon=True) for first, last in ((0, 12), (12, 24))]
    yield _panel("panel_horizons", frames[:1], frames[1:], {"low": 0})


def cases() -> Iterator[Case]:
    """All of them."""
    for some in (_quantities, _probabilities, _payoffs, _keys_and_times):
        yield from some()
    yield _nixtla()


def _with_cutoffs(rows: Rows, first: int, last: int, known: int, *, horizon: bool = False) -> Frame:
    """Two steps ahead at each cutoff; those of the last cutoffs before come again, with their outcomes."""
    found: dict[str, list[Json]] = {}
    for cutoff in range(max(first - 2, 0), last):
        for ahead in (1, 2):
            t = cutoff + ahead
            y = rows.y[repr("a")][t] if t < known else {"float": "nan"}
            row = {"unique_id": "a", "cutoff": rows.time(cutoff), "ds": rows.time(t), "y": y}
            row |= normal_columns(t + ahead) | ({"horizon": ahead} if horizon else {})
            for column, value in row.items():
                found.setdefault(column, []).append(value)
    return rows.columns(found)


def _panel(
    name: str,
    before: list[Frame],
    after: list[Frame],
    options: dict[str, Any] | None = None,
    again: dict[str, Json] | None = None,
    *,
    remember: int | None = None,
) -> Case:
    def begin(path: Path) -> Player:
        if remember is not None:
            oc.PanelState(remember=remember).save(path.with_suffix(".orcast"))
        return Panel(path, options or {})

    steps: list[Step] = [{"look": None}, *({"frame": frame} for frame in after), {"look": None}]
    return Case(name, "panel", begin, [{"frame": frame} for frame in before], steps, again or {})


def _nixtla() -> Case:
    rows = Rows(7, ["A"], 30, dates=True)

    def ets(t: int) -> Frame:
        mean, sd = wave(t)
        return {"ETS": mean, "ETS-lo-90": mean - sd, "ETS-hi-90": mean + sd}

    history = rows.frame(1, 12, 12, ets)
    history["cutoff"] = {"dates": [rows.time(t - 1) for t in range(1, 12)]}

    def step(first: int, known: Json) -> Step:
        frame = rows.frame(first, first + 1, 0, ets)
        del frame["y"]
        return {"frame": frame, "history": known}

    def outcomes(last: int) -> Frame:
        return rows.frame(last - 3, last, last, lambda t: {})

    before = [step(12, history), step(13, outcomes(13))]
    after: list[Step] = [{"look": None}, *(step(t, outcomes(t)) for t in range(14, 26)), {"look": None}]
    return Case("nixtla", "nixtla", lambda path: Nixtla(path, {"low": 0}), before, after)
