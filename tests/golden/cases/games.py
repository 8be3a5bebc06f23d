"""Games by themselves: every space, context, payoff and oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import orcast as oc

from ..given import GIVEN
from ..given import LEVELS as FEW
from ..players import Forecasts, Game, Level, Player, Pooled, Step
from .base import Case
from .rounds import (
    PLACES,
    Draw,
    Scripted,
    alone,
    bet,
    by_turns,
    corner,
    crossing,
    direction,
    event,
    every_id,
    long,
    many_ids,
    match,
    nothing_before,
    one_by_one,
    quantity,
    rounded,
    some_ids,
    too_many,
    vector,
    weekly,
    with_experts,
    with_features,
    with_many_features,
    word,
)

SMALL = {"cells": 8, "tail_cells": 1}
INTERVAL, QUANTITY = oc.Interval(0, 100, **SMALL), quantity()
LABELS, CIRCLE = oc.Labels(["home", "draw", "away"]), oc.Circle(360, cells=8)
BOX = oc.Box([(0, 1), (-5, 5)], cells=(2, 3))


def _in_a_pool(_: Path) -> Player:
    pool = oc.Pool()
    return Pooled(pool, [oc.Recalibrator(INTERVAL, pool=pool) for _ in range(2)])


def _hours(**options: Any) -> Any:
    return oc.by("hour", values=[0, 1, 2], other=True, **options)


def _defaults() -> Iterator[Case]:
    """What most people save: a recalibrator with nothing said but its space."""
    yield _game("interval", INTERVAL, QUANTITY, script=every_id)
    yield _game("half_line", oc.HalfLine(0, **SMALL), quantity(), script=many_ids)
    yield _game("line", oc.Line(**SMALL), quantity(-200.0, 50.0), script=many_ids)
    yield _game("usual_cells", oc.Interval(0, 36_000), quantity(0.0, 36_000.0))
    yield _game("binary", oc.Binary(), event, script=every_id)
    yield _game("labels", LABELS, match, script=every_id)
    yield _game("circle", CIRCLE, direction)
    yield _game("box", BOX, vector)
    yield _game("points", oc.Points(PLACES), corner)
    yield _game("points_with_distance", None, word, given="words")
    yield _game("experts", INTERVAL, with_experts(QUANTITY))
    yield _game("season", oc.Line(**SMALL), weekly, script=long)
    yield Case("pooled", "pooled", _in_a_pool, *by_turns(QUANTITY, _seed("pooled")))
    yield _game("experts_binary", oc.Binary(), with_experts(event))
    yield _game("experts_labels", LABELS, with_experts(match))
    yield _game("memory_clipped", oc.Interval(20, 60, **SMALL), QUANTITY, memory=20, outside="clip")
    yield _game("crossed", INTERVAL, crossing(QUANTITY), max_pending=2, script=too_many)
    yield _game("not_begun", INTERVAL, QUANTITY, script=nothing_before)


def _contexts() -> Iterator[Case]:
    """Payoffs with contexts of every kind, and features of pending rounds."""
    q, regret = oc.QuantileCalibration, oc.NoRegret(oc.CRPS())
    featured = with_features(QUANTITY)
    yield _game("by_values", INTERVAL, featured, q(FEW, context=_hours()) + oc.MomentMatching(2) + regret)
    level, spread = oc.by_expert("level", edges=[40, 60]), oc.by_expert("spread", edges=[12])
    yield _game("by_expert", INTERVAL, QUANTITY, q(FEW, context=level) + oc.MomentMatching(1, context=spread))
    both = _hours() * oc.by_last_error() | oc.by("wind", edges=[5, 10], soft=2.0)
    yield _game("by_both", INTERVAL, featured, q([0.5], context=both, weight=2.0) + q(FEW) + regret)
    yield _game("by_function", INTERVAL, featured, given="function context")
    binary = oc.BinaryCalibration(5, context=_hours()) + oc.payoffs.Calibeating(5, weight=0.5)
    yield _game("by_values_binary", oc.Binary(), with_features(event), binary + oc.NoRegret(oc.Brier()))
    labels = oc.LabelCalibration(5, context=_hours()) + oc.NoRegret(oc.Brier())
    yield _game("by_values_labels", LABELS, with_features(match), labels)


def _payoffs() -> Iterator[Case]:
    """Payoffs of every kind that others do not have."""
    crps = oc.NoRegret(oc.CRPS(), oc.MSE())
    several = oc.QuantileCalibration(FEW) + oc.IntervalCalibration([0.5, 0.9]) + oc.MomentMatching(3)
    yield _game("ordered_payoffs", INTERVAL, QUANTITY, several + oc.payoffs.MarginalCalibration([20, 60]) + crps)
    threshold = oc.payoffs.ThresholdCalibration([30, 60], grid=5)
    yield _game("threshold", INTERVAL, QUANTITY, threshold + oc.QuantileCalibration(FEW))
    yield _game("distribution", INTERVAL, QUANTITY, oc.payoffs.DistributionCalibration(3, thresholds=5, width=0.05))
    yield _game("distribution_anchors", INTERVAL, QUANTITY, given="anchors")
    distribution = oc.payoffs.DistributionCalibration(3, width=0.3)
    yield _game("distribution_labels", LABELS, match, distribution + oc.NoRegret(oc.scores.LogScore()))
    scores = oc.NoRegret(oc.scores.QuantileScore([0.1, 0.9]), oc.scores.LogScore(), oc.CRPS(), oc.MSE())
    yield _game("scores", INTERVAL, with_experts(QUANTITY), oc.QuantileCalibration(FEW) + scores)
    yield _game(
        "scores_binary", oc.Binary(), event, oc.BinaryCalibration(5) + oc.NoRegret(oc.Brier(), oc.scores.LogScore())
    )
    yield _game("top_label", LABELS, match, oc.payoffs.TopLabelCalibration(5) + oc.payoffs.SimplexCalibration(2))
    yield _game("recipe", INTERVAL, QUANTITY, given="recipe")
    yield _game("recipe_by_forecast", INTERVAL, with_features(QUANTITY), given="recipe by forecast")
    yield _game("recipe_by_features", INTERVAL, with_many_features(QUANTITY), given="recipe by features")
    yield _game("custom", INTERVAL, QUANTITY, given="custom")
    yield _game("custom_one_sided", oc.Binary(), event, given="custom one-sided")


def _oracles() -> Iterator[Case]:
    """Games by every oracle."""
    quantiles = oc.QuantileCalibration(FEW)

    def game(name: str, space: Any, draw: Draw, payoff: Any = None, oracle: Any = None, **more: Any) -> Case:
        return _game(name, space, draw, payoff, oracle=oracle, kind="Forecaster", **more)

    yield game("equilibrium", INTERVAL, alone(QUANTITY), quantiles, oc.Equilibrium(temperature=3), script=one_by_one)
    yield game("equilibrium_binary", oc.Binary(), event)
    yield game("equilibrium_labels", LABELS, alone(match), oc.LabelCalibration(5), memory=20, script=one_by_one)
    yield game("committee", oc.Line(**SMALL), QUANTITY, quantiles, oc.Committee(temperature=4))
    few = {"steps": 30, "cells": 10}
    yield game("orca", INTERVAL, QUANTITY, quantiles, oc.Orca(**few))
    options = {"adversary": "dirac", "soft": 0.1, "jitter": 0.01, "atoms": True}
    last = oc.Orca(start="last", optimizer=oc.paper.Adam(rate=0.05, first=0.8, second=0.99), **few, **options)
    yield game("orca_last", INTERVAL, alone(QUANTITY), oc.MomentMatching(2), last, script=one_by_one)
    # where choices of Nature's are tied, rounding decides between forecasts far apart: a soft maximum has no ties
    yield game(
        "orca_mixture", INTERVAL, QUANTITY, quantiles, oc.Orca(family=oc.paper.GaussianMixture(2), soft=0.1, **few)
    )
    yield game("orca_labels", LABELS, match, oc.LabelCalibration(5), oc.Orca(steps=30))
    yield game("orca_monte_carlo", INTERVAL, QUANTITY, quantiles, given="monte carlo")
    yield game("binary_root", oc.Binary(), event, oc.BinaryCalibration(5), oc.paper.BinaryRoot(tolerance=1e-10))
    yield game("two_cells", INTERVAL, QUANTITY, quantiles + oc.IntervalCalibration(0.8), oc.paper.TwoCells())
    hull = {"oracle": oc.paper.MomentHull(), "compare": "moments", "script": one_by_one}
    yield game("moment_hull", INTERVAL, QUANTITY, oc.payoffs.MomentBasedCalibration(3), **hull)
    yield game("simplex_grid", LABELS, match, oc.payoffs.SimplexCalibration(3), oc.paper.SimplexGrid())
    yield game(
        "simplex_grid_drawn",
        LABELS,
        match,
        oc.payoffs.SimplexCalibration(3),
        oc.paper.SimplexGrid(randomised=True, seed=5),
    )
    yield game("decision_game", INTERVAL, QUANTITY, oracle=oc.paper.DecisionGame(), given="decisions")
    yield game("decision_game_labels", LABELS, bet, oracle=oc.paper.DecisionGame(), given="label decisions")
    yield game("conformal", INTERVAL, QUANTITY, oc.payoffs.LevelCalibration(0.9, grid=6), oc.paper.ConformalLevel(0.9))


def _game(
    name: str,
    space: Any,
    draw: Draw,
    payoff: Any = None,
    *,
    kind: str = "Recalibrator",
    given: str | None = None,
    needs: str | None = None,
    compare: str | None = None,
    script: Callable[[Draw, int], Scripted] = some_ids,
    **settings: Any,
) -> Case:
    def begin(_: Path) -> Player:
        again = {} if given is None else GIVEN[given]()
        options = {"space": space, "payoff": payoff, **settings, **again}
        return Game(Game.CLASSES[kind](**options))

    options = {"class": kind, "given": given, "needs": needs, "compare": compare}
    there = {key: value for key, value in options.items() if value is not None}
    return Case(name, "game", begin, *script(draw, _seed(name)), there)


def _seed(name: str) -> int:
    return int.from_bytes(name.encode(), "little") % 2**32


def _partitions() -> Iterator[Case]:
    """A forecaster for each cell of what an expert may say."""

    def partition(name: str, space: Any, draw: Draw, **options: Any) -> Case:
        before, after = one_by_one(draw, _seed(name))
        load = {"class": "PartitionedRecalibrator"}
        return Case(
            name, "game", lambda _: Game(oc.paper.PartitionedRecalibrator(space, **options)), before, after, load
        )

    yield partition("partition_binary", oc.Binary(), event, cells=2, grid=5)
    yield partition("partition_labels", LABELS, match, cells=2, grid=5, scores=[oc.Brier(), oc.scores.LogScore()])
    yield partition("partition_interval", INTERVAL, QUANTITY, cells=2, bins=3, grid=5)
    yield partition("partition_line", oc.Line(**SMALL), QUANTITY, cells=2, bins=[40, 60], grid=5, outside="clip")


def _levels() -> Iterator[Case]:
    """Conformal levels by themselves."""
    outcomes = np.random.default_rng(0).beta(2.0, 1.0, 60)
    steps: list[Step] = [{"y": rounded(each, 3)} for each in outcomes]
    after = [{"look": None}, *steps[30:], {"look": None}]
    for name, options in {
        "conformal_level": {"grid": 10},
        "conformal_level_drawn": {"grid": 10, "randomised": True, "seed": 7, "head_start": 1.0},
    }.items():
        yield Case(
            name, "level", lambda _, some=options: Level(oc.paper.ConformalLevel(0.8, **some)), steps[:30], after
        )


def _forecasts() -> Iterator[Case]:
    """Forecasts in their plain form."""
    made = {
        "Forecast": [
            oc.Recalibrator(space).predict(oc.Normal(40, 8))
            for space in (INTERVAL, oc.HalfLine(0, **SMALL), oc.Line(**SMALL))
        ],
        "BinaryForecast": [oc.forecasts.BinaryForecast(0.3)],
        "LabelForecast": [oc.forecasts.LabelForecast(["home", "draw", 3], [0.5, 0.3, 0.2])],
        "CircleForecast": [oc.Recalibrator(CIRCLE).predict((40, 20))],
        "BoxForecast": [oc.Recalibrator(BOX).predict([oc.Normal(0.4, 0.1), oc.Normal(1, 2)])],
        "PointsForecast": [oc.Recalibrator(oc.Points(PLACES)).predict([0.2, 0.2, 0.2, 0.3, 0.1])],
    }
    steps: list[Step] = [{"class": kind, "plain": p.to_plain()} for kind, each in made.items() for p in each]
    yield Case("forecasts", "forecasts", lambda _: Forecasts(), [], steps)


def cases() -> Iterator[Case]:
    """All of them."""
    for some in (_defaults, _contexts, _payoffs, _oracles, _partitions, _levels, _forecasts):
        yield from some()
