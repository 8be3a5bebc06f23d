"""Events and labels whose published probabilities are drawn."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from adversaries import Delaying, Greedy, run_rounds
from definitions import hats
from helpers import engine_of
from orcast.draws import uniform_draws
from orcast.kernels.finite_rounds import published
from orcast.ledger import CertificateField
from orcast.testing import worst_outcome

BINARY, LABELS = oc.Binary(), oc.Labels(["home", "draw", "away"])
SPACES = pytest.mark.parametrize("space", [BINARY, LABELS, oc.Labels(range(10))], ids=["binary", "3 labels", "10"])


def expert(space: oc.spaces.FiniteSpace, rng: np.random.Generator) -> Any:
    p = rng.dirichlet(np.ones(space.cells) * 10.0 ** rng.uniform(-2, 1))
    return float(p[1]) if space is BINARY else p


def played(space: oc.spaces.FiniteSpace, rounds: int = 30, **options: Any) -> oc.Recalibrator:
    rng = np.random.default_rng(0)
    recal = oc.Recalibrator(space, randomised=5, **options)
    outcomes = [space.value(k) for k in rng.integers(space.cells, size=rounds)]
    recal.run([expert(space, rng) for _ in range(rounds)], outcomes)
    return recal


def mixture_of(record: Any) -> list[tuple[float, np.ndarray]]:
    """Forecasts from which the published one is drawn, each with its probability."""
    places = np.interp(
        record.view("result")[record.rules.first :], record.rules.grid, np.arange(len(record.rules.grid))
    )
    cuts = np.unique(np.concatenate(([0.0, 1.0], np.cumsum(places % 1.0) % 1.0)))
    trial, found = record.copied(), []
    for a, b in itertools.pairwise(cuts.tolist()):
        trial.set_draw(0.5 * (a + b))
        found.append((b - a, published(trial)))
    return found


# --- the ledger adds the expectation of the empirical payoff


@SPACES
def test_ledger_payoff_is_the_expectation_over_draws(space: Any) -> None:
    rng, recal = np.random.default_rng(1), played(space)
    rules: Any = engine_of(recal).rules
    first, nodes = rules.first, rules.grid
    for _ in range(5):
        given = expert(space, rng)
        p = recal.predict(given)
        record = recal.rounds.pending[None].record
        x = np.array([1.0 - given, given]) if space is BINARY else given
        mixture = mixture_of(record)
        assert sum(weight * mass for weight, mass in mixture) == pytest.approx(p.undrawn, abs=1e-12)
        expected = []
        for k in range(space.cells):
            came, mean = np.eye(space.cells)[k], 0.0
            for weight, mass in mixture:
                assert mass.sum() == pytest.approx(1.0, abs=1e-12)
                error = (mass - came)[first:]
                own = np.abs(nodes[:, None] - mass[first:]) < 1e-12
                assert (own.sum(axis=0) == 1).all()
                given_x = (hats(15, x[first:]) * error).ravel() if space is BINARY else []
                bias = [float(mass[1] - came[1])] if space is BINARY else []
                regret = (0.5 if space is BINARY else 1.0) * (((mass - came) ** 2).sum() - ((x - came) ** 2).sum())
                mean += weight * np.array([*(own * error).ravel(), *given_x, *bias, regret])
            expected.append(mean)
        regrets = np.array(expected)[:, -1]
        for k, mean in enumerate(expected):
            mean[-1] /= max(1.0 / record.view("units")[0], np.abs(regrets).max())
            assert engine_of(recal).payoff(record, k) == pytest.approx(mean, abs=1e-11)


# --- against adversaries


@SPACES
@pytest.mark.parametrize("adversary", [Greedy, lambda: Greedy(product=True), lambda: Delaying(Greedy(), most=5)])
def test_certificates_hold_and_no_outcome_is_worse(space: Any, adversary: Callable[[], Any]) -> None:
    rng = np.random.default_rng(0)
    recal = oc.Recalibrator(space, randomised=1)
    for turn in run_rounds(recal, adversary(), 150, experts=lambda t: expert(space, rng), rng=rng):
        row = recal.rounds.pending[turn.id].record.certificate_row
        if row[CertificateField.ROUNDS_THEN] == recal.engine.ledger.rounds:
            assert worst_outcome(recal, turn.id)[1] <= row[CertificateField.WORST] * (1 + 1e-9) + 1e-9
        recal.update(turn.y, id=turn.id)
        assert recal.guarantee.miscalibration <= recal.guarantee.promised
    g = recal.guarantee
    assert g.held == 1.0
    assert g.empirical is not None
    for name, error in g.empirical.errors.items():
        assert error <= g.empirical.bounds[name]


def test_resolution_enters_the_bound_where_no_forecast_keeps_the_rule() -> None:
    """Sums far apart at two neighbours: a certificate that holds because its bound grew by the resolution."""
    recal = oc.Recalibrator(BINARY, oc.BinaryCalibration(grid=5), randomised=1)
    engine: Any = engine_of(recal)
    nodes = engine.rules.grid
    engine.ledger.total[:] = np.where(nodes < 0.4, -400.0, 400.0)
    engine.ledger.account[0] = engine.ledger.square
    p = recal.predict(0.5)
    (share, upper), (_, lower) = mixture_of(recal.rounds.pending[None].record)
    high, low = upper[1], lower[1]
    assert p.certificate.holds
    assert low < 0.4 < high
    r = share * (1 - share) * (high - low) * 800.0
    assert p.certificate.bound == pytest.approx(p.certificate.worst_next - engine.ledger.square, rel=1e-6)
    assert 1.0 < p.certificate.bound <= 2.0 * r + 1.0


def threshold_attack(seed: int | None, rounds: int = 1000) -> tuple[Any, np.ndarray, np.ndarray]:
    """The event comes if the forecast before the draw is below 7/15."""
    recal, said, came = oc.Recalibrator(BINARY, randomised=seed), [], []
    for _ in range(rounds):
        p = recal.predict(0.5)
        mean = float(p) if p.undrawn is None else p.undrawn[1]
        said.append(float(p))
        came.append(int(mean < 7 / 15))
        recal.update(came[-1])
    return recal.guarantee, np.array(said), np.array(came)


def test_empirical_ece_stays_small_where_no_deterministic_forecast_can() -> None:
    assert oc.metrics.ece(*threshold_attack(None)[1:]) > 0.4
    for seed in range(5):
        g, said, came = threshold_attack(seed)
        assert oc.metrics.ece(said, came) <= 0.12
        errors = [np.abs((said - came)[said == v].sum()) / 1000 for v in np.unique(said)]
        assert g.empirical.errors == pytest.approx({"ece": sum(errors), "ece l2": math.hypot(*errors)})
        assert all(error <= g.empirical.bounds[name] for name, error in g.empirical.errors.items())


# --- the draw belongs to the round


@SPACES
def test_draws_follow_from_seed_and_round(space: Any, tmp_path: Path) -> None:
    """One by one, in one go, late and after a load: the same published masses and guarantee."""
    rng = np.random.default_rng(0)
    given = [expert(space, rng) for _ in range(12)]
    outcomes = [space.value(k) for k in rng.integers(space.cells, size=12)]
    one, rows = oc.Recalibrator(space, randomised=3), []
    for t, y in enumerate(outcomes):
        p = one.predict(given[t])
        rows.append(float(p) if space is BINARY else p.mass)
        assert one.rounds.pending[None].record.draw() == uniform_draws(3, t + 1, 1)[0]
        if t == 5:
            one.save(tmp_path / "a.orcast")
            one = oc.Recalibrator.load(tmp_path / "a.orcast")
        one.update(y)
    other = oc.Recalibrator(space, randomised=3)
    np.testing.assert_array_equal(other.run(given, outcomes), rows)
    assert other.guarantee == one.guarantee


@pytest.mark.parametrize("space", [BINARY, oc.Interval(0, 1)], ids=["events", "quantities"])
def test_replaced_round_keeps_its_draw(space: Any) -> None:
    """Neither at once nor after other rounds were issued can a user select among draws."""
    recal = oc.Recalibrator(space, randomised=3)
    first, second = (0.3, 0.8) if space is BINARY else (oc.Normal(0.4, 0.1), oc.Normal(0.6, 0.2))
    recal.predict(first)
    draw = recal.rounds.pending[None].record.draw()
    for _ in range(3):
        recal.predict(second)
        assert recal.rounds.pending[None].record.draw() == draw
        recal.predict(first, id=recal.rounds.issued)
    assert len({entry.record.draw() for entry in recal.rounds.pending.values()}) == 4


BY = oc.by("h", values=range(2))


@pytest.mark.parametrize("options", [{"payoff": oc.LabelCalibration(context=BY)}, {"memory": 50}])
def test_contexts_experts_and_memory(options: dict[str, Any]) -> None:
    recal, rng = oc.Recalibrator(LABELS, randomised=9, **options), np.random.default_rng(2)
    for t in range(60):
        experts = {"a": expert(LABELS, rng), "b": expert(LABELS, rng) if t % 3 else None}
        recal.predict(experts=experts, x={"h": t % 2} if "payoff" in options else None)
        recal.update(LABELS.value(int(rng.integers(3))))
    g = recal.guarantee
    assert g.held == 1.0
    assert g.empirical is not None
    assert all(error <= g.empirical.bounds[name] for name, error in g.empirical.errors.items())
