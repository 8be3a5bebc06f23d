"""Rounds of a game: what is forecast and what comes, and in which order the rounds are settled.

The numbers are drawn here; a set that is written has them in it, so that nothing is drawn when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from ..players import Json, Step


@dataclass
class Round:
    """What is given in a round, and what comes of it."""

    forecast: Json
    y: Json
    x: Json = None
    experts: Json = None


Draw = Callable[[np.random.Generator, int], Round]


class Script:
    """Steps of a game, each with the next round that is drawn."""

    def __init__(self, draw: Draw, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._rounds: Iterator[Round] = (draw(rng, t) for t in count())
        self._outcomes: dict[str, Json] = {}
        self.steps: list[Step] = []

    def predict(self, *ids: Json) -> None:
        for id in ids:
            each = next(self._rounds)
            self._outcomes[repr(id)] = each.y
            given = {"id": id, "x": each.x, "experts": each.experts}
            self.steps.append({"predict": each.forecast, **{k: v for k, v in given.items() if v is not None}})

    def update(self, *ids: Json) -> None:
        for id in ids:
            step = {"update": self._outcomes.pop(repr(id))}
            self.steps.append(step if id is None else {**step, "id": id})

    def drop(self, id: Json) -> None:
        self.steps.append({"drop": id})

    def turns(self, rounds: int) -> None:
        for _ in range(rounds):
            self.predict(None)
            self.update(None)

    def history(self, rounds: int) -> None:
        """Rounds that are played at once."""
        each = [next(self._rounds) for _ in range(rounds)]
        step: Step = {"history": [r.y for r in each]}
        if each[0].experts is None:
            step["forecasts"] = [r.forecast for r in each]
        else:
            step["experts"] = {name: [r.experts.get(name) for r in each] for name in NAMES}
        if each[0].x is not None:
            step["x"] = [r.x for r in each]
        self.steps.append(step)

    def look(self) -> None:
        self.steps.append({"look": None})

    def cut(self) -> list[Step]:
        steps, self.steps = self.steps, []
        return steps


TUPLE, DATETIME, DATE = {"tuple": ["north", 3]}, {"datetime": "2026-01-05T14:00:00"}, {"date": "2026-01-05"}
ZONED, HOUR = {"datetime": "2026-01-05T14:00:00+01:00"}, {"datetime64": ["2026-01-05T16", "h"]}


Scripted = tuple[list[Step], list[Step]]  # what is played before the state is saved, and after


def many_ids(draw: Draw, seed: int, more: Sequence[Json] = ()) -> Scripted:
    """Rounds under ids of several kinds that are settled late, out of order, dropped, or pending when it is saved."""
    script = Script(draw, seed)
    script.history(12)
    script.predict("late", 7, "gone")
    script.turns(2)
    script.predict(TUPLE, DATETIME)
    script.update(7)
    script.predict(7, *more, None)
    before = script.cut()
    script.look()
    script.update(DATETIME)
    script.predict("new")
    script.update(None, *more[1:])
    script.turns(3)
    script.drop("gone")
    script.update("new", TUPLE)
    script.predict(DATETIME)
    script.turns(4)
    script.look()
    script.update("late", DATETIME, *more[:1], 7)
    script.turns(4)
    script.history(6)
    script.look()
    return before, script.cut()


def every_id(draw: Draw, seed: int) -> Scripted:
    """The same with ids of every kind."""
    return many_ids(draw, seed, more=(2.5, DATE, HOUR, ZONED))


def some_ids(draw: Draw, seed: int, *, history: bool = True) -> Scripted:
    """The same with fewer pending rounds."""
    script = Script(draw, seed)
    if history:
        script.history(10)
    else:
        script.turns(10)
    script.predict("late", 7)
    script.turns(3)
    script.update(7)
    script.turns(1)
    script.predict(None)
    before = script.cut()
    script.look()
    script.predict(TUPLE)
    script.update(None)
    script.turns(4)
    script.update(TUPLE)
    script.turns(5)
    script.update("late")
    if history:
        script.turns(2)
        script.history(6)
    else:
        script.turns(6)
    script.look()
    return before, script.cut()


def one_by_one(draw: Draw, seed: int) -> Scripted:
    """The same for games whose rounds cannot be played at once."""
    return some_ids(draw, seed, history=False)


def nothing_before(draw: Draw, seed: int) -> Scripted:
    """A game in which nothing has happened when it is saved."""
    script = Script(draw, seed)
    script.look()
    script.turns(6)
    script.predict("late")
    script.turns(3)
    script.update("late")
    script.history(12)
    script.look()
    return [], script.cut()


def long(draw: Draw, seed: int) -> Scripted:
    """A long history before it is saved."""
    script = Script(draw, seed)
    script.history(150)
    script.predict("late")
    before = script.cut()
    script.look()
    script.turns(8)
    script.update("late")
    script.history(14)
    script.look()
    return before, script.cut()


def by_turns(draw: Draw, seed: int) -> Scripted:
    """Two games of a pool, one round each in turn."""
    scripts = [Script(draw, seed + number) for number in range(2)]

    def rounds(count: int) -> list[Step]:
        for _ in range(count):
            for script in scripts:
                script.turns(1)
        pairs = zip(*(script.cut() for script in scripts), strict=True)
        return [{**step, "game": number} for pair in pairs for number, step in enumerate(pair)]

    def each(act: str, id: Json) -> list[Step]:
        for script in scripts:
            getattr(script, act)(id)
        return [{**step, "game": number} for number, script in enumerate(scripts) for step in script.cut()]

    before = rounds(12) + each("predict", "late") + rounds(3)
    look: Step = {"look": None}
    return before, [look, *rounds(8), *each("update", "late"), *rounds(8), look]


def too_many(draw: Draw, seed: int) -> Scripted:
    """More rounds are pending than the two that may be, before it is saved and after."""
    script = Script(draw, seed)
    script.history(10)
    script.predict("gone", "first", "second")
    before = script.cut()
    script.look()
    script.predict("third")
    script.update("third")
    script.turns(12)
    script.update("second")
    script.history(10)
    script.look()
    return before, script.cut()


def rounded(value: float, digits: int = 1) -> float:
    return round(float(value), digits)


# Levels, and how many deviations from the centre their quantiles are.
SCORES = ((0.1, -1.3), (0.5, 0.1), (0.9, 1.4))


def quantity(low: float = 0.0, high: float = 100.0) -> Draw:
    """A quantity around a wave, which the forecasts follow too narrowly, and now and then its lower bound."""

    def draw(rng: np.random.Generator, t: int) -> Round:
        size = 0.01 * (high - low)
        centre = low + size * (50.0 + 25.0 * math.sin(t / 3.0)) + size * rng.normal(0.0, 4.0)
        spread = size * rng.uniform(3.0, 6.0)
        y = min(max(centre + size * rng.normal(4.0, 11.0), low), high)
        if rng.random() < 0.1:
            y = low
        forms: list[Json] = [
            {"normal": [rounded(centre), rounded(spread)]},
            {"quantiles": [[level, rounded(centre + spread * z)] for level, z in SCORES]},
            {"ensemble": [rounded(value) for value in rng.normal(centre, spread, 5)]},
            {"tuple": [rounded(centre), rounded(spread)]},
        ]
        return Round(forms[t % len(forms)], rounded(y))

    return draw


def with_features(draw: Draw) -> Draw:
    """An hour and a wind beside each forecast."""

    def featured(rng: np.random.Generator, t: int) -> Round:
        each = draw(rng, t)
        each.x = {"hour": int(rng.integers(4)), "wind": rounded(rng.uniform(0.0, 15.0))}
        return each

    return featured


def with_many_features(draw: Draw) -> Draw:
    """Features of every kind that can be saved."""

    def featured(rng: np.random.Generator, t: int) -> Round:
        each = draw(rng, t)
        day = 1 + t % 28
        each.x = {
            "hour": int(rng.integers(4)),
            "limit": rounded(rng.uniform(30.0, 80.0)),
            "when": {"datetime": f"2026-01-{day:02d}T{t % 24:02d}:30:00"},
            "day": {"date": f"2026-01-{day:02d}"},
            "stamp": {"datetime64": [f"2026-01-{day:02d}", "D"]},
            "tags": {"tuple": ["dry", t % 3, None]},
            "row": {"array": [rounded(rng.uniform()), {"float": "nan"}]},
            "list": [1, 2.5, "three"],
            "far": {"float": "inf"},
            "flag": t % 2 == 0,
            "none": None,
        }
        return each

    return featured


NAMES = ("tree", "net", "none")


def with_experts(draw: Draw) -> Draw:
    """Three experts, of whom one is often missing, in the first round too."""

    def several(rng: np.random.Generator, t: int) -> Round:
        rounds = [draw(rng, t + i) for i in range(3)]
        experts = dict(zip(NAMES, (each.forecast for each in rounds), strict=True))
        if t % 3 == 0:
            experts["net"] = None
        if t % 4 == 2:
            del experts["none"]
        return Round(None, rounds[0].y, experts=experts)

    return several


def weekly(rng: np.random.Generator, t: int) -> Round:
    """Outcomes that are larger on one day of seven, of which the forecasts do not know."""
    centre = 40.0 + rng.normal(0.0, 3.0)
    y = centre + 20.0 * (t % 7 == 3) + rng.normal(0.0, 3.0)
    return Round({"normal": [rounded(centre), 5.0]}, rounded(y))


def alone(draw: Draw) -> Draw:
    """No forecast: only a game without an expert."""

    def none(rng: np.random.Generator, t: int) -> Round:
        each = draw(rng, t)
        each.forecast = None
        return each

    return none


def crossing(draw: Draw) -> Draw:
    """Now and then quantiles that cross."""

    def crossed(rng: np.random.Generator, t: int) -> Round:
        each = draw(rng, t)
        if t % 5 == 4:
            each.forecast = {"quantiles": [[0.1, 55.0], [0.5, 48.0], [0.9, 70.0]]}
        return each

    return crossed


def event(rng: np.random.Generator, t: int) -> Round:
    """A probability that is too sure."""
    p = 0.5 + 0.45 * math.sin(t / 2.0)
    return Round(rounded(p, 3), int(rng.random() < 0.3 + 0.4 * p))


def match(rng: np.random.Generator, t: int) -> Round:
    """Probabilities of three labels."""
    weights = rng.dirichlet([2.0, 1.0, 1.5])
    home, draw = (round(float(weight), 3) for weight in weights[:2])
    away = round(1.0 - home - draw, 3)
    y = ("home", "draw", "away")[int(rng.choice(3, p=0.5 * weights + 0.5 * np.array([0.2, 0.5, 0.3])))]
    return Round([home, draw, away] if t % 2 else {"home": home, "draw": draw, "away": away}, y)


def bet(rng: np.random.Generator, t: int) -> Round:
    """The same with odds."""
    each = match(rng, t)
    each.x = {"odds": rounded(rng.uniform(0.5, 1.5), 2)}
    return each


def direction(rng: np.random.Generator, t: int) -> Round:
    """A direction that turns."""
    at = (25.0 * t + rng.normal(0.0, 20.0)) % 360.0
    forecast: Json = {"tuple": [rounded(at), 25.0]}
    if t % 3 == 1:
        forecast = {"ensemble": [rounded(value % 360.0) for value in rng.normal(at, 25.0, 5)]}
    return Round(forecast, rounded((at + rng.normal(30.0, 40.0)) % 360.0))


def vector(rng: np.random.Generator, t: int) -> Round:
    """Two numbers."""
    a, b = 0.5 + 0.3 * math.sin(t / 2.0), 3.0 * math.cos(t / 3.0)
    forecast = [{"normal": [rounded(a, 2), 0.15]}, {"normal": [rounded(b, 2), 1.0]}]
    y = [min(max(a + 0.2 * rng.normal(), 0.0), 1.0), min(max(b + 1.5 * rng.normal(), -5.0), 5.0)]
    return Round(forecast, [rounded(each, 2) for each in y])


def corner(rng: np.random.Generator, t: int) -> Round:
    """A point of a few."""
    weights = rng.dirichlet([2.0, 1.0, 1.0, 1.0, 1.0])
    masses = [round(float(weight), 3) for weight in weights[:-1]]
    return Round([*masses, round(1.0 - sum(masses), 3)], PLACES[int(rng.choice(5, p=weights))])


PLACES = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.6]]


def word(rng: np.random.Generator, t: int) -> Round:
    """A word of some length."""
    weights = rng.dirichlet([1.0, 2.0, 1.0, 1.0])
    masses = [round(float(weight), 3) for weight in weights[:-1]]
    lengths = (2, 4, 8, 13)
    return Round([*masses, round(1.0 - sum(masses), 3)], "abcdefghijklm"[: lengths[int(rng.choice(4, p=weights))]])
