"""States of other libraries: forecasts of GluonTS's, and series in a stream of Spark's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import orcast as oc

from ..given import GIVEN
from ..given import LEVELS as FEW
from ..players import Begin, GluonTS, Json, Player, Predictor, Spark, Step
from .base import Case
from .frames import normal_columns, quantile_columns, wave
from .games import INTERVAL
from .rounds import rounded


def _gluonts() -> Iterator[Case]:
    """Forecasts of GluonTS's."""

    def recalibrator(**options: Any) -> Begin:
        def begin(_: Path) -> Player:
            from orcast.integrations.gluonts import ForecastRecalibrator

            return GluonTS(ForecastRecalibrator(space=INTERVAL, **options))

        return begin

    days = [str(np.datetime64("2026-01-01") + t) for t in range(60)]
    y = [rounded(value) for value in np.clip(np.random.default_rng(21).normal(54.0, 12.0, 60), 0.0, 100.0)]

    def outcomes(item: Json, last: int) -> Step:
        """The last days, of which one is missing."""
        first = max(last - 6, 0)
        target = [None if t == 8 else y[t] for t in range(first, last)]
        return {"item": item, "start": days[first], "freq": "D", "target": target}

    def quantiles(item: Json, t: int) -> Step:
        columns = [quantile_columns(t), quantile_columns(t + 1)]
        return {"item": item, "start": days[t], "freq": "D",
                "quantiles": [[name[1:], [each[name] for each in columns]] for name in columns[0]]}  # fmt: skip

    def points(item: Json, t: int) -> Step:
        return {"item": item, "start": days[t], "freq": "D", "samples": [[wave(t)[0], wave(t + 1)[0]]]}

    def backtest(
        make: Callable[[Json, int], Step], items: Sequence[Json], first: int, last: int, known: int
    ) -> list[Step]:
        steps: list[Step] = []
        for t in range(first, last):
            for item in items:
                steps += [outcomes(item, max(t - known, 1)), make(item, t)]
        return steps

    look: Step = {"look": [["north", 1], ["north", 2]]}
    before, after = backtest(quantiles, ["north", None], 3, 12, 0), backtest(quantiles, ["north", None], 12, 25, 0)
    # a forecast that should have come before what is known is refused
    yield Case("gluonts_quantiles", "gluonts", recalibrator(), before, [look, quantiles("north", 9), *after, look])
    before, after = backtest(points, ["north"], 3, 12, 1), backtest(points, ["north"], 12, 30, 1)
    begin = recalibrator(window=5, quantiles=[0.1, 0.5, 0.9], lead_time=1)
    yield Case("gluonts_points", "gluonts", begin, before, [look, *after, look])
    payoff = oc.QuantileCalibration(FEW, context=oc.by("dayofweek", values=range(7)) * oc.by("step", values=[1, 2]))
    before, after = backtest(quantiles, ["north"], 3, 12, 0), backtest(quantiles, ["north"], 12, 30, 0)
    yield Case("gluonts_context", "gluonts", recalibrator(payoff=payoff, memory=20), before, [look, *after, look])
    again = {"given": "recipe"}
    yield Case("gluonts_function", "gluonts", recalibrator(**GIVEN["recipe"]()), before, [look, *after, look], again)

    def predictor(_: Path) -> Player:
        from gluonts.model.seasonal_naive import SeasonalNaivePredictor

        from orcast.integrations.gluonts import ForecastRecalibrator, RecalibratedPredictor

        naive = SeasonalNaivePredictor(prediction_length=2, season_length=7)
        return Predictor(RecalibratedPredictor(naive, ForecastRecalibrator(space=INTERVAL, quantiles=[0.1, 0.5, 0.9])))

    entries: list[Step] = [{"item": "north", "start": days[0], "freq": "D", "target": y[:t]} for t in range(10, 40)]
    yield Case("gluonts_predictor", "predictor", predictor, entries[:8], [look, *entries[8:], look])


def _sparks() -> Iterator[Case]:
    """The state of a series in a stream of Spark's."""
    rng = np.random.default_rng(31)
    y = [rounded(value) for value in rng.normal(54.0, 12.0, 40)]

    def late(
        given: Callable[[int], list[Json]], outcome: Callable[[int], Json], more: int = 0, lag: int = 1
    ) -> list[Step]:
        """Forecasts whose outcomes come some events later, one never; later on others that come again, or too late."""
        nothing = [None] * len(given(0))
        steps: list[Step] = []
        for t in range(22):
            rows = [["a", str(2 * t), str(t), *given(t), None, *_more(t, more)]]
            if t >= lag and t != 17:
                rows.append(["a", str(2 * t + 1), str(t - lag), *nothing, outcome(t - lag), *_more(t, more)])
            if t == 10:
                rows.append(["a", "1", "100", *given(t), None, *_more(t, more)])
            if t == 15:
                rows += [["a", "31", str(id), *nothing, outcome(id), *_more(t, more)] for id in (6, 10)]
            steps.append({"rows": rows})
        return steps

    def case(name: str, columns: str, steps: list[Step], options: dict[str, Json], again: dict[str, Json]) -> Case:
        load = {"columns": columns, "key": ["a"], "most": 4, "remember": 6, **again}

        def begin(_: Path) -> Player:
            return Spark(columns, most=4, remember=6, **options)

        return Case(name, "spark", begin, steps[:10], steps[10:], load)

    def normal(t: int) -> list[Json]:
        return list(normal_columns(t).values())

    head, bounds = "unique_id string, ds bigint, id bigint", {"low": 0.0, "high": 100.0}
    steps = late(lambda t: list(quantile_columns(t).values()), lambda t: y[t], lag=2)
    yield case("spark_quantiles", f"{head}, q0.1 double, q0.5 double, q0.9 double, y double", steps, bounds, bounds)
    two = f"{head}, A double, B double, B-lo-80 double, B-hi-80 double, y double"
    steps = late(lambda t: [wave(t)[0], wave(t)[0], wave(t)[0] - 5.0, wave(t)[0] + 6.0], lambda t: y[t])
    both = {"model": ["A", "B"]}
    yield case("spark_two_models", two, steps, both, both)
    steps = late(lambda t: [rounded(0.5 + 0.4 * math.sin(t), 2)], lambda t: float(y[t] > 54.0))
    yield case("spark_binary", f"{head}, p double, y double", steps, {}, {})

    def chances(t: int) -> list[Json]:
        home = rounded(0.4 + 0.3 * math.sin(t), 2)
        return [home, 0.2, rounded(0.8 - home, 2)]

    steps = late(chances, lambda t: ("home", "draw", "away")[int(y[t]) % 3])
    yield case("spark_labels", f"{head}, p_home double, p_draw double, p_away double, y string", steps, {}, {})
    steps = late(normal, lambda t: y[t], more=2)
    sides = {"low": "floor", "high": "roof"}
    bounded = f"{head}, mean double, sd double, y double, floor double, roof double"
    yield case("spark_row_bounds", bounded, steps, sides, sides)
    steps = late(normal, lambda t: y[t], more=1)
    hourly = f"{head}, mean double, sd double, y double, hour double"
    for name, given in (("spark_context", "hourly"), ("spark_function", "recipe by forecast")):
        yield case(name, hourly, steps, {**bounds, **GIVEN[given]()}, {**bounds, "given": given})


def _more(t: int, count: int) -> list[Json]:
    """Bounds of a row, or an hour."""
    return [[], [float(t % 3)], [float(t % 4), 90.0 + t % 5]][count]


def cases() -> Iterator[Case]:
    """All of them."""
    for some in (_gluonts, _sparks):
        yield from some()
