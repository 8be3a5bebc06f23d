"""Regret of the mix against each member, and of the level offsets against none, under attack."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runs import LEVELS, SCORES, Array, alone, members_of
from twin import Weights, hats, prior_of

from orcast.committee import group
from orcast.committee.state import CONSTANTS, STREAM

ROUNDS, CLIP = 1000, 3.0
HATS = hats(LEVELS)
# Share of the levels that each knot stands for.
SHARES = HATS.sum(axis=0) / len(LEVELS)


def losses(q: Array, y: Any) -> Array:
    """Mean pinball loss over the levels, for each outcome in y."""
    d = np.asarray(y)[..., None] - q
    return np.asarray(np.maximum(LEVELS * d, (LEVELS - 1) * d).mean(axis=-1))


def against(member: int) -> Callable[[Array, Array, int, Any], float]:
    """Outcome at which the mix loses most against a member."""

    def outcome(mix: Array, rows: Array, t: int, rng: Any) -> float:
        candidates = np.concatenate((rows.ravel(), mix, [rows[0, 0] - 3.0, rows[0, -1] + 3.0]))
        return float(candidates[np.argmax(losses(mix, candidates) - losses(rows[member], candidates))])

    return outcome


ATTACKS: dict[str, Callable[[Array, Array, int, Any], float]] = {
    "greedy": against(0),
    "greedy against the correction": against(1),
    "greedy against the house": against(2),
    # members may gain a little, before the mix loses as much as possible
    "bait": lambda mix, rows, t, rng: rows[0, 9] + 0.5 if t % 50 < 10 else against(0)(mix, rows, t, rng),
    "alternating": lambda mix, rows, t, rng: 3.0 * (-1.0) ** t,
    "random": lambda mix, rows, t, rng: rng.normal(0.0, 1.0),
    "drifting": lambda mix, rows, t, rng: 4.0 * np.sin(t / 50.0) + 0.02 * t + 0.5 * rng.normal(),
}


def attack(name: str, rounds: int = ROUNDS, **constants: float) -> Any:
    """Sums over the rounds of each part of the bound, by member; `square` by knot and member."""
    rng, committee = np.random.default_rng(0), alone(**constants)
    plan, row = committee.plan, committee.stream_rows[0]
    weights, sums = Weights(9, prior_of(False)), {}
    state = row[plan.weights_at : plan.offsets_at].reshape(2, 9, 3)
    for t in range(rounds):
        base = 0.02 * t * (name == "drifting") + SCORES
        _, memo = group.predict(committee, base[None, :], float(t))
        rows, mix = members_of(committee, memo)
        y = ATTACKS[name](mix, rows, t, rng)
        weights.regret, weights.square = state.copy()
        w = weights.now(fastest=constants.get("fastest", 0.5))
        group.update(committee, memo, y, 0.0)
        unit = max(row[STREAM.index("loss")], 0.15 * np.abs(base - base[9]).mean())
        linear = (HATS / HATS.sum(axis=0)).T @ (((y < mix) - LEVELS) * (mix - rows)).T / unit
        r = np.clip(linear, -CLIP, CLIP)
        terms = {
            "regret": (losses(mix, y) - losses(rows, y)) / unit,
            "slip": SHARES @ (w * r).sum(axis=1),
            "beyond": SHARES @ np.maximum(linear - CLIP, 0.0),
            "square": r**2,
        }
        for key, value in terms.items():
            sums[key] = sums.get(key, 0.0) + value
    return sums


def bound_of(sums: Any, fastest: float) -> Array:
    """ln(1 / p) / eta + eta V, averaged over the knots, with the slip and what was clipped."""
    needed = -np.log(prior_of(False))
    eta = np.minimum(fastest, np.sqrt(np.maximum(needed, 0.7) / sums["square"]))
    return np.asarray(SHARES @ (needed / eta + eta * sums["square"]) + sums["slip"] + sums["beyond"])


@pytest.mark.parametrize("name", ATTACKS)
def test_regret_stays_within_the_proven_bound_at_a_fixed_rate(name: str) -> None:
    """Mean over the levels of the sum of (loss of the mix - loss of member m) / unit is at most

        ln(1 / p_m) / eta + eta V_m + slip + beyond,

    V_m the sum of squared regrets, averaged over the knots; slip the sum of sum_m w_m r_m, which is 0 but for
    probation, clipping and sorting; beyond the regrets above the clip. It is proven in docs/theory.md for one rate eta
    with eta clip <= 1/2 and no discount. With eta = 0.008 the rate is constant for 1,000 rounds.
    """
    sums = attack(name, discount=1.0, fastest=0.008)
    assert 0.008**2 * sums["square"].max() < 0.7
    assert (sums["regret"] <= bound_of(sums, 0.008)).all()


@pytest.mark.parametrize("name", ATTACKS)
def test_regret_stays_within_the_measured_bound_at_adaptive_rates(name: str) -> None:
    """The same bound with the rates, the clip and the discount that are in use: measured only, not proven.

    V is not discounted here; with the discounted one the bound was exceeded once, by 7%. `bait` is the worst of 60
    variants (length, share and size of the bait). Against the base forecast less than 2 of its usual losses are lost
    in 1,000 rounds.
    """
    sums = attack(name)
    assert (sums["regret"] <= bound_of(sums, 0.5)).all()
    assert sums["regret"][0] <= 2.0


@pytest.mark.parametrize("name", ATTACKS)
def test_offsets_lose_no_more_than_gradient_descent(name: str) -> None:
    """Sum of a_t (loss with offsets - loss without), averaged over the levels, is at most half that of

        a_t^2 (0.3 e_t^2 + d_t^2) <= a_t^2,

    a_t the step of round t; e, d half sum and half difference of the misses of a level and its mirror (online gradient
    descent from 0 against 0, for steps of any kind). The steps are in the scale of the mix's error and fall as 1 / t,
    so that the sum of squares converges.
    """
    rng, committee = np.random.default_rng(0), alone()
    plan, row = committee.plan, committee.stream_rows[0]
    offsets = row[plan.offsets_at : plan.members_at]
    gained, bound, steps = 0.0, 0.0, 0.0
    for t in range(ROUNDS):
        base = 0.02 * t * (name == "drifting") + SCORES
        _, memo = group.predict(committee, base[None, :], float(t))
        rows, mix = members_of(committee, memo)
        shown = mix + offsets
        y = ATTACKS[name](shown, rows, t, rng)
        group.update(committee, memo, y, 0.0)
        step = 2 * CONSTANTS["offset"] * row[STREAM.index("mix_scale")] / (1 + (t + 1) / 50)
        miss = LEVELS - (y <= shown)
        shift, width = (miss + miss[::-1]) / 2, (miss - miss[::-1]) / 2
        gained += step * (losses(shown, y) - losses(mix, y))
        bound += step**2 * (0.3 * shift**2 + width**2).mean() / 2
        steps += step**2 / 2
    assert gained <= bound + 1e-12
    assert bound <= steps
