"""What each learner learns from an outcome, against its definition written plainly.

A game is played with outcomes that come late and out of order; before each outcome the definition says from what the
round recorded what the memory has to be after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import truncnorm

import orcast as oc
from helpers import slow_locate
from orcast.constants import BINARY_LOSS_DISCOUNT, LOSS_DISCOUNT
from orcast.engine.kernels import binary as binary_kernels
from orcast.engine.kernels.binary import BinaryInfo, BinaryStatistic, Feature, RecordedOdds
from orcast.engine.kernels.records import (
    CellRow,
    GroupColumn,
    GroupLoss,
    LearnerRecord,
    RoundInfo,
    SpreadColumn,
    Statistic,
    TrackerRecord,
)

Vector = NDArray[np.float64]
State = dict[str, Vector]
# Rounds in the order in which they are issued, and settled (with a minus); at most three are pending.
ORDER = (1, -1, 2, 3, -3, 4, -2, 5, -5, -4, 6, -6, 7, -7, 8, 9, 10, -9, -8, -10, 11, -11)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(30)


def settled(game: Any, forecasts: Any, outcomes: Any, **options: Any) -> Iterator[tuple[Any, float, State, State, int]]:
    """For each outcome: the round, the outcome, the memory before and after, and how many were pending."""
    pending: dict[int, int] = {}
    for step in ORDER:
        if step > 0:
            chosen = {name: option(step) for name, option in options.items()}
            usual = game.rounds.usual_lag
            outstanding = len(pending) if usual is None else min(len(pending), 2.0 * usual + 2.0)
            game.predict(forecasts(step), id=step, **chosen)
            pending[step] = outstanding
        else:
            record = game.rounds.find(-step).record
            y = outcomes(-step)
            before = {name: array.copy() for name, array in game.engine.arrays().items()}
            game.update(y, id=-step)
            yield record, y, before, game.engine.arrays(), pending.pop(-step)


def kept(discount: float, weight: float) -> float:
    """What is left of a discounted sum after an observation of this weight."""
    return 1.0 - (1.0 - discount) * weight


def cut(a: float, b: float) -> tuple[float, float]:
    """Mean and variance of a standard normal between two scores."""
    return float(truncnorm.mean(a, b)), float(truncnorm.var(a, b))


def score_of(y: float, q: Vector, z: Vector, slopes: tuple[float, float]) -> tuple[float, float]:
    """The normal score of a value under quantiles q at scores z; of an atom the mean and variance of its share."""
    if y < q[0]:
        return z[0] + (y - q[0]) / slopes[0], 0.0
    if y > q[-1]:
        return z[-1] + (y - q[-1]) / slopes[1], 0.0
    at = np.flatnonzero(q == y)
    if at.size == 1:
        return float(z[at[0]]), 0.0
    if at.size:
        return cut(z[at[0]] if at[0] > 0 else -8.0, z[at[-1]] if at[-1] < q.size - 1 else 8.0)
    i = int(np.flatnonzero(q > y)[0])
    return float(z[i - 1] + (z[i] - z[i - 1]) * (y - q[i - 1]) / (q[i] - q[i - 1])), 0.0


def slopes_of(q: Vector, z: Vector, least: float) -> tuple[float, float]:
    """Beyond the outer levels: the mean slope of each half, neither much smaller than the other."""
    middle = q.size // 2
    low, high = (q[middle] - q[0]) / (z[middle] - z[0]), (q[-1] - q[middle]) / (z[-1] - z[middle])
    least = max(0.125 * (low + high), least)
    return max(low, least), max(high, least)


def moved(location: float, spread: float, q: Vector, z: Vector, slopes: tuple[float, float], space: Any) -> Vector:
    """The quantiles Q(location + spread z), within the bounds."""
    at = location + spread * z
    inner = np.interp(at, z, q)
    inner = np.where(at < z[0], q[0] + (at - z[0]) * slopes[0], inner)
    inner = np.where(at > z[-1], q[-1] + (at - z[-1]) * slopes[1], inner)
    return np.clip(inner, space.low, space.high)


def pinball(q: Vector, y: float, levels: Vector) -> float:
    return float(np.mean(np.where(y > q, levels * (y - q), (1.0 - levels) * (q - y))))


def normal(step: int) -> oc.Normal:
    return oc.Normal(14.0 + 3.0 * math.sin(step), 1.0 + 0.3 * (step % 4))


def rain(step: int) -> oc.Ensemble:
    """A heavy zero: an atom at the lower bound."""
    return oc.Ensemble([0.0, 0.0, 0.0, 2.0 + step % 3, 5.0, 9.0 + step])


def dry_or_wet(step: int) -> float:
    return 0.0 if step % 3 == 0 else 4.0 + 2.0 * math.cos(step)


def anything(step: int) -> float:
    return 15.0 + 4.0 * math.cos(1.7 * step)


SPACE = oc.Interval(0, 30)
CASES = {"normal": (normal, anything), "rain": (rain, dry_or_wet)}


@pytest.mark.parametrize("case", CASES)
def test_groups_learn_location_and_spread(case: str) -> None:
    """For each group the mean and the variance of the normal scores, in which an atom has the variance of its share."""
    forecasts, outcomes = CASES[case]
    hour = oc.by("hour", edges=[4.0, 8.0], soft=2.0)
    game = oc.Recalibrator(SPACE, oc.QuantileCalibration(context=hour))
    z, levels = SPACE.scores, SPACE.levels
    blurs = []
    for record, y, before, after, pending in settled(game, forecasts, outcomes, x=lambda step: {"hour": float(step)}):
        round, weight = record.round, 1.0 / math.sqrt(1.0 + pending)
        q = round.raw
        slopes = slopes_of(q, z, round.info[RoundInfo.SMALLEST_SLOPE])
        score, blur = score_of(y, q, z, slopes)
        blurs.append(blur)
        unit = 0.5 * after["statistics"][Statistic.LOSS_SUM] / after["statistics"][Statistic.LOSS_COUNT]
        asked = moved(*round.info[[RoundInfo.GROUP_LOCATION, RoundInfo.GROUP_SPREAD]], q, z, slopes, SPACE)
        losses = {GroupLoss.CORRECTED: pinball(asked, y, levels), GroupLoss.EXPERT: pinball(q, y, levels)}
        for whose, loss in losses.items():
            expected = kept(LOSS_DISCOUNT, weight) * before["group_loss"][whose] + weight * loss / unit
            assert after["group_loss"][whose] == pytest.approx(expected)
        shares = np.abs(round.context)
        assert shares.sum() == pytest.approx(1.0)
        for share, was, now in zip(shares, before["by_group"], after["by_group"], strict=True):
            rounds = was[GroupColumn.ROUNDS] + share * weight
            rate = share * weight * max(0.002, 1.0 / (rounds + 10.0))
            error = np.clip(score, -8.0, 8.0) - was[GroupColumn.MEAN]
            variance = (1.0 - rate) * was[GroupColumn.VARIANCE] + rate * (error**2 + blur)
            assert now == pytest.approx([rounds, was[GroupColumn.MEAN] + rate * error, variance])
    assert (max(blurs) > 0.1) == (case == "rain")


def test_a_round_asks_for_the_mean_correction_of_its_groups() -> None:
    hour = oc.by("hour", edges=[4.0, 8.0], soft=2.0)
    game = oc.Recalibrator(SPACE, oc.QuantileCalibration(context=hour))
    rows = game.engine.arrays()["by_group"]
    rows[:, GroupColumn.MEAN], rows[:, GroupColumn.VARIANCE] = [1.0, -2.0, 0.5], [0.25, 4.0, 1e6]
    for at, share in ((2.0, [1.0, 0.0, 0.0]), (4.0, [0.5, 0.5, 0.0]), (9.5, [0.0, 0.0, 1.0])):
        game.predict(normal(1), x={"hour": at})
        round = game.rounds.find(None).record.round
        assert round.context == pytest.approx(share)
        location, spread = round.info[[RoundInfo.GROUP_LOCATION, RoundInfo.GROUP_SPREAD]]
        assert location == pytest.approx(np.dot(share, [1.0, -2.0, 0.5]))
        assert spread == pytest.approx(min(math.sqrt(np.dot(share, [0.25, 4.0, 1e6])), 10.0))


@pytest.mark.parametrize("case", CASES)
def test_members_learn_the_shape_of_the_pit(case: str) -> None:
    """A member is the prior times exp(theta phi); its step is weight x rate x (phi at the PIT - its own mean of phi)."""
    forecasts, outcomes = CASES[case]
    game = oc.Recalibrator(SPACE)
    rates, uses_last = np.array([0.002, 0.01, 0.002, 0.01]), np.array([False, False, True, True])
    last_pits: dict[int, float] = {}
    for record, y, before, after, pending in settled(game, forecasts, outcomes):
        round, weight = record.round, 1.0 / math.sqrt(1.0 + pending)
        n = int(round.info[RoundInfo.CELLS])
        cells = round.cells[:, :n]
        left, right, prior = cells[CellRow.LEFT], cells[CellRow.RIGHT], cells[CellRow.PRIOR]
        edges = np.concatenate(([0.0], np.cumsum(prior)))
        # the mean over each cell's share of the levels, by quadrature
        inner = 0.5 * (edges[:-1, None] + edges[1:, None]) + 0.5 * np.diff(edges)[:, None] * NODES
        phi = np.array([math.sqrt(2.0) * np.cos(math.pi * j * inner) @ WEIGHTS / 2.0 for j in range(1, 9)]).T
        k = slow_locate(y, left, right)
        share = (y - left[k]) / (right[k] - left[k]) if right[k] > left[k] else 0.5
        assert after["statistics"][Statistic.LAST_PIT] == pytest.approx(edges[k] + share * prior[k])
        observations = before["statistics"][Statistic.OBSERVATIONS] + weight
        assert after["statistics"][Statistic.OBSERVATIONS] == pytest.approx(observations)
        context = round.info[RoundInfo.LAST_CONTEXT]
        unit = after["statistics"][Statistic.LOSS_SUM] / after["statistics"][Statistic.LOSS_COUNT]
        account = after["member_loss"][0 if pending < 1 else 1 if pending < 16 else 2]
        was = before["member_loss"][0 if pending < 1 else 1 if pending < 16 else 2]
        masses = [*cells[CellRow.MEMBERS :], prior, cells[CellRow.EXPERT]]
        lost = [oc.Forecast(left, right, mass / mass.sum()).crps(y) / unit for mass in masses]
        assert account == pytest.approx(kept(LOSS_DISCOUNT, weight) * was + weight * np.array(lost))
        for m in range(4):
            mass = cells[CellRow.MEMBERS + m]
            change = weight * max(rates[m], 1.0 / (observations + 50.0)) * (phi[k] - mass @ phi)
            rows = np.array([change, 3.0 * context * change if uses_last[m] else np.zeros(8)])
            # cells that were not merged have the shares of the levels that they are made for, up to some 1e-5
            assert after["shape"][m] - before["shape"][m] == pytest.approx(rows, rel=1e-3, abs=1e-5)
        last_pits[len(last_pits)] = context
    # the context of a round is that of the PIT before its forecast
    assert len(set(np.round(list(last_pits.values()), 6))) > 3


def test_a_member_tilts_the_prior() -> None:
    game = oc.Recalibrator(SPACE)
    for _ in settled(game, normal, anything):
        pass
    arrays = game.engine.arrays()
    arrays["shape"][:] = 0.3 * np.random.default_rng(1).normal(size=arrays["shape"].shape)
    game.predict(normal(3))
    round = game.rounds.find(None).record.round
    cells = round.cells[:, : int(round.info[RoundInfo.CELLS])]
    prior = cells[CellRow.PRIOR]
    edges = np.concatenate(([0.0], np.cumsum(prior)))
    context = 2.0 * arrays["statistics"][Statistic.LAST_PIT] - 1.0
    for m, (constant, last) in enumerate(arrays["shape"]):
        theta = constant + (context * last if m >= 2 else 0.0)
        inner = 0.5 * (edges[:-1, None] + edges[1:, None]) + 0.5 * np.diff(edges)[:, None] * NODES
        phi = np.array([math.sqrt(2.0) * np.cos(math.pi * j * inner) @ WEIGHTS / 2.0 for j in range(1, 9)]).T
        mass = prior * np.exp(np.clip(phi @ theta, -6.0, 6.0))
        mass /= mass.sum()
        assert cells[CellRow.MEMBERS + m] == pytest.approx(mass, rel=1e-6)
        assert round.means[m] == pytest.approx(mass @ phi, abs=1e-6)


class LeastSquares:
    """One step of recursive least squares with forgetting; the covariance stops growing at a cap."""

    def __init__(self, theta: Vector, cov: Vector, cap: float) -> None:
        self.theta, self.cov, self.cap = theta, cov, cap

    def after(self, x: Vector, error: float, weight: float) -> tuple[Vector, Vector]:
        discount = kept(0.998, weight)
        gain = self.cov @ x / (discount / weight + x @ self.cov @ x)
        cov = (self.cov - np.outer(gain, x @ self.cov)) / discount
        return self.theta + gain * error, cov * discount if cov.diagonal().max() > self.cap else cov


@pytest.mark.parametrize("case", CASES)
def test_the_tracker_learns_location_and_spread(case: str) -> None:
    forecasts, outcomes = CASES[case]
    game = oc.Recalibrator(SPACE)
    z, levels = SPACE.scores, SPACE.levels
    sizes, discounts = [5, 5, 1, 1], [0.99, 0.998, 0.99, 0.998]
    for record, y, before, after, pending in settled(game, forecasts, outcomes):
        round, weight = record.round, 1.0 / math.sqrt(1.0 + pending)
        notes, was, now = round.tracker_record, before["statistics"], after["statistics"]
        q = round.experts[0]
        slopes = slopes_of(q, z, round.info[RoundInfo.SMALLEST_SLOPE])
        score, blur = score_of(y, q, z, slopes)
        if y <= SPACE.low:
            # an outcome at a bound stands for all that the expert puts there and beyond
            score, blur = cut(-8.0, z[np.flatnonzero(q <= y)[-1]])
        size = was[Statistic.SCORE_SIZE]
        new = math.sqrt(kept(0.99, weight) * size**2 + 0.01 * weight * min(score**2 + blur, (6.0 * size) ** 2))
        assert now[Statistic.SCORE_SIZE] == pytest.approx(new)
        x = np.append(1.0, notes[1:5] * notes[TrackerRecord.SCORE_SIZE] / size)
        unit = 0.5 * now[Statistic.LOSS_SUM] / now[Statistic.LOSS_COUNT]
        place = 0 if pending < 1 else 1
        raw = pinball(moved(0.0, 1.0, q, z, slopes, SPACE), y, levels)
        loss = [kept(LOSS_DISCOUNT, weight) * before["track_loss"][place, 0] + weight * raw / unit]
        for c in range(4):
            own = notes[TrackerRecord.LEARNERS + 7 * c :][:7]
            used = x[: sizes[c]]
            theta, cov = before["location"][c, : sizes[c]], before["location_cov"][c, : sizes[c], : sizes[c]]
            error = np.clip(score / size, -6.0, 6.0) - theta @ used
            theta, cov = LeastSquares(theta, cov, 0.5).after(used, error, weight)
            theta[0] *= size / new
            assert after["location"][c, : sizes[c]] == pytest.approx(theta, abs=1e-12)
            assert after["location_cov"][c, : sizes[c], : sizes[c]] == pytest.approx(cov, abs=1e-12)
            deviation = math.sqrt(error**2 + blur / size**2) / math.sqrt(2.0 / math.pi)
            surprise = min(deviation * size / own[LearnerRecord.SPREAD] - 1.0, 4.0)
            fit, cov = LeastSquares(before["fit"][c], before["fit_cov"][c], 0.1).after(own[2:], surprise, weight)
            assert after["fit"][c] == pytest.approx(fit, abs=1e-12)
            assert after["fit_cov"][c] == pytest.approx(cov, abs=1e-12)
            slow, fast = before["spread"][c, SpreadColumn.SLOW], before["spread"][c, SpreadColumn.FAST]
            fast = kept(0.9, weight) * fast + 0.1 * weight * min(deviation, 6.0 * slow)
            slow = kept(discounts[c], weight) * slow + (1.0 - discounts[c]) * weight * deviation
            assert after["spread"][c] == pytest.approx(np.array([slow, fast]) * size / new)
            corrected = moved(own[LearnerRecord.LOCATION], own[LearnerRecord.SPREAD], q, z, slopes, SPACE)
            old = before["track_loss"][place, c + 1]
            loss.append(kept(LOSS_DISCOUNT, weight) * old + weight * pinball(corrected, y, levels) / unit)
        assert after["track_loss"][place] == pytest.approx(loss)
        median = notes[TrackerRecord.MEDIAN]
        assert median == q[q.size // 2]
        assert now[Statistic.ERROR_1] == y - median
        assert now[Statistic.ERROR_2] == was[Statistic.ERROR_1]
        assert now[Statistic.ERROR_3] == was[Statistic.ERROR_2]
        assert now[Statistic.LAST_OUTCOME] == y


def test_the_tracker_mixes_its_learners_by_their_losses() -> None:
    """Location and spread are means of those of the learners and of the expert (0 and 1), by exponential weights."""
    game = oc.Recalibrator(SPACE)
    for _ in settled(game, normal, anything):
        pass
    arrays = game.engine.arrays()
    arrays["track_loss"][:] = np.random.default_rng(2).random(arrays["track_loss"].shape)
    game.rounds.usual_lag = None
    for pending in range(3):
        game.predict(normal(5), id=pending)
        round = game.rounds.find(pending).record.round
        notes, q, z = round.tracker_record, round.experts[0], SPACE.scores
        said = notes[TrackerRecord.LEARNERS :].reshape(4, 7)[:, :2]
        weights = np.exp(-2.0 * arrays["track_loss"][min(pending, 1)])
        weights[1:] *= (1.0 + pending) ** -0.5
        location, spread = weights @ np.vstack(([0.0, 1.0], said)) / weights.sum()
        slopes = slopes_of(q, z, round.info[RoundInfo.SMALLEST_SLOPE])
        expected = moved(location, spread, q, z, slopes, SPACE)
        n = int(round.info[RoundInfo.CELLS])
        left, right, prior = round.cells[[CellRow.LEFT, CellRow.RIGHT, CellRow.PRIOR], :n]
        prior_cdf = np.interp(expected, np.append(left[0], right), np.append(0.0, np.cumsum(prior)))
        inside = (expected > SPACE.low) & (expected < SPACE.high)
        assert prior_cdf[inside] == pytest.approx(SPACE.levels[inside], abs=1e-6)


def sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z))


def test_binary_learners_take_implicit_newton_steps_and_drift() -> None:
    """theta + P f e with the error e after the step; then theta <- rho theta, P <- rho^2 P + (1 - rho^2) P_0."""
    game = oc.Recalibrator(oc.Binary())
    engine: Any = game.engine
    chance = 0.5 + 0.4 * np.sin(np.arange(12))
    lags = []
    for record, y, before, after, pending in settled(game, lambda t: float(chance[t]), lambda t: int(t % 3 == 0)):
        round = engine._round(record.row)
        weight = 1.0 / math.sqrt(1.0 + pending)
        lags.append(pending)
        assert round.info[BinaryInfo.PENDING] == pending
        place = 0 if pending < 1 else 1
        f_all = round.features
        for i, (stage, span, used) in enumerate(binary_kernels.LEARNERS):
            f = f_all[list(used)]
            at = slice(binary_kernels.THETA_AT[i], binary_kernels.THETA_AT[i + 1])
            theta = before["theta"][at]
            offset = round.odds[RecordedOdds.EXPERT if stage == 1 else RecordedOdds.FIRST_STAGE]
            z = np.clip(offset + theta @ f, -8.0, 8.0)
            square = slice(binary_kernels.SPREAD_AT[i], binary_kernels.SPREAD_AT[i + 1])
            cov = before["spread"][square].reshape(f.size, f.size)
            # in the first stage every outcome counts in full
            counts = 1.0 if stage == 1 else math.sqrt(weight)
            reach = counts * (f @ cov @ f)
            p = sigmoid(z)
            error = (y - p) / (1.0 + reach * p * (1.0 - p))
            p = sigmoid(z + reach * error)
            error -= (error - (y - p)) / (1.0 + reach * p * (1.0 - p))
            curvature = counts * max(p * (1.0 - p), 0.01)
            rho = 1.0 - 1.0 / span if span else 1.0
            prior = np.diag([binary_kernels.VARIANCES[j] for j in used])
            learnt = np.linalg.inv(np.linalg.inv(cov) + curvature * np.outer(f, f))
            assert after["theta"][at] == pytest.approx(rho * (theta + counts * error * cov @ f), abs=1e-12)
            new = rho**2 * learnt + (1.0 - rho**2) * prior
            assert after["spread"][square] == pytest.approx(new.ravel(), abs=1e-9)
            said = float(round.learners[i])
            loss = math.log1p(math.exp(-said if y else said))
            expected = kept(BINARY_LOSS_DISCOUNT, weight) * before["loss"][place, i] + weight * loss
            assert after["loss"][place, i] == pytest.approx(expected)
        was, now = before["statistics"], after["statistics"]
        error = y - sigmoid(round.odds[RecordedOdds.FIRST_STAGE])
        for name, rate in ((BinaryStatistic.FAST_ERROR, 0.2), (BinaryStatistic.SLOW_ERROR, 0.05)):
            assert now[name] == pytest.approx(was[name] + rate * weight * (error - was[name]))
        assert now[BinaryStatistic.BEFORE_LAST_OUTCOME] == was[BinaryStatistic.LAST_OUTCOME]
        assert now[BinaryStatistic.LAST_OUTCOME] == 2 * y - 1
        assert now[BinaryStatistic.LAST_ERROR] == pytest.approx(error)
        assert now[BinaryStatistic.LAST_LOG_ODDS] == round.features[Feature.LOG_ODDS]
    assert max(lags) >= 2


def test_what_binary_learners_learnt_wears_off_with_the_outcomes_they_have_not_seen() -> None:
    game = oc.Recalibrator(oc.Binary())
    engine: Any = game.engine
    for _ in settled(game, lambda t: 0.3 + 0.03 * t, lambda t: t % 2):
        pass
    game.rounds.usual_lag = None
    for pending in range(4):
        game.predict(0.35, id=pending)
        round = engine._round(game.rounds.find(pending).record.row)
        theta = game.engine.arrays()["theta"]
        for i, (stage, span, used) in enumerate(binary_kernels.LEARNERS):
            at = slice(binary_kernels.THETA_AT[i], binary_kernels.THETA_AT[i + 1])
            left = (1.0 - 1.0 / span) ** pending if span else 1.0
            offset = round.odds[RecordedOdds.EXPERT if stage == 1 else RecordedOdds.FIRST_STAGE]
            said = offset + left * (theta[at] @ round.features[list(used)])
            assert round.learners[i] == pytest.approx(np.clip(said, -8.0, 8.0))


def test_learners_of_labels_take_newton_steps() -> None:
    """p ~ x^(1 + a) exp(b): a with the curvature Var_p(log x), b with p (1 - p), summed with forgetting."""
    labels = ("a", "b", "c")
    game = oc.Recalibrator(oc.Labels(labels))
    rng = np.random.default_rng(4)
    masses = rng.dirichlet(np.ones(3), 12)
    masses[5] = masses[2] * 0.999 + 0.001 / 3
    members = ((0.998, False, 5.0), (0.998, True, 20.0), (0.99, True, 20.0))
    experts = {t: {"one": masses[t], "other": [0.2, 0.3, 0.5] if t % 3 else None} for t in range(12)}
    for record, label, before, after, pending in settled(
        game, lambda t: None, lambda t: labels[t % 3], experts=lambda t: experts[t]
    ):
        round, weight, k = record.round, 1.0 / math.sqrt(1.0 + pending), labels.index(label)
        log_x = np.log(np.maximum(round.base, 1e-6))

        def loss(mass: float) -> float:
            return min(-math.log(max(mass, 1e-300)), 8.0)

        pool = before["prior/pool"]
        missing = np.isnan(round.experts[:, 0])
        for e in range(2):
            # one that is missing is charged what the pool loses
            own = loss(round.pool[k] if missing[e] else round.experts[e, k])
            behind = min(pool[e], pool.min() + 8.0)
            assert after["prior/pool"][e] == pytest.approx(kept(LOSS_DISCOUNT, weight) * behind + weight * own)
        lost = np.array([loss(p[k]) for p in (*round.members, round.base)])
        assert after["prior/loss"] == pytest.approx(kept(LOSS_DISCOUNT, weight) * before["prior/loss"] + weight * lost)
        for m, (discount, shifts, start) in enumerate(members):
            a, b, p = before["prior/scale"][m], before["prior/shift"][m], round.members[m]
            variance = p @ log_x**2 - (p @ log_x) ** 2
            total = kept(discount, weight) * before["prior/scale_sum"][m] + weight * variance
            step = weight * (log_x[k] - p @ log_x) / (total + start)
            assert after["prior/scale_sum"][m] == pytest.approx(total)
            assert after["prior/scale"][m] == pytest.approx(np.clip(a + step, -0.9, 3.0))
            if not shifts:
                assert not after["prior/shift"][m].any()
                continue
            sums = kept(discount, weight) * before["prior/shift_sum"][m] + weight * p * (1.0 - p)
            assert after["prior/shift_sum"][m] == pytest.approx(sums)
            assert after["prior/shift"][m] == pytest.approx(b + weight * (np.eye(3)[k] - p) / (sums + start))
    game.predict(experts={"one": [0.6, 0.3, 0.1], "other": None})
    round, arrays = game.rounds.find(None).record.round, game.engine.arrays()
    for m in range(3):
        p = round.base ** (1.0 + arrays["prior/scale"][m]) * np.exp(arrays["prior/shift"][m])
        assert round.members[m] == pytest.approx(p / p.sum())
