"""Payoffs and families written with JAX: they equal their slow twins, their derivatives are right, nothing leaks."""

import datetime
import pickle
import re
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orcast as oc
from helpers import SENTENCE, engine_of, forecasts
from orcast.engine.dense.search import CandidateSearch
from orcast.engine.dense.solver import DenseRound
from orcast.paper import autodiff, tracing
from orcast.paper.autodiff import Differentiable, JaxFamily
from orcast.paper.families import Softmax
from orcast.paper.orca import OrcaSolver
from orcast.testing import PayoffError, check_all, check_guarantee, check_jacobian, check_payoff, check_table
from orcast.testing.checks import cell_payoffs_of, random_masses

if find_spec("jax") is not None:
    import jax
    import jax.numpy as jnp

with_jax = pytest.mark.skipif(find_spec("jax") is None, reason="the extra orcast[jax] is not installed")

SPACE = oc.Interval(0, 1, cells=16, tail_cells=2)
LINE = oc.Line(cells=16, tail_cells=2)
LABELS = oc.Labels(["a", "b", "c"])
BOX = oc.Box([(0, 1), (0, 1)], cells=3)
FEW = 5


def error(x: Any, p: Any, y: Any) -> Any:
    """For Custom and Differentiable alike."""
    return [y - p.mean(), 0.5 * (y - p.mean()) ** 2 - 0.5 * p.std() ** 2]


def leaning(x: Any, p: Any, y: Any) -> Any:
    """Its context depends on the forecast, even on logarithms of masses, and it looks at features."""
    level = p.cdf(0.4) * (1.0 + 0.2 * jnp.tanh((p.mass * jnp.log(p.mass)).sum()))
    return x["unit"] * level * jnp.stack([y - p.mean(), jnp.tanh(y) - p.expect(jnp.tanh)])


def bounded(x: Any, p: Any, y: Any) -> Any:
    return [jnp.cos(p.quantile(0.25)) * (jnp.tanh(y) - p.expect(jnp.tanh))]


def slow_bounded(x: Any, p: Any, y: Any) -> Any:
    return [np.cos(p.quantile(0.25)) * (np.tanh(y) - p.expect(np.tanh))]


def below(x: Any, p: Any, y: Any) -> Any:
    return [p.mean() - y - 0.1 - 0.2 * p.std()]


def brier(x: Any, p: Any, y: Any) -> Any:
    return 0.5 * (1.0 + p.mass[0]) * (p.mass - (jnp.arange(3) == y))


def slow_brier(x: Any, p: Any, y: Any) -> Any:
    return 0.5 * (1.0 + p.mass[0]) * (p.mass - (np.arange(3) == LABELS.outcome(y)))


def centre(x: Any, p: Any, y: Any) -> Any:
    expected = p.expect(lambda z: z)
    return 0.7 * (1.0 - p.mass.max()) * (expected - y)


def slow_centre(x: Any, p: Any, y: Any) -> Any:
    return 0.7 * (1.0 - p.mass.max()) * (p.mean() - y)


def odds(x: Any, p: Any, y: Any) -> Any:
    return [p.mass[1] - y, p.mass[0] * (p.mass[1] - y)]


def tilted(x: Any, p: Any, y: Any) -> Any:
    return [x["scale"] * (y - p.mean())]


def moody(x: Any, p: Any, y: Any) -> Any:
    value = x["scale"] * (y - p.mean())
    if x["mood"] == "if":
        return [value if y > 0.5 else 0.0]
    if x["mood"] == "float":
        return [float(value)]
    odd: dict[str, Any] = {"text": "much", "none": None, "nested": [[value]], "longer": [value, value]}
    return odd.get(x["mood"], [value])


def softmax(parameters: Any, left: Any, right: Any) -> Any:
    return jnp.exp(parameters - parameters.max())


def logarithms(left: Any, right: Any, masses: Any) -> Any:
    return Softmax().start(None, masses)


def bump(parameters: Any, left: Any, right: Any) -> Any:
    """A few parameters for any number of cells."""
    z = (0.5 * (left + right) - parameters[0]) * jnp.exp(parameters[1])
    return jnp.exp(-z * z) + 1e-4 + 0.1 * jax.nn.sigmoid(parameters[2]) * left


ROOM = 14
LEVELS = np.array([0.1234567, 0.5432109, 0.9753102])


def asked(p: Any, y: Any) -> list[Any]:
    """For forecasts and views of them alike."""
    answers = [p.mean(), p.var(), p.std(), p.cdf(y), p.sf(y), p.cdf(0.25), p.median(), p.expect(lambda z: z**4)]
    return [*answers, *p.quantile(LEVELS), *p.cdf(LEVELS)]


def view_moved(mass: Any, left: Any, right: Any, y: Any) -> Any:
    p = tracing.OrderedView(jax, mass, left, right)
    return jnp.stack([p.std(), p.cdf(y), p.quantile(0.5432109), p.expect(jnp.sin)])


def view_asked(mass: Any, left: Any, right: Any, y: Any) -> Any:
    p = tracing.OrderedView(jax, mass, left, right)
    return jnp.stack([*asked(p, y), *p.expect(lambda z: jnp.stack([z, z * z]))])


if find_spec("jax") is not None:
    ASKED = jax.jit(view_asked)
    # few, and used again and again: to compile one takes longer than anything else here
    ERROR = Differentiable(error, bound=1.5)
    LEANING = Differentiable(leaning, bound=2.0, context=oc.by("unit", edges=[0.5]), weight=2.0)
    BOUNDED = Differentiable(bounded, bound=4.0)
    BELOW = Differentiable(below, bound=2.0, one_sided=True)
    BRIER = Differentiable(brier, bound=2.0)
    CENTRE = Differentiable(centre, bound=1.0)
    ODDS = Differentiable(odds, bound=2.0)
    TILTED = Differentiable(tilted, bound=1.0)
    MOODY = Differentiable(moody, bound=1.0)
    BUMP = JaxFamily(bump, [0.5, 1.0, 0.0], name="bump")
    SOFTMAX = JaxFamily(softmax, logarithms, name="softmax")


def unit(rng: np.random.Generator) -> dict[str, float]:
    return {"unit": float(rng.uniform(0.2, 1.0))}


def outcome_of(space: Any, rng: np.random.Generator) -> Any:
    return float(rng.random()) if space in (SPACE, LINE) else space.value(int(rng.integers(space.cells)))


def expert_of(space: Any, rng: np.random.Generator) -> Any:
    if space in (SPACE, LINE):
        return oc.Normal(float(rng.random()), 0.05 + 0.3 * float(rng.random()))
    return rng.dirichlet(np.full(space.cells, 2.0))


def slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


def arrays(game: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in engine_of(game).arrays().items()}


# --- without jax ---


def test_without_jax_it_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    for make in (lambda: Differentiable(error, bound=1.0), lambda: JaxFamily(bump, [0.0])):
        with pytest.raises(ImportError, match=SENTENCE) as caught:
            make()
        assert str(caught.value).startswith("expected the extra orcast[jax] ")
        assert str(caught.value).endswith("got no jax")


def test_jax_is_not_imported_unless_used() -> None:
    code = (
        "import sys, orcast as oc, orcast.paper.autodiff\n"
        "game = oc.Forecaster(oc.Binary(), oracle=oc.Orca(steps=2)); game.predict(); game.update(1)\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('jax', 'jaxlib')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- what functions see ---


@with_jax
@given(forecasts(most=ROOM - 2), st.floats(-0.1, 1.1))
def test_the_view_says_what_the_forecast_says(p: oc.Forecast, y: float) -> None:
    """Also with cells that are there for the size only."""
    more = ROOM - p.mass.size
    end = np.full(more, p.right[-1])
    cells = np.append(p.mass, np.full(more, autodiff.NO_MASS)), np.append(p.left, end), np.append(p.right, end)
    with tracing.double():
        answers = np.asarray(ASKED(*cells, y))
    expected = [*asked(p, y), p.mean(), p.moment(2)]
    assert answers == pytest.approx(expected, abs=1e-7)
    assert np.delete(answers, 2) == pytest.approx(np.delete(expected, 2), abs=1e-9)


@with_jax
def test_the_view_has_derivatives() -> None:
    left = np.array([0.0, 0.2, 0.4, 0.4, 0.6, 0.8] + [1.0] * 8)
    right = np.array([0.2, 0.4, 0.4, 0.6, 0.8, 1.0] + [1.0] * 8)
    mass = np.append([0.1, 0.2, 0.1, 0.2, 0.25, 0.15], np.full(8, autodiff.NO_MASS))
    with tracing.double():
        moved = jax.jit(view_moved)
        exact = np.asarray(jax.jit(jax.jacfwd(view_moved))(mass, left, right, 0.47))
        assert np.isfinite(exact).all()
        for j in range(6):
            step = 1e-6 * np.eye(ROOM)[j]
            up, down = (np.asarray(moved(mass + sign * step, left, right, 0.47)) for sign in (1.0, -1.0))
            assert exact[:, j] == pytest.approx((up - down) / 2e-6, abs=1e-6)
        # all on one place: no spread, and a derivative all the same
        still = np.asarray(jax.jit(jax.grad(lambda m: tracing.OrderedView(jax, m, left, left).std()))(np.eye(ROOM)[0]))
        assert np.isfinite(still).all()


@with_jax
def test_a_question_that_makes_no_sense_on_a_finite_space() -> None:
    with pytest.raises(AttributeError) as caught:
        oc.Forecaster(LABELS, Differentiable(lambda x, p, y: [p.cdf(y)], bound=1.0)).predict()
    assert re.search(SENTENCE, str(caught.value))


@with_jax
def test_values_of_finite_spaces_are_numbers() -> None:
    words = oc.Points(["ab", "abcd", "abcdefgh"], distance=lambda a, b: abs(len(a) - len(b)))
    for space in (LABELS, words):
        assert tracing.values_of(space).tolist() == [0, 1, 2]
    assert tracing.values_of(oc.Binary()).tolist() == [0, 1]
    assert tracing.values_of(oc.Circle(360, cells=4)).tolist() == [45.0, 135.0, 225.0, 315.0]
    for space in (BOX, oc.Points([[0.0, 1.0], [2.0, 3.0]])):
        assert tracing.values_of(space).tolist() == [space.value(k).tolist() for k in range(space.cells)]


# --- Differentiable is Custom, faster ---


PAIRS: dict[str, tuple[Any, str, Any]] = {
    "interval": (SPACE, "ERROR", lambda: oc.Custom(error, bound=1.5)),
    "line": (LINE, "BOUNDED", lambda: oc.Custom(slow_bounded, bound=4.0)),
    "labels": (LABELS, "BRIER", lambda: oc.Custom(slow_brier, bound=2.0)),
    "box": (BOX, "CENTRE", lambda: oc.Custom(slow_centre, bound=1.0)),
    "binary": (oc.Binary(), "ODDS", lambda: oc.Custom(odds, bound=2.0)),
    "one-sided": (SPACE, "BELOW", lambda: oc.Custom(below, bound=2.0, one_sided=True)),
}


@with_jax
@pytest.mark.parametrize("name", ["interval", "line", "labels", "one-sided", slow("box"), slow("binary")])
def test_on_the_same_cells_it_is_custom(name: str) -> None:
    space, fast, make = PAIRS[name]
    for seed in range(4):
        (_, cell_payoff, n), (_, slow, _) = (
            cell_payoffs_of(payoff, space, np.random.default_rng(seed), None)[0] for payoff in (globals()[fast], make())
        )
        rng = np.random.default_rng(seed)
        p, s, weights = random_masses(n, rng), rng.standard_normal(cell_payoff.size), random_masses(n, rng)
        assert cell_payoff.size == slow.size
        assert cell_payoff.table(p) == pytest.approx(slow.table(p), abs=1e-12)
        for mine, theirs in zip(cell_payoff.spans(p), slow.spans(p), strict=True):
            assert mine == pytest.approx(theirs, abs=1e-12)
        for mine, theirs in zip(cell_payoff.assess(s, 0.3, p), slow.assess(s, 0.3, p), strict=True):
            assert mine == pytest.approx(theirs, abs=1e-12)
        k = int(rng.integers(n))
        y = (
            float(
                cell_payoff.cell_grid.left[k] + 0.3 * (cell_payoff.cell_grid.right[k] - cell_payoff.cell_grid.left[k])
            )
            if cell_payoff.cell_grid.ordered
            else k
        )
        assert cell_payoff.realised(p, k, y) == pytest.approx(slow.realised(p, k, y), abs=1e-12)
        slopes, differences = cell_payoff.slopes(s, p, weights), slow._differences(s, p, weights)
        assert slopes - p @ slopes == pytest.approx(differences - p @ differences, abs=2e-4)


@with_jax
@pytest.mark.parametrize("name", ["interval", "labels", slow("one-sided")])
@pytest.mark.parametrize("oracle", [oc.Equilibrium(), oc.Orca(steps=FEW, cells=10)], ids=["equilibrium", "orca"])
def test_in_the_same_rounds_it_plays_as_custom(name: str, oracle: Any) -> None:
    space, fast, make = PAIRS[name]
    games = [oc.Forecaster(space, payoff, oracle=oracle) for payoff in (globals()[fast], make())]
    rng = np.random.default_rng(1)
    for _ in range(12):
        expert, y = expert_of(space, rng), outcome_of(space, rng)
        p, q = (game.predict(expert) for game in games)
        assert p.certificate.holds
        assert q.certificate.holds
        # an equilibrium is solved to 1% only, by Newton here and without derivatives there
        assert p.mass == pytest.approx(q.mass, abs=0.01 if isinstance(oracle, oc.Equilibrium) else 1e-4)
        for game in games:
            game.update(y)
    totals = [engine_of(game).ledger.total for game in games]
    assert totals[0] == pytest.approx(totals[1], abs=0.05 if isinstance(oracle, oc.Equilibrium) else 1e-3)
    assert np.abs(totals[0]).max() > 0.05


@with_jax
@pytest.mark.parametrize("name", ["interval", "labels", "one-sided", *map(slow, ["line", "box", "binary"])])
def test_it_may_be_played_and_its_derivatives_are_right(name: str) -> None:
    space, fast, _ = PAIRS[name]
    payoff = globals()[fast]
    check_payoff(payoff, space, trials=4)
    check_table(payoff, space, trials=2)
    _, cell_payoff, n = cell_payoffs_of(payoff, space, np.random.default_rng(0), None)[0]
    assert cell_payoff.jacobian(np.ones(cell_payoff.size), np.full(n, 1.0 / n)).shape == (n, n)
    check_jacobian(payoff, space)


@with_jax
def test_a_wrong_derivative_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = autodiff.DifferentiableCellPayoff.jacobian
    monkeypatch.setattr(autodiff.DifferentiableCellPayoff, "jacobian", lambda self, s, p: 1.5 * exact(self, s, p))
    with pytest.raises(PayoffError):
        check_jacobian(LEANING, SPACE, x=unit)


@with_jax
def test_all_checks_with_features_a_context_and_a_built_in_payoff() -> None:
    check_all(LEANING + oc.QuantileCalibration([0.2, 0.7]), SPACE, x=unit, rounds=10)


@with_jax
@pytest.mark.parametrize("adversary", ["uniform", "dirac"])
def test_a_sum_with_a_built_in_payoff_under_orca(adversary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autodiff, "descend", None)
    oracle = oc.Orca(steps=60, cells=10, adversary=adversary)
    fields = []
    for payoff in (ERROR, oc.Custom(error, bound=1.5)):
        game = oc.Forecaster(SPACE, payoff + oc.QuantileCalibration([0.5]), oracle=oracle)
        game.predict()
        game.update(0.2)
        engine_of(game).ledger.total[:] = 1.0, -2.0, 0.5
        fields.append(OrcaSolver(oracle)._field(*search_of(game)[:2], np.arange(1, 11) / 55))
    assert fields[0] == pytest.approx(fields[1], abs=1e-12)
    check_guarantee(ERROR + oc.QuantileCalibration([0.5]), SPACE, oracle=oracle, rounds=8, held=0.7)


@with_jax
def test_the_centres_are_those_that_would_be_booked() -> None:
    for payoff, space in ((ERROR, SPACE), (BRIER, LABELS)):
        _, cell_payoff, n = cell_payoffs_of(payoff, space, np.random.default_rng(0), None)[0]
        p = np.full(n, 1.0 / n)
        cell_grid = cell_payoff.cell_grid
        middle = 0.5 * (cell_grid.left + cell_grid.right) if cell_grid.ordered else np.arange(n)
        realised = np.array([cell_payoff.realised(p, k, y) for k, y in enumerate(middle.tolist())]).T
        assert cell_payoff.centres(p) == pytest.approx(realised, abs=1e-12)


# --- compiled once ---


@with_jax
@pytest.mark.parametrize("oracle", [oc.Equilibrium(), oc.Orca(steps=FEW, cells=10)], ids=["equilibrium", "orca"])
def test_rounds_are_not_traced_again(oracle: Any) -> None:
    payoff = TILTED
    game = oc.Forecaster(SPACE, payoff, oracle=oracle)
    rng = np.random.default_rng(3)
    day = datetime.date(2020, 1, 1)
    sizes, before = set(), payoff.program.traces
    for t in range(20):
        # what is not a number and not looked at may change as it likes
        x = {"scale": float(rng.random()), "day": day + datetime.timedelta(t), "note": None if t % 2 else "x"}
        p = game.predict(oc.Ensemble(np.round(rng.random(9), 1)), x=x)
        game.update(float(rng.random()))
        sizes.add(p.mass.size)
    # once for its values, once for derivatives or a search
    assert payoff.program.traces - before <= 2
    assert len(sizes) > 3 or isinstance(oracle, oc.Orca)


@with_jax
def test_values_that_are_looked_at_are_part_of_the_program() -> None:
    def by_city(x: Any, p: Any, y: Any) -> Any:
        return [(1.0 if x["city"] == "Rome" else -0.5) * (y - p.mean()) * x.get("unit", 1.0)]

    payoff = Differentiable(by_city, bound=1.0)
    game = oc.Forecaster(SPACE, payoff)
    for t in range(8):
        x = {"city": ["Rome", "Oslo"][t % 2], "unit": 0.1 * t, "day": datetime.date(2020, 1, 1 + t)}
        p = game.predict(x=x)
        before = engine_of(game).ledger.total.copy()
        game.update(0.9)
        realised = (engine_of(game).ledger.total - before)[0]
        assert realised == pytest.approx((1.0 if t % 2 == 0 else -0.5) * (0.9 - p.mean()) * x["unit"], abs=1e-12)
        if t == 3:
            traces = payoff.program.traces
    assert payoff.program.traces == traces


@with_jax
def test_features_of_every_kind() -> None:
    seen: list[Any] = []

    def look(x: Any, p: Any, y: Any) -> Any:
        seen.append(
            (len(x), sorted(x), jnp.asarray(x["row"]).shape, x["flag"].dtype, x["whole"].dtype, x["two"][1].dtype)
        )
        return [jnp.where(x["flag"], 1.0, 0.5) * jnp.asarray(x["row"])[x["whole"]] * (y - p.mean())]

    payoff = Differentiable(look, bound=1.0)
    x = {"row": np.array([0.1, 0.2]), "flag": True, "whole": 1, "two": [1, 2.5], "mixed": ["a", 1.0]}
    expected = [0.2 * (0.7 - 0.5)]
    masses = oc.Forecast([0.0], [1.0], [1.0])
    assert payoff.evaluate(
        SPACE,
        masses,
        0.7,
        x={**x, "flag": jnp.array(True), "whole": jnp.array(1), "two": [jnp.array(1), jnp.array(2.5)]},
    ) == pytest.approx(expected)
    game = oc.Forecaster(SPACE, payoff)
    p = game.predict(x=x)
    game.update(0.7)
    assert engine_of(game).ledger.total == pytest.approx([0.2 * (0.7 - p.mean())], abs=1e-12)
    _, names, shape, *kinds = seen[-1]
    assert names == sorted(x)
    assert shape == (2,)
    assert [str(kind) for kind in kinds] == ["bool", "int64", "float64"]
    alone = Differentiable(lambda x, p, y: [x[1] * (y - p.mean())], bound=1.0)
    p = oc.Forecaster(SPACE, alone).predict(x=[0.1, 0.2])
    assert p.certificate.holds


# --- precision, and nothing leaks ---


@with_jax
def test_float64_inside_and_float32_outside() -> None:
    kinds: list[str] = []

    def look(x: Any, p: Any, y: Any) -> Any:
        kinds.extend(str(value.dtype) for value in (p.mass, p.left, y, p.mean(), jnp.zeros(1)))
        worker = threading.Thread(target=lambda: kinds.append(f"elsewhere {jnp.zeros(1).dtype}"))
        worker.start()
        worker.join()
        return [y - p.mean()]

    @jax.jit
    def mine(x: Any) -> Any:
        return x / 3.0

    assert not jax.config.jax_enable_x64
    before = mine(np.ones(2))
    payoff = Differentiable(look, bound=1.0)
    game = oc.Forecaster(SPACE, payoff, oracle=oc.Orca(steps=FEW, cells=10))
    game.predict()
    game.update(0.123456789)
    payoff.evaluate(SPACE, game.predict(), 0.5)
    assert set(kinds) == {"float64", "elsewhere float32"}
    assert not jax.config.jax_enable_x64
    assert str(jnp.zeros(3).dtype) == str(mine(np.ones(2)).dtype) == str(before.dtype) == "float32"
    # to the last bits, not to those of float32
    p = game.predict()
    game.update(0.987654321)
    assert engine_of(game).ledger.rounds == 2
    _, cell_payoff, n = cell_payoffs_of(payoff, SPACE, np.random.default_rng(0), None)[0]
    mass = np.full(n, 1.0 / n)
    assert cell_payoff.realised(mass, 0, 0.1)[0] == pytest.approx(
        0.1 - cell_payoff.cell_grid.forecast(mass).mean(), abs=1e-15
    )
    assert p.certificate.holds


@with_jax
def test_float32_constants_do_no_harm() -> None:
    w = jnp.array([0.25, 0.5])
    assert str(w.dtype) == "float32"
    check_table(Differentiable(lambda x, p, y: w * (y - p.mean()), bound=1.0), SPACE, trials=1)


# --- bad functions ---

WRONG = ["nan", "infinite", "large", "text", "none", "nested", "longer", "if", "float"]


@with_jax
@pytest.mark.parametrize("oracle", [oc.Equilibrium(), oc.Orca(steps=FEW, cells=10)], ids=["equilibrium", "orca"])
def test_a_function_that_goes_wrong_changes_nothing(oracle: Any, tmp_path: Path) -> None:
    game = oc.Forecaster(SPACE, MOODY, oracle=oracle)
    good = {"scale": 0.5, "mood": "good"}
    game.predict(x=good)
    game.update(0.9)
    game.predict(x=good)
    game.save(tmp_path / "before")
    sizes = {"nan": float("nan"), "infinite": float("inf"), "large": 50.0}
    for mood in WRONG:
        x = {"scale": sizes.get(mood, 0.5), "mood": "good" if mood in sizes else mood}
        with pytest.raises((TypeError, ValueError), match=SENTENCE) as caught:
            game.predict(x=x, id="new")
        assert ("bound=1" in str(caught.value)) == (mood == "large")
        assert ("jax.numpy" in str(caught.value)) == (mood in ("if", "float"))
        assert game.pending == (None,)
        game.save(tmp_path / "after")
        assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    game.update(0.8)
    game.predict(x=good)
    game.update(0.1)
    assert game.guarantee.rounds == 3


@with_jax
def test_an_inconsistent_function_is_refused() -> None:
    payoff = Differentiable(lambda x, p, y: [y + 0.5], bound=4.0)
    game = oc.Forecaster(SPACE, payoff)
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        game.predict()
    assert "zero" in str(caught.value)
    assert game.pending == ()
    with pytest.raises(PayoffError):
        check_payoff(payoff, SPACE)


@with_jax
def test_a_bound_that_is_exceeded_between_the_nodes_is_noticed_when_it_matters() -> None:
    payoff = Differentiable(lambda x, p, y: [y - p.mean() + 9.0 * (abs(y - 0.3333) < 1e-4)], bound=1.0)
    game = oc.Forecaster(SPACE, payoff)
    game.predict()
    before = arrays(game)
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        game.update(0.3333)
    assert "bound=1" in str(caught.value)
    assert arrays(game) == before
    game.update(0.4)


@with_jax
def test_trouble_on_the_way_of_a_search_is_said() -> None:
    cases = {
        "others on the way": lambda x, p, y: [(y - p.mean()) * (1.0 + 0.0 * jnp.log(p.mean() - 0.45))],
        "derivatives": lambda x, p, y: [(y - p.mean()) * (1.0 + 0.0 * jnp.sqrt(jnp.abs(p.mean() * 0.0)))],
    }
    for words, function in cases.items():
        game = oc.Forecaster(SPACE, Differentiable(function, bound=1.0), oracle=oc.Orca(steps=300, cells=10))
        game.predict()
        game.update(0.0)
        before = arrays(game)
        with pytest.raises(ValueError, match=SENTENCE) as caught:
            game.predict()
        assert words in str(caught.value)
        assert arrays(game) == before
    # the equilibrium does without
    _, cell_payoff, n = cell_payoffs_of(game.payoff, SPACE, np.random.default_rng(0), None)[0]
    assert cell_payoff.jacobian(np.ones(1), np.full(n, 1.0 / n)) is None


@with_jax
@pytest.mark.parametrize(
    "make",
    [
        lambda: Differentiable("text", bound=1.0),
        lambda: Differentiable(error, bound=0.0),
        lambda: Differentiable(error, bound=float("nan")),
        lambda: Differentiable(error, bound=1.0, jumps=[2.0, 1.0]),
        lambda: Differentiable(error, bound=1.0, weight=0.0),
        lambda: Differentiable(error, bound=1.0, one_sided=True, context=oc.by(lambda x: [1.0], bound=1.0)),
        lambda: JaxFamily("text", [0.0]),
        lambda: JaxFamily(bump, "text"),
        lambda: JaxFamily(bump, [[0.0]]),
        lambda: JaxFamily(bump, [float("nan")]),
        lambda: oc.Orca(family=bump),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make()


# --- state ---


@with_jax
def test_a_saved_game_wants_its_payoff_again(tmp_path: Path) -> None:
    game = oc.Forecaster(SPACE, BELOW)
    game.predict(id="waits")
    game.save(tmp_path / "state")
    for payoff in (None, Differentiable(below, bound=3.0, one_sided=True), oc.Custom(below, bound=2.0, one_sided=True)):
        with pytest.raises(ValueError, match=SENTENCE):
            oc.Forecaster.load(tmp_path / "state", payoff=payoff)
    twin = oc.Forecaster.load(tmp_path / "state", payoff=Differentiable(below, bound=2.0, one_sided=True))
    for each in (game, twin):
        each.update(0.2, id="waits")
    assert np.array_equal(game.predict().mass, twin.predict().mass)


@with_jax
def test_a_pickled_game_goes_on_bit_for_bit() -> None:
    game = oc.Forecaster(SPACE, TILTED)
    game.predict(x={"scale": 0.4})
    game.update(0.9)
    game.predict(x={"scale": 0.3})
    assert "program" in TILTED.__dict__
    twin = pickle.loads(pickle.dumps(game))
    assert "program" not in pickle.loads(pickle.dumps(TILTED)).__dict__
    for each in (game, twin):
        each.update(0.7)
    assert np.array_equal(game.predict(x={"scale": 1.0}).mass, twin.predict(x={"scale": 1.0}).mass)
    assert repr(twin.payoff) == "Differentiable(bound=1.0, one_sided=False, jumps=[])"


@with_jax
def test_a_pickled_oracle_is_the_same() -> None:
    oracle = oc.Orca(family=SOFTMAX)
    cell_grid = cell_payoffs_of(BRIER, LABELS, np.random.default_rng(0), None)[0][1].cell_grid
    masses = SOFTMAX.masses(cell_grid, np.arange(3.0))
    twin = pickle.loads(pickle.dumps(oracle)).family
    assert np.array_equal(twin.masses(cell_grid, np.arange(3.0)), masses)
    assert repr(twin) == "JaxFamily('softmax')"
    assert twin.to_plain() == SOFTMAX.to_plain() == {"kind": "JaxFamily", "name": "softmax", "start": None}
    assert BUMP.to_plain() == {"kind": "JaxFamily", "name": "bump", "start": [0.5, 1.0, 0.0]}


@with_jax
def test_a_family_of_your_own_is_given_again(tmp_path: Path) -> None:
    game = oc.Forecaster(LABELS, BRIER, oracle=oc.Orca(steps=FEW, family=SOFTMAX))
    game.save(tmp_path / "state")
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Forecaster.load(tmp_path / "state", payoff=BRIER)
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Forecaster.load(tmp_path / "state", payoff=BRIER, oracle=oc.Orca(steps=FEW, family=BUMP))
    again = JaxFamily(softmax, logarithms, name="softmax")
    oc.Forecaster.load(tmp_path / "state", payoff=BRIER, oracle=oc.Orca(steps=FEW, family=again))


# --- families ---


@with_jax
@pytest.mark.parametrize("name", ["labels", "interval, built in", slow("labels, built in"), slow("interval")])
def test_a_softmax_by_jax_is_the_softmax(name: str) -> None:
    space, payoff, _ = PAIRS[name.split(",")[0]]
    payoff = globals()[payoff]
    if "built in" in name:
        payoff = oc.MomentMatching(2) if space is SPACE else oc.LabelCalibration(grid=4)
    games = [
        oc.Forecaster(space, payoff, oracle=oc.Orca(steps=40, cells=10, family=family))
        for family in (Softmax(), SOFTMAX)
    ]
    rng = np.random.default_rng(5)
    for _ in range(4):
        expert, y = expert_of(space, rng), outcome_of(space, rng)
        p, q = (game.predict(expert).mass for game in games)
        assert p == pytest.approx(q, abs=1e-6)
        for game in games:
            game.update(y)


@with_jax
@pytest.mark.parametrize("space", [SPACE, oc.Binary(), slow(BOX)], ids=str)
def test_a_familys_derivatives(space: Any) -> None:
    _, cell_payoff, n = cell_payoffs_of(
        {"Interval": ERROR, "Binary": ODDS, "Box": CENTRE}[type(space).__name__], space, np.random.default_rng(0), None
    )[0]
    cell_grid, rng = cell_payoff.cell_grid, np.random.default_rng(0)
    if space is BOX:
        family = JaxFamily(lambda a, left, right: jnp.exp(left @ a[:2]) + 0.0 * right[:, 0], np.zeros(2))
    else:
        family = BUMP
    parameters = family.start(cell_grid, np.full(n, 1.0 / n)) + 0.1
    gradient = rng.standard_normal(n)
    masses = family.masses(cell_grid, parameters)
    assert masses.shape == (n,)
    assert masses.sum() == pytest.approx(1.0)
    assert (masses >= 0.0).all()
    exact = family.pull(cell_grid, parameters, gradient)
    for j, slope in enumerate(exact):
        step = 1e-6 * np.eye(exact.size)[j]
        up, down = family.masses(cell_grid, parameters + step), family.masses(cell_grid, parameters - step)
        assert slope == pytest.approx(gradient @ (up - down) / 2e-6, abs=1e-7)


@with_jax
@pytest.mark.parametrize("built_in", [False, True])
def test_a_bad_family_changes_nothing(built_in: bool) -> None:
    starts: list[list[float]] = []
    functions = [
        (lambda a, left, right: a[0] * left + a[1], [1.0, -0.5], "negative"),
        (lambda a, left, right: left[:-1], [0.0], "shape"),
        (lambda a, left, right: a[0], [0.0], "shape"),
        (lambda a, left, right: left if a[0] > 0 else right, [0.0], "jax.numpy"),
        (lambda a, left, right: "text", [0.0], "numbers"),
    ]
    payoff = oc.MomentMatching(1) if built_in else ERROR
    for function, start, words in functions:
        family = JaxFamily(function, lambda left, right, masses: starts.pop(), name="odd")
        # one family that starts well, with negative masses, with none, and with far too many
        for first in [start] if start == [0.0] else [[1.0, 0.5], start, [0.0, 0.0], [1e308, 1e308]]:
            starts.append(first)
            game = oc.Forecaster(SPACE, payoff, oracle=oc.Orca(steps=FEW, cells=10, family=family))
            if first == [1.0, 0.5]:
                game.predict()
                continue
            with pytest.raises((TypeError, ValueError), match=SENTENCE) as caught:
                game.predict()
            assert words in str(caught.value)
            assert "family odd" in str(caught.value)
            assert game.pending == ()


@with_jax
def test_a_family_without_derivatives_is_refused() -> None:
    cell_grid = cell_payoffs_of(BRIER, LABELS, np.random.default_rng(0), None)[0][1].cell_grid
    family = JaxFamily(lambda a, left, right: 1.0 + left * jnp.sqrt(0.0 * a[0]), [1.0])
    assert family.masses(cell_grid, np.ones(1)) == pytest.approx(np.full(3, 1 / 3))
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        family.pull(cell_grid, np.ones(1), np.arange(3.0))
    assert "derivatives" in str(caught.value)


@with_jax
def test_a_bad_start_changes_nothing() -> None:
    for start in (
        lambda left, right, masses: "text",
        lambda left, right, masses: [[0.0]],
        lambda left, right, masses: [np.nan],
    ):
        game = oc.Forecaster(SPACE, ERROR, oracle=oc.Orca(steps=FEW, cells=10, family=JaxFamily(bump, start)))
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            game.predict()
        assert game.pending == ()


# --- the whole search ---


def search_of(game: Any, x: Any = None) -> tuple[CandidateSearch, Any, DenseRound]:
    """A search in the state of a game, as its engine would make it."""
    engine = engine_of(game)
    features = x
    round, mix = engine.prior.open(None, 0.0)
    cell_grid = engine.prior.cell_grid(round, features)
    context = np.array(
        engine.bound_payoff.context(engine.prior.known(engine.bound_payoff, None, features, engine.ledger.rounds))
    )
    search = CandidateSearch(
        engine.ledger, engine.ledger.layout, engine.cell_payoffs(round, features), context, 0.0, 1.0
    )
    return search, cell_grid, DenseRound(cell_grid, mix, np.log(mix), np.empty(0), 0.0, engine.ledger.rounds)


NATURE = oc.paper.MonteCarlo([oc.Normal(m / 6, 0.1) for m in range(7)], draws=200)
SEARCHES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "softmax": (SPACE, "LEANING", {}),
    "own family, softened mixtures": (SPACE, "ERROR", {"family": "BUMP", "soft": 0.2, "adversary": NATURE}),
    "labels": (LABELS, "BRIER", {}),
    "own family": (SPACE, "LEANING", {"family": "BUMP"}),
    "softened": (SPACE, "LEANING", {"soft": 0.2}),
    "mixtures": (SPACE, "LEANING", {"adversary": NATURE}),
    # a square's mean over a cell differs from that in the middle by a number, so that the loop's slopes are right
    "middles": (SPACE, "ERROR", {"adversary": "dirac"}),
    "vectors": (BOX, "CENTRE", {}),
    "line": (LINE, "BOUNDED", {}),
}
QUICK = list(SEARCHES)[:3]
LONG = list(map(slow, list(SEARCHES)[3:]))


@with_jax
@pytest.mark.parametrize("name", QUICK + LONG)
def test_the_compiled_search_is_the_loop(name: str) -> None:
    space, payoff, options = SEARCHES[name]
    options = {key: globals()[value] if value == "BUMP" else value for key, value in options.items()}
    x = {"unit": 0.8, "scale": 0.9}
    game = oc.Forecaster(space, globals()[payoff], oracle=oc.Orca(steps=1, cells=10, **options))
    rng = np.random.default_rng(7)
    for _ in range(3):
        game.predict(x=x)
        game.update(outcome_of(space, rng))
    search, cell_grid, setup = search_of(game, x)
    found = []
    for steps in (1, 2, 20):
        oracle = oc.Orca(steps=steps, cells=10, **options)
        solver = OrcaSolver(oracle)
        parameters = oracle.family.start(cell_grid, setup.prior)
        nature = solver._components(cell_grid)[0]
        soft = oracle.soft * float(np.linalg.norm(np.concatenate(search.owed)))
        # far from an answer, so that the search goes on
        search.owed = [np.arange(1.0, 1.0 + s.size) for s in search.owed]
        slow = solver._search(search, cell_grid, parameters, nature, soft)
        fast = autodiff.descend(oracle, search.cell_payoffs, search.owed, cell_grid, parameters, nature, soft)
        # where a gradient vanishes, Adam makes steps of rounding errors
        assert fast == pytest.approx(slow, abs=1e-6)
        assert fast.sum() == pytest.approx(1.0)
        found.append(fast)
    assert np.abs(found[-1] - found[0]).max() > 1e-3


@with_jax
@pytest.mark.parametrize("name", ["ERROR", "BRIER", slow("TILTED + BELOW")])
def test_the_compiled_search_is_the_one_that_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OrcaSolver, "_search", None)
    space = LABELS if name == "BRIER" else SPACE
    payoff = TILTED + BELOW if "+" in name else globals()[name]
    oracle = oc.Orca(steps=100, cells=10)
    game = oc.Forecaster(space, payoff, oracle=oracle)
    rng = np.random.default_rng(0)
    for _ in range(3):
        assert game.predict(x={"scale": 0.5}).certificate.holds
        game.update(outcome_of(space, rng))
    assert engine_of(game).ledger.square > 0.0
    with pytest.raises(TypeError, match="not callable"):
        oc.Forecaster(SPACE, ERROR + oc.MomentMatching(1), oracle=oracle).predict()


@with_jax
def test_the_search_ends_when_there_is_nothing_to_gain() -> None:
    """An answer at the start is kept as it is."""
    game = oc.Forecaster(SPACE, ERROR, oracle=oc.Orca(steps=400, cells=10, start="even"))
    p = game.predict()
    assert p.mass == pytest.approx(np.full(10, 0.1), abs=1e-15)
    assert p.certificate.half_space == 0.0


@with_jax
@pytest.mark.slow
def test_middles_are_looked_at_in_the_middle() -> None:
    """A payoff that is curved in y: the worst middle of a cell is not the worst mean over one."""
    oracle = oc.Orca(steps=200, cells=10, adversary="dirac")
    game = oc.Forecaster(SPACE, ERROR, oracle=oracle)
    game.predict()
    game.update(0.9)
    p = game.predict()
    search, cell_grid, _ = search_of(game)
    middle = 0.5 * (cell_grid.left + cell_grid.right)
    values = [
        float(search.owed[0] @ search.cell_payoffs[0].realised(p.mass, k, y)) for k, y in enumerate(middle.tolist())
    ]
    assert p.certificate.half_space == pytest.approx(max(values), abs=1e-9)
    assert max(values) < 1e-2


@with_jax
def test_orca_keeps_its_promise_against_the_worst() -> None:
    assert check_guarantee(ERROR, SPACE, oracle=oc.Orca(steps=400, cells=10), rounds=60, held=0.9) >= 0.9
