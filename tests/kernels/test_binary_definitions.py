"""The committee for two cells against its definition: logistic regressions that drift, mixed by log loss."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from definitions import Array, horizon
from scipy.special import expit, logit, xlogy

import orcast as oc

# Stage, time constant of the drift (0: none), features; each offset at the expert or at what stage 1 agreed on.
PLATT, ERRORS = ["one", "log odds"], ["error", "fast", "slow"]
STATE = [*PLATT, *ERRORS, "outcome", "mean"]
LEARNERS: list[tuple[int, int, list[str]]] = [
    (1, 0, PLATT),
    (1, 1000, PLATT),
    (1, 0, [*PLATT, "skew"]),
    (1, 3000, [f"hat {j}" for j in range(7)]),
    (2, 30, ["one"]),
    (2, 200, PLATT),
    (2, 2000, ["one", *ERRORS]),
    (2, 20000, STATE),
    (2, 20000, [*STATE, "change", "before"]),
    (2, 500, [*STATE, "change", "before"]),
]
KNOTS = np.array([-4.0, -2.4, -1.1, 0.0, 1.1, 2.4, 4.0])
VARIANCE = {"one": 0.3, "log odds": 0.1, "skew": 0.05, "error": 0.9, "fast": 1.8, "slow": 1.8, "outcome": 0.9}
VARIANCE |= {"mean": 0.9, "change": 0.3, "before": 0.9, "hat 0": 2.0, "hat 6": 2.0}


def start(names: list[str]) -> Array:
    """The variances of the coefficients before any outcome."""
    return np.diag([VARIANCE.get(name, 0.3) for name in names])


def parts(flat: Array, power: int) -> list[Array]:
    """Coefficients (power 1) or covariances (power 2) of each learner."""
    sizes = [len(names) ** power for _, _, names in LEARNERS]
    cut = np.split(flat, np.cumsum(sizes)[:-1])
    return [
        part if power == 1 else part.reshape(len(names), -1) for part, (_, _, names) in zip(cut, LEARNERS, strict=True)
    ]


def features(statistics: Array, x: float) -> dict[str, float]:
    z = float(np.clip(logit(np.clip(x, expit(-8), expit(8))), -6.9, 6.9))
    hats = np.interp(np.clip(z, -4, 4), KNOTS, np.arange(7.0))
    error, fast, slow, outcome, mean, last, before, count = statistics[:8]
    found = {"one": 1.0, "log odds": z, "skew": float(np.log(4 * expit(z) * expit(-z)))}
    found |= {"error": error, "fast": fast, "slow": slow, "outcome": outcome, "mean": mean}
    found |= {"change": last - z if count else 0.0, "before": before}
    return found | {f"hat {j}": max(0.0, 1.0 - abs(hats - j)) for j in range(7)}


def log_loss(z: float, y: float) -> float:
    return float(-xlogy(y, expit(z)) - xlogy(1 - y, expit(-z)))


class Committee:
    """What the committee says of an expert's x with some outcomes outstanding."""

    def __init__(self, state: Any, x: float, pending: float) -> None:
        self.state, self.x, self.pending, self.features = state, x, pending, features(state.statistics, x)
        self.expert = float(logit(np.clip(x, expit(-8), expit(8))))
        self.horizon = horizon(pending)
        self.loss, rate = state.learner_loss[self.horizon], (0.5, 1.0, 1.0)[self.horizon]
        weights = np.exp(-rate * (self.loss - self.loss.min()))
        weights[10] *= 10.0
        weights[[*range(10), 11]] *= (1 + pending) ** -0.5
        first = [self.learner(i, self.expert) for i in range(4)]
        self.agreed = float(weights[[10, 0, 1, 2, 3]] @ [self.expert, *first] / weights[[10, 0, 1, 2, 3]].sum())
        self.learners = first + [self.learner(i, self.agreed) for i in range(4, 10)]
        mix = weights @ expit([*self.learners, self.expert, self.agreed]) / weights.sum()
        self.prior = float(logit(np.clip(mix, expit(-13.8), expit(13.8))))

    def learner(self, i: int, offset: float) -> float:
        _, span, names = LEARNERS[i]
        total = parts(self.state.theta, 1)[i] @ [self.features[name] for name in names]
        kept = (1 - 1 / span) ** self.pending if span else 1.0
        return float(np.clip(offset + kept * total, -8, 8))

    def taught(self, now: Any, y: float) -> dict[str, Array]:
        """The state after an outcome; what was said stays, the coefficients are those of now."""
        weight = (1 + self.pending) ** -0.5
        loss = now.learner_loss.copy()
        lost = [log_loss(z, y) for z in (*self.learners, self.expert, self.agreed)]
        loss[self.horizon] = (1 - 0.001 * weight) * loss[self.horizon] + weight * np.array(lost)
        thetas, spreads = [], []
        for i, (stage, span, names) in enumerate(LEARNERS):
            f = np.array([self.features[name] for name in names])
            offset, counts = (self.expert, 1.0) if stage == 1 else (self.agreed, weight**0.5)
            theta, P = self.step(parts(now.theta, 1)[i], parts(now.spread, 2)[i], f, offset, y, counts)
            kept = 1 - 1 / span if span else 1.0
            thetas.append(kept * theta)
            spreads.append((kept**2 * P + (1 - kept**2) * start(names)).ravel())
        return {
            "theta": np.concatenate(thetas),
            "spread": np.concatenate(spreads),
            "learner_loss": loss,
            "statistics": self.statistics(now.statistics, y, weight),
        }

    @staticmethod
    def step(theta: Array, P: Array, f: Array, offset: float, y: float, weight: float) -> tuple[Array, Array]:
        """One step on the log score whose error is that after the step, by two steps of Newton's method from zero."""
        z = float(np.clip(offset + theta @ f, -8, 8))
        reach = weight * (f @ P @ f)
        error = 0.0
        for _ in range(2):
            p = expit(z + reach * error)
            error -= (error - (y - p)) / (1 + reach * p * (1 - p))
        curvature = weight * max(p * (1 - p), 0.01)
        return theta + weight * error * (P @ f), np.linalg.inv(np.linalg.inv(P) + curvature * np.outer(f, f))

    def statistics(self, old: Array, y: float, weight: float) -> Array:
        error, side = y - expit(self.agreed), 2 * y - 1
        new = [error, old[1] + 0.2 * weight * (error - old[1]), old[2] + 0.05 * weight * (error - old[2]), side]
        new += [old[4] + 0.1 * weight * (side - old[4]), self.features["log odds"], old[3], old[7] + 1]
        return np.array([*new, 0.998 * old[8] + (self.x - y) ** 2, 0.998 * old[9] + 1])


def copied(arrays: dict[str, Array]) -> SimpleNamespace:
    return SimpleNamespace(**{name: array.copy() for name, array in arrays.items()})


def played(late: int, several: bool) -> Iterator[tuple[Any, Any, Any, Any, int]]:
    """State at the forecast, the round, the states before and after its outcome, and that."""
    rng = np.random.default_rng(3)
    chance = np.clip(0.5 + 0.5 * np.sin(np.arange(80) / 7) + 0.1 * rng.normal(size=80), 0.0, 1.0)
    y = (rng.random(80) < np.clip(0.2 + 0.6 * chance, 0, 1)).astype(int)
    recal = oc.Recalibrator(oc.Binary())
    then: dict[int, Any] = {}
    for t, p in enumerate(chance):
        experts = {"one": float(p), "other": 0.3 if t % 3 else None}
        if several:
            recal.predict(experts=experts, id=t)
        else:
            recal.predict(float(p), id=t)
        engine: Any = recal.engine
        then[t] = copied(engine.arrays())
        if t >= late:
            record = copied(recal.rounds.pending[t - late].record.views())
            before = copied(engine.arrays())
            recal.update(y[t - late], id=t - late)
            yield then[t - late], record, before, copied(engine.arrays()), int(y[t - late])


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("late", [0, 3, 20])
def test_learners_of_two_cells_match_their_definition(late: int, several: bool) -> None:
    for then, record, before, after, y in played(late, several):
        x, pending = record.pool[1], record.info[0]
        if several:
            there = record.units > 0.0
            weights = np.exp(-(then.pool[there] - then.pool[there].min()))
            assert x == pytest.approx(weights @ record.experts[there, 1] / weights.sum())
        committee = Committee(then, x, pending)
        assert record.info[3] == pytest.approx(committee.prior, abs=1e-9)
        assert record.learners == pytest.approx(committee.learners, abs=1e-9)
        for name, expected in committee.taught(before, y).items():
            assert getattr(after, name) == pytest.approx(expected, rel=1e-7, abs=1e-9), name


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_losses_of_binary_experts(several: bool) -> None:
    for _, record, before, after, y in played(3, several):
        weight, p = (1 + record.info[0]) ** -0.5, record.played[1]
        pool, rivals = before.pool.copy(), before.rivals.copy()
        for e, rival in enumerate(rivals):
            there = record.units[e] > 0.0
            x = record.experts[e, 1] if there else record.pool[1]
            lost = min(-np.log(max(x if y else 1 - x, 1e-300)), 8.0)
            pool[e] = (1 - 0.001 * weight) * min(pool[e], before.pool.min() + 8) + weight * lost
            if there:
                rival[:2] = 0.998 * rival[:2] + [(x - y) ** 2, 1]
                rival[2:] += [(p - y) ** 2 - (x - y) ** 2, 1]
        assert after.pool == pytest.approx(pool, abs=1e-12)
        assert after.rivals == pytest.approx(rivals, abs=1e-12)
