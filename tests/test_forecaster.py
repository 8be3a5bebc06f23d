"""The contract of Forecaster and Recalibrator: what every one of them must do, in the style of river's checks."""

import copy
import gc
import pickle
import sys
import warnings
from collections.abc import Callable, Hashable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import SENTENCE, engine_of, numbers_of
from orcast.kernels.monitor import Bets

SPACE = oc.Interval(0, 1)
Game = oc.Forecaster | oc.Recalibrator


class Alone(oc.Forecaster):
    """A forecaster without an expert, for any arguments."""

    def predict(self, forecast: object = None, *, id: Hashable = None, reuse: bool = False) -> oc.Forecast:
        return super().predict(id=id, reuse=reuse)


GAMES: dict[str, Callable[..., Game]] = {
    "recalibrator": lambda **o: oc.Recalibrator(SPACE, **o),
    "recalibrator, equilibrium": lambda **o: oc.Recalibrator(SPACE, oracle=oc.Equilibrium(), **o),
    "recalibrator, quantiles": lambda **o: oc.Recalibrator(SPACE, oc.QuantileCalibration([0.1, 0.5, 0.9]), **o),
    "forecaster": lambda **o: oc.Forecaster(SPACE, **o),
    "forecaster, committee": lambda **o: oc.Forecaster(SPACE, oracle=oc.Committee(), **o),
    "forecaster, alone": lambda **o: Alone(SPACE, **o),
    "forecaster, committee alone": lambda **o: Alone(SPACE, oc.MomentMatching(2), oracle=oc.Committee(), **o),
}
WITH_EXPERT = [name for name in GAMES if "alone" not in name]


@pytest.fixture(params=GAMES)
def make(request: pytest.FixtureRequest) -> Callable[..., Game]:
    return GAMES[request.param]


def expert(t: int) -> oc.Normal:
    return oc.Normal(0.5 + 0.3 * np.sin(t / 5), 0.05 + 0.03 * np.cos(t / 11))


def outcome(t: int) -> float:
    return float(np.clip(np.random.default_rng(t).normal(0.5 + 0.3 * np.sin(t / 5 + 0.2), 0.1), 0, 1))


def result(forecaster: Game, first: int, last: int) -> Game:
    for t in range(first, last):
        forecaster.predict(expert(t))
        forecaster.update(outcome(t))
    return forecaster


def memory(forecaster: Game) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in engine_of(forecaster).arrays().items()}


def state(forecaster: Game, folder: Path) -> bytes:
    """All that a game is, waiting rounds included, as the bytes it saves."""
    forecaster.save(folder / "state", overwrite=True)
    return (folder / "state").read_bytes()


def same(p: oc.Forecast, q: oc.Forecast) -> bool:
    return numbers_of(p) == numbers_of(q) and p.certificate == q.certificate


# --- predict ---


def test_predict_changes_nothing_but_the_waiting_rounds(make: Callable[..., Game]) -> None:
    forecaster = result(make(), 0, 25)
    before, promise = memory(forecaster), forecaster.guarantee
    first = forecaster.predict(expert(25))
    for t in range(5):
        forecaster.predict(expert(99), id=t)
    assert memory(forecaster) == before
    assert forecaster.guarantee == promise
    assert forecaster.pending == (None, 0, 1, 2, 3, 4)
    for t in range(5):
        forecaster.drop(t)
    assert same(forecaster.predict(expert(25)), first)
    forecaster.drop()
    assert memory(forecaster) == before


def test_a_forecast_does_not_change_once_it_is_issued(make: Callable[..., Game]) -> None:
    """Its parts are computed when they are read: after later rounds they are what they were before the outcome."""
    forecaster, twin = result(make(), 0, 10), result(make(), 0, 10)
    late, p = forecaster.predict(expert(10)), twin.predict(expert(10))
    cells, quantiles = numbers_of(p), p.quantile([0.1, 0.9])
    forecaster.update(outcome(10))
    result(forecaster, 11, 20)
    assert late.quantile([0.1, 0.9]).tolist() == quantiles.tolist()
    assert numbers_of(late) == cells
    assert late.certificate == p.certificate


def test_a_second_unnamed_forecast_replaces_the_first(make: Callable[..., Game], tmp_path: Path) -> None:
    once, twice = result(make(), 0, 5), result(make(), 0, 5)
    twice.predict(expert(77))
    for forecaster in (once, twice):
        forecaster.predict(expert(5))
        forecaster.update(outcome(5))
    assert memory(once) == memory(twice)
    assert twice.pending == ()


# --- ids ---


def test_named_rounds_are_settled_late_in_any_order_or_never(make: Callable[..., Game]) -> None:
    forecaster = make()
    for t in range(6):
        forecaster.predict(expert(t), id=f"round {t}")
    forecaster.predict(expert(6))
    assert forecaster.pending == (*(f"round {t}" for t in range(6)), None)
    forecaster.update(outcome(4), id="round 4")
    forecaster.update(outcome(6))
    forecaster.drop("round 0")
    forecaster.update(outcome(1), id="round 1")
    assert forecaster.pending == ("round 2", "round 3", "round 5")
    assert forecaster.guarantee.rounds == 3
    with pytest.raises(ValueError, match="expected a new id, got 'round 4', which was settled"):
        forecaster.predict(expert(7), id="round 4")
    forecaster.predict(expert(7), id="round 4", reuse=True)
    assert forecaster.pending[-1] == "round 4"


BAD_IDS: dict[str, Callable[[Game], object]] = {
    "update before predict": lambda forecaster: forecaster.update(0.5),
    "drop before predict": lambda forecaster: forecaster.drop(),
    "unknown": lambda forecaster: forecaster.update(0.5, id="unknown"),
    "settled": lambda forecaster: forecaster.update(0.5, id="settled"),
    "repeated": lambda forecaster: forecaster.predict(expert(3), id="waiting"),
    "no key": lambda forecaster: forecaster.predict(expert(3), id=["list"]),  # type: ignore[arg-type]
    "drop no key": lambda forecaster: forecaster.drop({}),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("bad", BAD_IDS.values(), ids=BAD_IDS)
def test_bad_ids_are_refused_and_change_nothing(
    make: Callable[..., Game], bad: Callable[[Game], object], tmp_path: Path
) -> None:
    forecaster = make()
    for id in ("settled", "dropped", "waiting"):
        forecaster.predict(expert(1), id=id)
    forecaster.update(0.4, id="settled")
    forecaster.drop("dropped")
    before = state(forecaster, tmp_path)
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        bad(forecaster)
    assert state(forecaster, tmp_path) == before
    forecaster.update(0.6, id="waiting")
    assert forecaster.guarantee.rounds == 2


def test_when_too_many_wait_the_oldest_is_dropped_and_said(make: Callable[..., Game]) -> None:
    forecaster = make(max_pending=3)
    for t in range(3):
        forecaster.predict(expert(t), id=t)
    with pytest.warns(RuntimeWarning, match="dropped the oldest pending round, 0") as caught:
        forecaster.predict(expert(3), id=3)
    assert caught[0].filename == __file__
    assert forecaster.pending == (1, 2, 3)
    with pytest.warns(RuntimeWarning, match="dropped the oldest pending round, 1"):
        forecaster.predict(expert(4))
    assert forecaster.pending == (2, 3, None)
    # replacing the unnamed one needs no room
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forecaster.predict(expert(5))
    assert forecaster.pending == (2, 3, None)


# --- bad input ---

BAD_OUTCOMES = [float("nan"), float("inf"), -float("inf"), "much", None, -0.1, 1.1, np.array([0.5, 0.6]), [0.5], 3j]


@pytest.mark.parametrize("y", BAD_OUTCOMES, ids=repr)
def test_a_bad_outcome_changes_nothing(make: Callable[..., Game], y: object, tmp_path: Path) -> None:
    forecaster = result(make(), 0, 3)
    forecaster.predict(expert(3))
    forecaster.predict(expert(4), id="late")
    before = state(forecaster, tmp_path)
    for id in (None, "late"):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            forecaster.update(y, id=id)  # type: ignore[arg-type]
        assert state(forecaster, tmp_path) == before
    forecaster.update(0.5)
    forecaster.update(0.5, id="late")
    assert forecaster.guarantee.rounds == 5


@pytest.mark.parametrize("forecast", [{}, {0.5: 1}, oc.Forecast, "text", (1, -1), {0.1: np.nan, 0.9: 1}], ids=repr)
@pytest.mark.parametrize("name", WITH_EXPERT)
def test_a_bad_forecast_changes_nothing(name: str, forecast: object, tmp_path: Path) -> None:
    forecaster = result(GAMES[name](), 0, 3)
    forecaster.predict(expert(3))
    before = state(forecaster, tmp_path)
    for id in (None, "new"):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            forecaster.predict(forecast, id=id)
        assert state(forecaster, tmp_path) == before
    forecaster.update(0.5)
    assert forecaster.guarantee.rounds == 4


def test_outcomes_outside_may_be_clipped(make: Callable[..., Game]) -> None:
    clipping, plain = make(outside="clip"), make()
    for beyond, y in ((-3.0, 0.0), (1.5, 1.0), (0.25, 0.25)):
        for forecaster, value in ((clipping, beyond), (plain, y)):
            forecaster.predict(expert(0))
            forecaster.update(value)
    assert memory(clipping) == memory(plain)
    with pytest.raises(ValueError, match=SENTENCE):
        clipping.update(float("nan"))


@pytest.mark.parametrize(
    "build",
    [
        lambda: oc.Recalibrator((0, 1)),  # type: ignore[arg-type]
        lambda: oc.Recalibrator(SPACE, "quantiles"),  # type: ignore[arg-type]
        lambda: oc.Recalibrator(SPACE, oracle="committee"),  # type: ignore[arg-type]
        lambda: oc.Recalibrator(SPACE, outside="ignore"),
        lambda: oc.Recalibrator(SPACE, max_pending=0),
        lambda: oc.Recalibrator(SPACE, max_pending=2.5),  # type: ignore[arg-type]
        lambda: oc.Recalibrator(SPACE, max_pending=True),
        lambda: oc.Recalibrator(SPACE).predict(None),
        lambda: oc.Equilibrium(temperature=0),
        lambda: oc.Equilibrium(temperature="hot"),  # type: ignore[arg-type]
        lambda: oc.Committee(temperature=float("inf")),
    ],
)
def test_bad_options_are_refused_in_a_sentence(build: Callable[[], object]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        build()


# --- memory ---


def deep_size(forecaster: Game) -> int:
    """Bytes of a game and of all objects that it refers to; the tables of bets belong to all games."""
    seen: dict[int, object] = {}
    todo: list[object] = [forecaster]
    while todo:
        thing = todo.pop()
        if id(thing) not in seen and not isinstance(thing, (type, ModuleType, FunctionType, Bets)):
            seen[id(thing)] = thing
            todo += [thing.base] if isinstance(thing, np.ndarray) else gc.get_referents(thing)
    return sum(map(sys.getsizeof, seen.values()))


def test_memory_does_not_grow(make: Callable[..., Game], tmp_path: Path) -> None:
    forecaster = result(make(), 0, 100)
    saved, deep = len(state(forecaster, tmp_path)), deep_size(forecaster)
    result(forecaster, 100, 1000)
    assert forecaster.guarantee.rounds == 1000
    # a few more digits in the header
    assert len(state(forecaster, tmp_path)) <= saved + 64
    assert deep_size(forecaster) <= deep + 64
    assert saved <= 32 * 1024
    assert deep <= 64 * 1024


def test_settled_and_dropped_rounds_free_their_memory(make: Callable[..., Game]) -> None:
    forecaster = result(make(), 0, 10)
    before = deep_size(forecaster)
    for t in range(50):
        forecaster.predict(expert(t), id=t)
    assert deep_size(forecaster) > before + 50 * 1000
    for t in range(50):
        if t % 2:
            forecaster.update(0.5, id=t)
        else:
            forecaster.drop(t)
    # a dict keeps the room it once had, and hashes of the ids and lanes of the monitors stay
    lanes = sum(row.nbytes for row in forecaster.rounds.monitor_rows())
    assert deep_size(forecaster) <= before + 8192 + lanes
    assert lanes < 2 * 9500


# --- copies ---


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda forecaster: pickle.loads(pickle.dumps(forecaster))])
def test_copies_go_on_as_the_original_does(
    make: Callable[..., Game], copied: Callable[[Game], Game], tmp_path: Path
) -> None:
    forecaster = result(make(), 0, 20)
    forecaster.predict(expert(20), id="late")
    twin = copied(forecaster)
    assert state(twin, tmp_path) == state(forecaster, tmp_path)
    for one in (forecaster, twin):
        result(one, 21, 40)
        one.update(outcome(20), id="late")
    assert state(twin, tmp_path) == state(forecaster, tmp_path)
    assert twin.guarantee == forecaster.guarantee
    # and they share nothing
    before = state(forecaster, tmp_path)
    result(twin, 40, 45)
    assert state(forecaster, tmp_path) == before


# --- reported numbers ---

TOLD: dict[str, tuple[Callable[[oc.Recalibrator], object], str]] = {
    "true as an outcome": (lambda forecaster: forecaster.update(True), "expected a finite number as outcome, got True"),
    "true in a history": (lambda forecaster: forecaster.run([expert(0)], [False]), "got False in row 0"),
    "text as quantiles": (
        lambda forecaster: forecaster.predict({0.1: "0.2", 0.9: "0.7"}),
        "expected numbers as quantiles, got",
    ),
    "a pair of numbers": (lambda forecaster: forecaster.predict((0.5, 0.1)), "got (0.5, 0.1)"),
    "text as members": (
        lambda forecaster: forecaster.predict(oc.Ensemble(["0.5", "0.6"])),
        "expected numbers as members, got",
    ),  # type: ignore[arg-type]
    "text in a table": (
        lambda forecaster: forecaster.run([["0.5", "0.6"]], [0.5], levels=[0.1, 0.9]),
        "a table of numbers",
    ),
    "text as a level": (
        lambda forecaster: forecaster.peek(expert(0)).quantile("0.5"),
        "expected levels between 0 and 1, got '0.5'",
    ),
    "one expert of several, in a history": (
        lambda forecaster: forecaster.run(experts={"tree": [expert(0)] * 2, "net": [None, "0.5"]}, outcomes=[0.5, 0.5]),
        "got '0.5' in row 1 (expert 'net')",
    ),
    "an array without levels": (
        lambda forecaster: forecaster.run(np.full((3, 2), 0.5), [0.5] * 3),
        "expected levels= with a table",
    ),
    "one bound": (lambda forecaster: oc.Interval(0), "expected two bounds as in Interval(0, 100), got fewer"),
    "text as bounds": (lambda forecaster: oc.Interval("0", "1"), "expected two numbers as bounds, got '0' and '1'"),  # type: ignore[arg-type]
    "text to score": (
        lambda forecaster: forecaster.peek(expert(0)).crps("a"),
        "expected a finite number as outcome, got 'a'",
    ),  # type: ignore[arg-type]
    "text as a value": (
        lambda forecaster: forecaster.peek(expert(0)).cdf("a"),
        "expected numbers as values of the quantity, got 'a'",
    ),
}


@pytest.mark.parametrize("what", TOLD)
def test_bad_input_is_told_in_one_sentence_and_changes_nothing(what: str, tmp_path: Path) -> None:
    bad, sentence = TOLD[what]
    forecaster = oc.Recalibrator(SPACE)
    forecaster.run([expert(t) for t in range(3)], [outcome(t) for t in range(3)])
    if what in ("true as an outcome", "numpy's true"):
        forecaster.predict(expert(3))
    before = state(forecaster, tmp_path)
    with pytest.raises((TypeError, ValueError), match=SENTENCE) as caught:
        bad(forecaster)
    assert sentence in str(caught.value)
    assert state(forecaster, tmp_path) == before


def test_features_that_nothing_looks_at_are_told_once() -> None:
    forecaster = oc.Recalibrator(SPACE)
    with pytest.warns(UserWarning, match="are not used: no part of the payoff"):
        forecaster.predict(expert(0), x={"hour": 3})
    looks = oc.Recalibrator(SPACE, oc.QuantileCalibration(context=oc.by("hour", values=range(4))))
    calls = oc.Recalibrator(SPACE, oc.Recipe(witness=lambda y, x: [y > x["hour"]], bound=1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forecaster.predict(expert(0), x={"hour": 3})
        looks.predict(expert(0), x={"hour": 3})
        calls.predict(expert(0), x={"hour": 3})


BAD_RUNS: dict[str, Callable[[oc.Recalibrator], object]] = {
    "uneven": lambda forecaster: forecaster.run([expert(0)], [0.5, 0.6]),
    "bad outcome": lambda forecaster: forecaster.run([expert(0), expert(1)], [0.5, float("nan")]),
    "outside": lambda forecaster: forecaster.run([expert(0), expert(1)], [0.5, 2.0]),
    "bad forecast": lambda forecaster: forecaster.run([expert(0), {}], [0.5, 0.5]),
    "bad levels": lambda forecaster: forecaster.run([expert(0)], [0.5], at=[0.5, 0.4]),
    "bad row": lambda forecaster: forecaster.run([[1.0, 2.0]], [0.5], levels=[0.1, 0.5, 0.9]),
    "no forecasts": lambda forecaster: forecaster.run(None, [0.5]),
    "no outcomes": lambda forecaster: forecaster.run([expert(0)], None),
}


@pytest.mark.parametrize("bad", BAD_RUNS.values(), ids=BAD_RUNS)
def test_a_bad_run_changes_nothing(bad: Callable[[oc.Recalibrator], object], tmp_path: Path) -> None:
    forecaster = oc.Recalibrator(SPACE)
    forecaster.run([expert(0)], [0.5])
    before = state(forecaster, tmp_path)
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        bad(forecaster)
    assert state(forecaster, tmp_path) == before
    forecaster.run([expert(0)], [0.5])
    assert forecaster.guarantee.rounds == 2


def test_run_wants_no_waiting_rounds() -> None:
    forecaster = oc.Recalibrator(SPACE)
    forecaster.predict(expert(0), id="late")
    with pytest.raises(ValueError, match=SENTENCE):
        forecaster.run([expert(1)], [0.5])
    assert forecaster.pending == ("late",)


# --- whole histories on other spaces, and with features ---

HOURS = oc.by("hour", values=range(3))
# Space, payoff, whether features are needed, options.
RUNS: dict[str, tuple[Any, ...]] = {
    "interval": (SPACE, None, None),
    "equilibrium": (SPACE, None, None, {"oracle": oc.Equilibrium()}),
    "quantiles": (SPACE, oc.QuantileCalibration([0.1, 0.5, 0.9]), None),
    "forgetting": (SPACE, None, None, {"memory": 20}),
    "draws": (SPACE, None, None, {"randomised": 7}),
    "half line": (oc.HalfLine(0), None, None),
    "binary": (oc.Binary(), None, None),
    "binary by hour": (oc.Binary(), oc.BinaryCalibration(context=HOURS) + oc.NoRegret(oc.Brier()), "hour"),
    "binary by level": (oc.Binary(), oc.BinaryCalibration(context=oc.by_expert("level", edges=[0.5])), None),
    "binary by last error": (oc.Binary(), oc.BinaryCalibration(context=oc.by_last_error()), None),
    "labels": (oc.Labels(["a", "b", "c"]), None, None),
    "circle": (oc.Circle(24, cells=12), None, None),
    "box": (oc.Box([(0, 1), (0, 1)], cells=4), None, None),
    "line": (oc.Line(), None, None),
    "by hour": (SPACE, oc.QuantileCalibration(context=HOURS) + oc.NoRegret(oc.CRPS()), "hour"),
    "by level": (SPACE, oc.QuantileCalibration(context=oc.by_expert("level", edges=[0.5])), None),
    "by last error": (SPACE, oc.QuantileCalibration(context=oc.by_last_error()), None),
    "decision": (
        SPACE,
        oc.payoffs.DecisionCalibration(["a"], lambda a, y, x: y * x["hour"], utility_range=2.0),
        "hour",
    ),
    "threshold": (SPACE, oc.payoffs.ThresholdCalibration([0.5], grid=5), None),
    "recipe": (SPACE, oc.Recipe(lambda y: [y], lambda x, p: [0.5, x["hour"] / 4], bound=1.0), "hour"),
}


def history(space: object, rounds: int) -> tuple[list[object], list[object]]:
    rng = np.random.default_rng(0)
    if isinstance(space, oc.spaces.OrderedSpace):
        experts: list[object] = [expert(t) for t in range(rounds)]
        experts[rounds // 3], experts[rounds // 2] = oc.Normal(0.3, 0.0), oc.Normal(0.0, 0.0)  # atoms
        return experts, [outcome(t) for t in range(rounds)]
    if isinstance(space, oc.Binary):
        return list(rng.random(rounds)), [int(y) for y in rng.integers(2, size=rounds)]
    masses = [rng.dirichlet(np.ones(space.cells)) for _ in range(rounds)]  # type: ignore[attr-defined]
    return masses, [space.value(int(k)) for k in rng.integers(space.cells, size=rounds)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", RUNS)
def test_run_rounds_is_predict_and_update_bit_for_bit(name: str, tmp_path: Path) -> None:
    """Forecasts, their log, the state after them, and rounds that follow with late outcomes."""
    space, payoff, feature, *options = RUNS[name]
    slow, fast = (oc.Recalibrator(space, payoff, **(options[0] if options else {})) for _ in range(2))
    ordered, levels, rounds = isinstance(space, oc.spaces.OrderedSpace), [0.05, 0.5, 0.95], 60
    experts, outcomes = history(space, rounds)
    x = [{"hour": t % 3} for t in range(rounds)] if feature else None
    found = fast.run(experts, outcomes, x=x, at=levels, detailed=True)
    for t, (forecast, y) in enumerate(zip(experts, outcomes, strict=True)):
        p = slow.predict(forecast, x=None if x is None else x[t])
        row = p.quantile(levels) if ordered else p.probability() if isinstance(space, oc.Binary) else p.mass
        assert np.array_equal(found.rows[t], row)
        assert (found.holds[t], found.promised[t]) == (p.certificate.holds, p.certificate.promised)
        if ordered:
            assert (found.mean[t], found.sd[t]) == p.to_normal()
        slow.update(y)
        assert found.miscalibration[t] == slow.guarantee.miscalibration
        # the bound that was known before the outcome is the bound after it
        assert found.promised[t] == pytest.approx(slow.guarantee.promised, rel=1e-12)
    for forecaster in (slow, fast):
        for t in range(3):
            forecaster.predict(experts[t], id=t, x=None if x is None else x[t])
    assert state(fast, tmp_path) == state(slow, tmp_path)
    assert fast.guarantee == slow.guarantee
    again = oc.Recalibrator(space, payoff, **(options[0] if options else {}))
    assert np.array_equal(again.run(experts, outcomes, x=x, at=levels), found.rows)
    assert again.run([], [], x=None if x is None else []).shape[0] == 0


@pytest.mark.parametrize("name", ["binary by hour", "by hour", "decision", "recipe"])
@pytest.mark.parametrize("bad", [{"hour": "noon"}, {}, None], ids=repr)
@pytest.mark.parametrize("first", [True, False], ids=["new", "result"])
def test_a_run_with_a_failing_feature_changes_nothing(name: str, bad: object, first: bool, tmp_path: Path) -> None:
    space, payoff, _ = RUNS[name]
    forecaster = oc.Recalibrator(space, payoff)  # type: ignore[arg-type]
    experts, outcomes = history(space, 10)
    if not first:
        forecaster.run(experts, outcomes, x=[{"hour": t % 3} for t in range(10)])
    before = state(forecaster, tmp_path)
    x: list[object] = [{"hour": t % 3} for t in range(10)]
    x[6] = bad
    with pytest.raises((TypeError, ValueError, KeyError)):
        forecaster.run(experts, outcomes, x=x)
    assert state(forecaster, tmp_path) == before
    assert forecaster.pending == ()
    # and it goes on as one that never failed
    twin = oc.Recalibrator(space, payoff)  # type: ignore[arg-type]
    good = [{"hour": t % 3} for t in range(10)]
    if not first:
        twin.run(experts, outcomes, x=good)
    assert forecaster.run(experts, outcomes, x=good) == pytest.approx(twin.run(experts, outcomes, x=good), abs=0)
    assert state(forecaster, tmp_path) == state(twin, tmp_path)


def test_a_refused_first_round_does_not_name_the_experts() -> None:
    forecaster = oc.Recalibrator(oc.Interval(0, 1), oc.QuantileCalibration(context=oc.by("hour", values=range(3))))
    with pytest.raises(ValueError, match="expected one of the values"):
        forecaster.predict(experts={"a": oc.Normal(0.5, 0.1), "b": oc.Normal(0.4, 0.1)}, x={"hour": 7})
    forecaster.predict(oc.Normal(0.5, 0.1), x={"hour": 1})
    forecaster.update(0.5)
    assert forecaster.guarantee.rounds == 1


def test_features_are_those_of_the_forecast_not_of_the_update() -> None:
    buffer = np.array([0.5])
    payoff = oc.Recipe(lambda y, x: [x["scale"][0] * y], bound=1.0)
    forecaster = oc.Recalibrator(oc.Interval(0, 1), payoff)
    forecaster.predict(oc.Normal(0.5, 0.1), x={"scale": buffer})
    buffer[0] = 100.0
    forecaster.update(0.9)
    assert forecaster.guarantee.rounds == 1


@pytest.mark.parametrize("space", [oc.Interval(0, 1), oc.Line(), oc.Binary(), oc.Labels(list("abc"))], ids=repr)
def test_a_peek_is_the_next_forecast_and_leaves_nothing(space: Any, tmp_path: Path) -> None:
    forecaster = oc.Recalibrator(space)
    forecast: Any = oc.Normal(0.4, 0.1)
    if isinstance(space, (oc.Binary, oc.Labels)):
        forecast = 0.3 if isinstance(space, oc.Binary) else [0.2, 0.3, 0.5]
    for t in range(8):
        forecaster.predict(forecast, id=t)
        forecaster.save(tmp_path / "before")
        forecaster.peek(forecast)
        forecaster.save(tmp_path / "after")
        assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
        assert forecaster.pending == (t,)
        forecaster.update("b" if isinstance(space, oc.Labels) else t % 2, id=t)
        q = forecaster.peek(forecast)
        following = forecaster.predict(forecast)
        assert np.array_equal(following.mass, q.mass)
        assert following.certificate == q.certificate
        forecaster.drop()
    several = oc.Recalibrator(oc.Interval(0, 1))
    several.peek(experts={"a": oc.Normal(0.4, 0.1), "b": oc.Normal(0.5, 0.1)})
    assert several.experts == oc.Recalibrator(oc.Interval(0, 1)).experts
    with pytest.raises(TypeError, match="expected a forecast, got None"):
        several.peek()


def test_a_forecast_without_a_name_is_no_new_expert() -> None:
    recal = oc.Recalibrator()
    recal.predict(experts={"a": oc.Normal(0, 1), "b": oc.Normal(0, 2)})
    recal.update(1.0)
    for run_rounds in (recal.predict, recal.peek, lambda p: recal.run([p], [1.0])):
        with pytest.raises(ValueError, match=r"expected experts among .*'a', 'b'.*, got 'expert'"):
            run_rounds(oc.Normal(0, 1))
    assert recal.experts == ("a", "b")
    assert recal.guarantee.rounds == 1
