"""The committee on finite spaces against its definition: conditional logit members, Bernstein online aggregation."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kernel_runs import Array
from scipy.special import expit, logit, softmax

import orcast as oc
from orcast.engine.oracles import FINITE

LABELS = ["a", "b", "c", "d"]
# Memory, features used, whether it shifts.
MEMBERS = [(0.9995, 3, False), (0.998, 8, True)]
RIDGE = np.array([5.0, 3.0, 20.0, 1.5, 1.5, 1.5, 5.0, 0.5])
NAMES = ("regret", "square", "theta", "curvature", "shift", "shift_curvature", "errors", "outcomes")


class Twin:
    """The committee in numpy; `two` if the mix is clipped in log odds, as by the compiled engine on two cells."""

    def __init__(self, cells: int, experts: int, two: bool) -> None:
        n, self.cells, self.two = len(MEMBERS), cells, two
        self.regret, self.square = np.zeros((experts, 1 + n)), np.zeros((experts, 1 + n))
        self.theta = np.tile(np.eye(8)[0], (experts, n, 1))
        self.curvature = np.zeros((experts, n, 8, 8))
        self.shift, self.shift_curvature = np.zeros((experts, n, cells)), np.zeros((experts, n, cells))
        self.errors, self.outcomes, self.count = np.zeros((experts, 2, cells)), np.zeros((3, cells)), 0
        self.outcomes[0] = 1.0 / cells

    def features(self, e: int, x: Array) -> Array:
        """A row for each cell."""
        logs, (mean, last, before) = np.log(np.maximum(x, 1e-3)), self.outcomes
        second = np.array([0.0, 1.0]) if self.cells == 2 else np.zeros(self.cells)
        skew = second * (logs.sum() + np.log(4.0))
        error, mean_error = self.errors[e]
        log_mean = np.log(np.maximum(mean, 1e-3)) - logs
        return np.stack([logs, second, skew, last, before, error, log_mean, mean_error], axis=1)

    def member(self, e: int, m: int, f: Array) -> Array:
        used = MEMBERS[m][1]
        value: Array = softmax(f[:, :used] @ self.theta[e, m, :used] + self.shift[e, m])
        return value

    def weights(self, there: Any) -> Array:
        """Weights of each expert and its members."""
        count = len(there)
        prior = np.tile([0.7, 0.15, 0.15], (count, 1)) / count
        eta = np.minimum(0.5, np.sqrt(np.maximum(-np.log(prior), 0.7) / np.maximum(self.square, 1e-300)))
        w = prior * eta * np.exp(0.999 * (eta * self.regret - eta**2 * self.square))
        w[~there] = 0.0
        value: Array = w / w.sum()
        return value

    def predict(self, experts: Array) -> Any:
        there = ~np.isnan(experts[:, 0])
        weights = self.weights(there)
        features = [self.features(e, x) for e, x in enumerate(experts)]
        rows = [[x, *(self.member(e, m, features[e]) for m in (0, 1))] for e, x in enumerate(experts)]
        mix = np.einsum("ei,eik->k", weights[there], np.array(rows)[there])
        if self.two:
            p = expit(np.clip(logit(mix[1]), -13.8, 13.8))
            mix = np.array([1.0 - p, p])
        else:
            mix = (1 - 1e-4) * mix + 1e-4 / self.cells
        pool = weights[there].sum(axis=1) @ experts[there]
        return SimpleNamespace(experts=experts, there=there, features=features, rows=rows, prior=mix, pool=pool)

    def update(self, round: Any, pending: float, y: int) -> None:
        weight, outcome = 1.0 / np.sqrt(1.0 + pending), np.eye(self.cells)[y]
        for e in np.flatnonzero(round.there).tolist():
            regret = weight * np.minimum(np.array(round.rows[e])[:, y] / round.prior[y] - 1.0, 3.0)
            self.regret[e] = 0.999 * self.regret[e] + regret
            self.square[e] = 0.999 * self.square[e] + regret**2
            for m in (0, 1):
                self.step(e, m, round.features[e], weight, outcome)
            error = outcome - round.experts[e]
            self.errors[e] = error, self.errors[e, 1] + 0.05 * (error - self.errors[e, 1])
        self.count += 1
        mean, last, _ = self.outcomes
        self.outcomes = np.array([mean + max(1 / (self.count + 1), 0.01) * (outcome - mean), outcome - mean, last])

    def step(self, e: int, m: int, features: Array, weight: float, outcome: Array) -> None:
        """Newton step on the log loss plus a ridge around the start, at the coefficients of now."""
        (kept, used, shifts), p = MEMBERS[m], self.member(e, m, features)
        f, theta, ridge = features[:, :used], self.theta[e, m, :used], RIDGE[:used]
        h = self.curvature[e, m, :used, :used]
        h[:] = kept * h + weight * (f.T @ (np.diag(p) - np.outer(p, p)) @ f)
        gradient = weight * f.T @ (outcome - p) - (1 - kept) * ridge * (theta - np.eye(8)[0, :used])
        theta += np.linalg.solve(h + np.diag(ridge), gradient)
        if shifts and self.cells > 2:
            b, v, scale = self.shift[e, m], self.shift_curvature[e, m], self.cells / (self.cells - 1)
            v[:] = kept * v + weight * scale * p * (1 - p)
            b += (weight * (outcome - p) - (1 - kept) * 4.0 * b) / (v + 4.0)


def test_members_are_those_of_the_table() -> None:
    assert FINITE.tolist() == [[kept, used, shifts] for kept, used, shifts in MEMBERS]


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("name", ["binary", "labels", "dense"])
def test_committee_matches_its_definition(name: str, late: int, several: bool) -> None:
    rng = np.random.default_rng(5)
    space = oc.Binary() if name == "binary" else oc.Labels(LABELS)
    cells = space.cells
    recal: Any = oc.Recalibrator(space, oc.payoffs.SimplexCalibration() if name == "dense" else None)
    twin = Twin(cells, 2 if several else 1, name == "binary")
    outcomes, rounds = rng.choice(cells, size=60, p=np.arange(1, cells + 1) / (cells * (cells + 1) / 2)), {}
    for t in range(60):
        x, other = rng.dirichlet(np.linspace(3.0, 0.1, cells)), np.full(cells, 1 / cells)
        given = [float(v[1]) if name == "binary" else list(v) for v in (x, other)]
        if several:
            recal.predict(experts={"one": given[0], "other": given[1] if t % 3 else None}, id=t)
        else:
            recal.predict(given[0], id=t)
        record = recal.rounds.pending[t].record
        round = SimpleNamespace(**(record.round if name == "dense" else record).views())
        rounds[t] = twin.predict(round.experts)
        assert round.pool == pytest.approx(rounds[t].pool, abs=1e-12)
        assert round.prior == pytest.approx(rounds[t].prior, abs=1e-9)
        if t >= late:
            k, told = int(outcomes[t - late]), rounds.pop(t - late)
            twin.update(told, min(t - late, late), k)
            recal.update(k if name == "binary" else LABELS[k], id=t - late)
            arrays = recal.engine.arrays()
            for field in NAMES:
                found = arrays[f"prior/{field}" if name == "dense" else field]
                assert found.ravel() == pytest.approx(getattr(twin, field).ravel(), rel=1e-6, abs=1e-9), field


def test_losses_of_binary_experts() -> None:
    rng, recal = np.random.default_rng(3), oc.Recalibrator(oc.Binary())
    engine: Any = recal.engine
    expected = np.zeros(4)
    for _ in range(30):
        x, y = float(rng.random()), int(rng.random() < 0.3)
        p = float(recal.predict(x).mean())
        recal.update(y)
        expected = np.array([0.998, 0.998, 1.0, 1.0]) * expected + [(x - y) ** 2, 1, (p - y) ** 2 - (x - y) ** 2, 1]
        assert engine.arrays()["rivals"][0] == pytest.approx(expected, abs=1e-12)


# --- the mix against each expert


def greedy(p: float, x: float, t: int) -> int:
    """Outcome that costs the mix more than the expert."""
    return int(p < x)


ADVERSARIES: dict[str, Callable[[float, float, int], int]] = {
    "greedy": greedy,
    "patient": lambda p, x, t: greedy(p, x, t) if t % 400 > 200 else int(p < 0.5),
    "against the forecast": lambda p, x, t: int(p < 0.5),
    "with the forecast": lambda p, x, t: int(p > 0.5),
    "regimes": lambda p, x, t: (t // 150) % 2,
    "alternating": lambda p, x, t: t % 2,
    "perfect": lambda p, x, t: int(np.random.default_rng(t).random() < x),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_regret_of_the_mix_stays_within_the_bound(name: str) -> None:
    """R <= log(1 / prior) / eta + eta V at any time, R the discounted log loss of the mix minus the expert's."""
    rng, recal = np.random.default_rng(8), oc.Recalibrator(oc.Binary())
    engine: Any = recal.engine
    behind, worst = 0.0, -np.inf
    for t in range(2000):
        x = float(np.clip(0.5 + 0.3 * np.sin(t / 30) + 0.1 * rng.normal(), 0.02, 0.98))
        recal.predict(x, id=t)
        p = float(recal.rounds.pending[t].record.view("prior")[1])
        y = ADVERSARIES[name](p, x, t)
        recal.update(y, id=t)
        behind = 0.999 * behind + np.log((x if y else 1 - x) / (p if y else 1 - p))
        square = float(engine.arrays()["square"][0, 0])
        eta = min(0.5, np.sqrt(0.7 / square)) if square else 0.5
        worst = max(worst, behind + np.log(0.7) / eta - eta * square)
    assert worst <= 0.0
