"""What a state does not hold, because it has functions: given again, under a name, whenever the state is loaded.

A set that was written refers to these by name, so none may go, or become another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orcast as oc

LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


def _recipe() -> dict[str, Any]:
    peak = oc.Recipe(lambda y: [y > 80.0], bound=1, jumps=[80.0])
    return {"payoff": oc.QuantileCalibration(LEVELS) + peak + oc.NoRegret(oc.CRPS())}


def _recipe_by_forecast() -> dict[str, Any]:
    """A context that looks at features and at the forecast: how many numbers it has, only a first round tells."""

    def context(x: Any, p: Any) -> list[float]:
        share = min(max(p.mean() / 100.0, 0.0), 1.0)
        return [share * (x["hour"] < 2), share * (x["hour"] >= 2)]

    return {"payoff": oc.QuantileCalibration(LEVELS) + oc.Recipe(lambda y: [y / 100.0], context, bound=1)}


def _recipe_by_features() -> dict[str, Any]:
    """A witness that looks at features of many kinds, so that those of pending rounds count."""

    def witness(y: float, x: Any) -> list[float]:
        late = x["when"].hour >= 12 and x["day"].day > 1 and x["stamp"].astype(int) > 0
        return [(y > x["limit"]) * 0.6, late * y / 200.0 + len(x["tags"]) * 0.1 + float(x["row"][0]) * 0.001]

    context = oc.by("hour", values=range(4))
    return {"payoff": oc.QuantileCalibration(LEVELS) + oc.Recipe(witness, context, bound=1)}


def _custom() -> dict[str, Any]:
    return {"payoff": oc.QuantileCalibration(LEVELS) + oc.Custom(lambda x, p, y: [(y - p.mean()) / 100.0], bound=1)}


def _custom_one_sided() -> dict[str, Any]:
    def gain(x: Any, p: Any, y: int) -> list[float]:
        return [(p.probability() - y) ** 2 - (0.5 - y) ** 2]

    return {"payoff": oc.BinaryCalibration(5) + oc.Custom(gain, bound=1, one_sided=True)}


def _utility(action: str, y: float) -> float:
    """What it brings to have bought much or little of what turns out to be needed."""
    stock = 70.0 if action == "much" else 35.0
    return min(stock, y) / 100.0 - 0.004 * stock


def _decisions() -> dict[str, Any]:
    actions = ["much", "little"]
    return {
        "payoff": oc.payoffs.DecisionCalibration(actions, _utility)
        + oc.payoffs.SwapRegret(actions, _utility, sharpness=10)
    }


def _label_decisions() -> dict[str, Any]:
    def utility(action: str, y: str, x: Any) -> float:
        return x["odds"] * (action == y) - 0.3

    actions = ["home", "away"]
    return {
        "payoff": oc.payoffs.DecisionCalibration(actions, utility, utility_range=2.0)
        + oc.payoffs.SwapRegret(actions, utility, utility_range=2.0, sharpness=5)
    }


def _function_context() -> dict[str, Any]:
    def weather(x: Any) -> list[float]:
        return [0.6 * (x["wind"] > 7.0), 0.05 * x["wind"]]

    return {"payoff": oc.QuantileCalibration(LEVELS, context=oc.by(weather, size=2)) + oc.NoRegret(oc.CRPS())}


def _hourly() -> dict[str, Any]:
    """No function: what a stream of Spark's, which keeps no options, has to be told again."""
    context = oc.by("hour", values=[0.0, 1.0, 2.0])
    return {"payoff": oc.QuantileCalibration(LEVELS, context=context) + oc.NoRegret(oc.CRPS())}


def _anchors() -> dict[str, Any]:
    anchors = [oc.Normal(30, 8), oc.Normal(50, 10), oc.Normal(75, 6)]
    return {"payoff": oc.payoffs.DistributionCalibration(anchors, thresholds=5)}


def _monte_carlo() -> dict[str, Any]:
    nature = oc.paper.MonteCarlo([oc.Normal(10.0 * m, 6.0) for m in range(11)], draws=200, seed=3)
    return {"oracle": oc.Orca(steps=30, cells=10, adversary=nature)}


def _words() -> dict[str, Any]:
    words = ["ab", "abcd", "abcdefgh", "abcdefghijklm"]
    return {"space": oc.Points(words, distance=lambda a, b: abs(len(a) - len(b)))}


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "recipe": _recipe,
    "recipe by forecast": _recipe_by_forecast,
    "recipe by features": _recipe_by_features,
    "custom": _custom,
    "custom one-sided": _custom_one_sided,
    "decisions": _decisions,
    "label decisions": _label_decisions,
    "function context": _function_context,
    "hourly": _hourly,
    "anchors": _anchors,
    "monte carlo": _monte_carlo,
    "words": _words,
}
