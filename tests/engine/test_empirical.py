"""Empirical indicators against an adversary that sees the forecast, with the random draw and without."""

import math
from pathlib import Path

import numpy as np
import pytest

import orcast as oc
from helpers import Vector, default_payoff, engine_of
from orcast.draws import uniform_draws
from orcast.engine.bound_payoff import MIXTURE, beyond_smoothed, overall_norm
from orcast.ledger import Empirical
from orcast.payoffs import Payoff

SPACE = oc.Interval(0, 1)
A = np.arange(1, 100) / 100.0


def expert(t: int) -> object:
    return oc.Normal(0.5 + 0.2 * math.sin(t / 7), 0.1)


def empirical_of(recal: oc.Forecaster) -> Empirical:
    found = recal.guarantee.empirical
    assert found is not None
    return found


# --- hard-greedy Nature ---


class HardGreedy:
    """It sees the cells and the plain quantiles, not the draw, and picks the point that makes the count worst.

    Between two neighbouring quantiles the hard payoff is the same, so she looks at each quantile and just beyond it;
    among equals she picks at random, so that no cell is spared.
    """

    def __init__(self, seed: int) -> None:
        self.sums = np.zeros(A.size)
        self.rng = np.random.default_rng(seed)

    def __call__(self, p: oc.Forecast) -> float:
        bare = oc.Forecast(p.left, p.right, p.mass)
        q = bare.quantile(A)
        points = np.unique(np.clip(np.concatenate((q, np.nextafter(q, np.inf))), 0.0, 1.0))
        after = self.sums + (points[:, None] <= q) - A
        worst = (after * after).sum(axis=1)
        return float(self.rng.choice(points[worst >= worst.max() * (1.0 - 1e-12)]))

    def see(self, p: oc.Forecast, y: float) -> None:
        """What was reported is seen once the outcome is out."""
        self.sums += (y <= p.quantile(A)) - A


def run_rounds(
    rounds: int, seed: int, *, randomised: bool, payoff: Payoff | None = None
) -> tuple[oc.Recalibrator, Vector]:
    recal = oc.Recalibrator(SPACE, payoff, randomised=seed if randomised else None)
    adversary = HardGreedy(seed)
    for t in range(rounds):
        p = recal.predict(expert(t))
        y = adversary(p)
        adversary.see(p, y)
        recal.update(y)
    return recal, adversary.sums


def test_with_the_draw_the_count_stays_within_its_bound() -> None:
    recal, sums = run_rounds(250, 0, randomised=True, payoff=oc.QuantileCalibration())
    empirical = empirical_of(recal)
    # the running sums are what an observer has who looks at the reported quantiles alone
    assert empirical.errors["qce"] == pytest.approx(((sums / 250) ** 2).sum(), rel=1e-9)
    assert empirical.bounds.get("qce") is not None
    assert empirical.errors["qce"] <= empirical.bounds["qce"] < 2.5
    assert empirical.confidence == 0.95


def test_without_the_draw_nothing_can_be_promised() -> None:
    recal, sums = run_rounds(250, 0, randomised=False, payoff=oc.QuantileCalibration())
    empirical = empirical_of(recal)
    assert empirical.errors["qce"] == pytest.approx(((sums / 250) ** 2).sum(), rel=1e-9)
    assert empirical.bounds.get("qce") is None
    # the smoothed bound holds all the same, and the empirical error exceeds the bound of the random draw
    assert recal.guarantee.miscalibration <= recal.guarantee.promised
    with_draw, _ = run_rounds(250, 0, randomised=True, payoff=oc.QuantileCalibration())
    bound = empirical_of(with_draw).bounds.get("qce")
    assert bound is not None
    assert empirical.errors["qce"] > bound


# --- the bound ---


def test_the_bound_is_its_formula() -> None:
    """The smoothed bound in the units of the QCE, and the martingale term; the sum of them squared."""
    recal = oc.Recalibrator(SPACE, default_payoff(), randomised=5)
    rng = np.random.default_rng(0)
    recal.run([expert(t) for t in range(60)], rng.random(60))
    g, empirical = recal.guarantee, empirical_of(recal)
    spread = engine_of(recal).memory.read("counts", "spread")
    root = math.sqrt((A * A).sum())
    term = math.sqrt((spread + MIXTURE) * (2 * math.log(20) + math.log((spread + MIXTURE) / MIXTURE)))
    assert empirical.bounds["qce"] == pytest.approx((root * (g.promised + g.excess) + term / 60) ** 2)
    assert 0.0 < spread < 60 * 3.0
    # the smoothed part is bounded by `promised` alone
    assert g.parts["quantile"] <= root * g.promised


def test_weights_and_groups_are_minded() -> None:
    """A part that weighs half as much is promised half as well; over disjoint groups the root of their number more."""
    outcomes = np.random.default_rng(0).random(50)
    bounds = {}
    for name, payoff in {
        "plain": oc.QuantileCalibration(),
        "light": oc.QuantileCalibration(weight=0.5) + oc.MomentMatching(2),
        "grouped": oc.QuantileCalibration(context=oc.by("h", values=range(4))),
        "function": oc.QuantileCalibration(context=oc.by(lambda x: [1.0 if x["h"] else 0.0], size=1)),
    }.items():
        recal = oc.Recalibrator(SPACE, payoff, randomised=5)
        recal.run([expert(t) for t in range(50)], outcomes, x=[{"h": t % 4} for t in range(50)])
        g, bounds[name] = recal.guarantee, empirical_of(recal).bounds.get("qce")
        if name == "function":
            break
        root = math.sqrt(A @ A) * {"plain": 1, "light": 2, "grouped": 2}[name]
        term = beyond_smoothed(engine_of(recal).memory.read("counts", "spread")) / 50
        assert bounds[name] == pytest.approx((root * (g.promised + g.excess) + term) ** 2)
    # a context that leaves rounds out says nothing about all of them
    assert bounds["function"] is None
    assert overall_norm(oc.by("h", values="ab") * oc.by("k", edges=[1.0, 2.0])) == pytest.approx(math.sqrt(6))
    assert overall_norm(oc.by("h", values="ab") | oc.by(lambda x: [0.5], size=1)) == pytest.approx(math.sqrt(2))


# --- recalibrators with random draws ---


def test_draws_come_from_the_seed_and_the_number_of_the_round(tmp_path: Path) -> None:
    """One by one, in one go, late, after a load, with experts that join: the same draws."""
    outcomes = np.random.default_rng(0).random(8)
    one, other = (oc.Recalibrator(SPACE, randomised=11) for _ in range(2))
    rows = []
    for t, y in enumerate(outcomes):
        p = one.predict(expert(t))
        assert p.draw == uniform_draws(11, t + 1, 1)[0]
        assert one.peek(expert(t)).draw == uniform_draws(11, t + 2, 1)[0]
        rows.append(p.quantile(A))
        one.update(y)
        if t == 3:
            one.save(tmp_path / "a.orcast")
            one = oc.Recalibrator.load(tmp_path / "a.orcast")
    np.testing.assert_array_equal(other.run([expert(t) for t in range(8)], outcomes), rows)
    assert one.guarantee == other.guarantee
    late = oc.Recalibrator(SPACE, randomised=11)
    for t in range(3):
        assert late.predict(expert(t), id=t).draw == uniform_draws(11, t + 1, 1)[0]
    late.save(tmp_path / "b.orcast")
    for recal in (late, oc.Recalibrator.load(tmp_path / "b.orcast")):
        for t in (2, 0, 1):
            recal.update(outcomes[t], id=t)
        assert empirical_of(recal).bounds.get("qce") is not None
        assert recal.predict(expert(3)).draw == uniform_draws(11, 4, 1)[0]
        assert recal.randomised == 11


def test_the_draw_changes_nothing_but_what_is_reported() -> None:
    outcomes = np.random.default_rng(0).random(30)
    recals = [oc.Recalibrator(SPACE, randomised=seed) for seed in (None, 1, 2)]
    for t, y in enumerate(outcomes):
        masses = []
        for recal in recals:
            masses.append(recal.predict(expert(t)).mass)
            recal.update(y)
        np.testing.assert_array_equal(masses[0], masses[1])
        np.testing.assert_array_equal(masses[0], masses[2])
    plain, first, second = (recal.guarantee for recal in recals)
    assert plain.parts == first.parts == second.parts
    assert plain.empirical is not None
    assert plain.empirical.bounds.get("qce") is None
    assert first.empirical != second.empirical


def test_empirical_error_matches_metrics() -> None:
    outcomes = np.random.default_rng(0).random(200)
    for seed in (None, 3):
        recal = oc.Recalibrator(SPACE, randomised=seed)
        rows = recal.run([expert(t) for t in range(200)], outcomes)
        assert empirical_of(recal).errors["qce"] == pytest.approx(oc.metrics.qce(rows, outcomes), rel=1e-9)


@pytest.mark.parametrize("space", [oc.Line(), oc.HalfLine(0.0), oc.Interval(0, 10)])
def test_atoms_and_open_ends(space: oc.spaces.OrderedSpace) -> None:
    """Half of the outcomes are zeros, as rain has them: the share of y <= q is fair at each level."""
    rng = np.random.default_rng(0)
    recal = oc.Recalibrator(space, oc.QuantileCalibration(), randomised=4)
    reported, outcomes = [], np.where(rng.random(400) < 0.5, 0.0, rng.exponential(2.0, 400).clip(0, 10))
    for y in outcomes:
        reported.append(recal.predict(oc.Ensemble([0.0] * 5 + [0.5, 1.0, 2.0, 3.0, 5.0])).quantile(A))
        recal.update(float(y))
    hits = (outcomes[:, None] <= np.array(reported)).mean(axis=0)
    assert np.abs(hits - A).max() < 0.1
    empirical = empirical_of(recal)
    assert empirical.errors["qce"] == pytest.approx(((hits - A) ** 2).sum())
    assert empirical.bounds.get("qce") is not None
    assert empirical.errors["qce"] <= empirical.bounds["qce"]


def test_forgetting_discounts_the_count() -> None:
    g = 1 - 1 / 20
    recal = oc.Recalibrator(SPACE, memory=20, randomised=1)
    sums, outcomes = np.zeros(A.size), np.random.default_rng(0).random(60)
    for t, y in enumerate(outcomes):
        q = recal.predict(expert(t)).quantile(A)
        sums = g * sums + (y <= q) - A
        recal.update(y)
    empirical = empirical_of(recal)
    assert empirical.errors["qce"] == pytest.approx(((sums * (1 - g) / (1 - g**60)) ** 2).sum())
    assert empirical.bounds.get("qce") is not None
    assert empirical.errors["qce"] <= empirical.bounds["qce"]


def test_the_dense_engine_counts_too(tmp_path: Path) -> None:
    """A payoff that no compiled engine plays, on the same draws."""
    payoff = oc.QuantileCalibration([0.1, 0.5, 0.9]) + oc.Recipe(
        witness=lambda y: [y > 0.7], context=lambda x, p: [p.cdf(0.5)], bound=1.0
    )
    recal = oc.Forecaster(SPACE, payoff, randomised=9)
    assert hasattr(recal.engine, "prior")
    sums, a = np.zeros(3), np.array([0.1, 0.5, 0.9])
    for t, y in enumerate(np.random.default_rng(0).random(12)):
        p = recal.predict(expert(t))
        assert p.draw == uniform_draws(9, t + 1, 1)[0]
        sums += (y <= p.quantile(a)) - a
        recal.update(y)
    empirical = empirical_of(recal)
    assert empirical.errors["qce"] == pytest.approx(((sums / 12) ** 2).sum())
    assert empirical.bounds.get("qce") is not None
    recal.predict(expert(0), id="open")
    recal.save(tmp_path / "d.orcast")
    again = oc.Forecaster.load(tmp_path / "d.orcast", payoff=payoff)
    again.update(0.5, id="open")
    recal.update(0.5, id="open")
    assert again.guarantee == recal.guarantee


def test_no_quantiles_no_count() -> None:
    recal = oc.Recalibrator(SPACE, oc.MomentMatching(2))
    recal.predict(expert(0))
    recal.update(0.5)
    assert recal.guarantee.empirical is None


def test_invalid_seed_is_rejected() -> None:
    for wrong in (-1, 2**53, 0.5, "a", True):
        with pytest.raises(TypeError, match=r"expected a seed from 0 to 2\*\*53 or numpy"):
            oc.Recalibrator(SPACE, randomised=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected randomised= for quantities, BinaryCalibration"):
        oc.Recalibrator(oc.Binary(), oc.MomentMatching(1), randomised=1)
    drawn = [oc.Recalibrator(SPACE, randomised=np.random.default_rng(3)).randomised for _ in range(2)]
    assert drawn[0] == drawn[1]
