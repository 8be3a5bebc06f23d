"""Rivals that move quantiles by offsets: by hand, against slow twins, late, attacked, and in other units."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import orcast as oc
from orcast.baselines import (
    ConformalQuantiles,
    DecayingTracking,
    GradientEquilibrium,
    OptimisticTracking,
    ScaleFreeTracking,
    StronglyAdaptiveTracking,
    UniversalPortfolioTracking,
)

Vector = NDArray[np.float64]
LEVELS = np.array([0.03, 0.25, 0.5, 0.9])
# a twin's next offset, from a score and the offset that was issued
Settle = Callable[[float, float], float]


def offsets(method: Any, experts: Any, outcomes: Any, *, late: int = 0) -> Vector:
    """The offset issued in each round, and the last one."""
    out = []
    for t, expert in enumerate(experts):
        out.append(method.offset)
        method.predict(expert, id=t)
        if t >= late:
            method.update(outcomes[t - late], id=t - late)
    return np.array([*out, method.offset])


def point(method: Any, *outcomes: float) -> list[float]:
    """The offsets after an expert that always says 5."""
    last: list[float] = offsets(method, [oc.Normal(5, 0)] * len(outcomes), outcomes)[-1].tolist()
    return last


# --- by hand ---


def test_equilibrium_by_hand() -> None:
    assert point(GradientEquilibrium(0, 10, levels=[0.2, 0.8], rate=0.1), 6) == pytest.approx([0.2, 0.8])
    assert point(GradientEquilibrium(0, 10, levels=[0.2, 0.8], rate=0.1), 6, 5.5) == pytest.approx([0.4, 0.6])
    shift = GradientEquilibrium(0, 10, levels=[0.2, 0.8], rate=0.5, loss="squared")
    assert point(shift, 6) == pytest.approx([0.5, 0.5], abs=1e-4)  # of the mass on the bounds
    assert point(shift, 6) == pytest.approx([0.75, 0.75], abs=1e-4)


def test_decaying_by_hand() -> None:
    tracking = DecayingTracking(0, 10, levels=[0.2, 0.8], rate=0.5, decay=0.1, scale=4)
    assert point(tracking, 5.1) == pytest.approx([0.4, 1.6])
    assert point(tracking, 5.2) == pytest.approx([0.4 - 2 * 2**-0.6 * 0.8, 1.6 - 2 * 2**-0.6 * 0.2])
    seen = DecayingTracking(0, 10, levels=[0.2, 0.8])
    assert point(seen, 7, 4) == pytest.approx([0.4 - 2 * 2**-0.6 * 0.8, 1.6 - 2 * 2**-0.6 * 0.2])


def test_scale_free_by_hand() -> None:
    tracking = ScaleFreeTracking(0, 10, levels=[0.2, 0.8], scale=math.sqrt(3))
    assert point(tracking, 7) == pytest.approx([1.0, 1.0])
    second = [1 - 0.8 / math.sqrt(0.2**2 + 0.8**2), 1 - 0.2 / math.sqrt(0.8**2 + 0.2**2)]
    assert point(tracking, 5.5) == pytest.approx(second)


def test_optimistic_by_hand() -> None:
    cop = OptimisticTracking(0, 10, levels=[0.2, 0.8], rate=0.5, optimism=0.5, window=2)
    assert point(cop, 6) == [0.0, 0.0]  # a single score has no range
    # scores 1 and 3: tracks 0.2 and 0.8 are below both, so half a step of 0.2 and of 0.8 is added
    assert point(cop, 8) == pytest.approx([0.3, 1.2])
    # scores 3 and 1.1: e = 0.2 and -0.2, steps 0.95; F(0.39) = 0, F(0.61) = 0
    assert point(cop, 6.1) == pytest.approx([0.39 + 0.095, 0.61 + 0.38])


def test_portfolio_by_hand() -> None:
    up = UniversalPortfolioTracking(0, 10, levels=[0.2, 0.8], prior="jeffreys", first=1)
    # one half of the wealth on either asset: 0.5 / 0.8 - 0.5 / 0.2 and 0.5 / 0.2 - 0.5 / 0.8
    assert up.offset == pytest.approx([-1.875, 1.875])
    # a score of 1: wealth 1 - 1.875 0.2 and 1 - 1.875 0.2; shares 1.5 / 2 and 0.5 / 2
    assert point(up, 6) == pytest.approx([0.625 * (0.75 / 0.8 - 0.25 / 0.2), 0.625 * (0.25 / 0.2 - 0.75 / 0.8)])
    calm = UniversalPortfolioTracking(0, 10, levels=[0.2, 0.8])
    assert point(calm) == [0.0, 0.0]
    assert point(calm, 5) == [0.0, 0.0]  # no score above 0, no wealth
    assert calm._hits.tolist() == [0.0, 0.0]
    assert min(point(calm, 6)) != 0.0


def test_wealth_is_what_the_bets_brought() -> None:
    """The closed form, against the sum of offset x error."""
    rng = np.random.default_rng(0)
    for prior in ("centred", "jeffreys"):
        up = UniversalPortfolioTracking(0, 10, levels=LEVELS, prior=prior, first=2.5)
        wealth = np.full(4, 2.5)
        for y in rng.uniform(3, 8, size=60):
            before = up.offset
            up.predict(oc.Normal(5, 0))
            up.update(y)
            wealth += before * (LEVELS - (y - 5 <= before))
            share = (up._misses + (1 - LEVELS if prior == "centred" else 0.5)) / (up.rounds + 1)
            np.testing.assert_allclose(up.offset, wealth * (share / (1 - LEVELS) - (1 - share) / LEVELS), rtol=1e-9)


def test_strongly_adaptive_by_hand() -> None:
    """With a lifetime of 2 the trackers 1, 2, 3 live for 2, 4 and 2 rounds; with sqrt 3 as scale first steps are 1."""
    method = StronglyAdaptiveTracking(0, 10, levels=[0.2, 0.8], scale=math.sqrt(3), lifetime=2)
    assert point(method, 7) == pytest.approx([1.0, 1.0])  # no bet has won, and the first one is all there is
    # at 1, the first has e = -0.8 and -0.2 on a score of 0.5, and so has the second, born at 1; neither gains
    assert point(method, 5.5) == pytest.approx([0.0, 0.0])  # the first is gone, the second made its first step
    assert method._born.tolist() == [2, 3]
    # a score of 1: both at 0, again without gain
    second = [0.0 + 0.2 / math.sqrt(0.68), 0.0 + 0.8 / math.sqrt(0.68)]
    third = [1.0, 1.0]
    # 2 has the prior 1 / (4 2), and 3 has 1 / (9 2)
    assert point(method, 6) == pytest.approx([(9 * x + 4 * y) / 13 for x, y in zip(second, third, strict=True)])


def test_cqr_by_hand() -> None:
    assert point(ConformalQuantiles(0, 10, levels=[0.2, 0.8]), 6) == [1.0, 1.0]
    cqr = ConformalQuantiles(0, 10, levels=[0.2, 0.5, 0.8])
    assert point(cqr, 9, 6, 7, 8) == [1.0, 3.0, 4.0]  # ranks floor(1), ceil(2.5), ceil(4)
    assert point(ConformalQuantiles(0, 10, levels=[0.2, 0.5, 0.8], window=4), 1, 9, 6, 7, 8) == [1.0, 3.0, 4.0]


# --- against slow twins, with outcomes that come at once or late ---


def slow_equilibrium(a: float) -> Settle:
    offset = [0.0]

    def settle(s: float, q: float) -> float:
        offset[0] += 0.02 * 100 * (a - (s <= q))
        return offset[0]

    return settle


def slow_decaying(a: float, scale: float | None = None) -> Settle:
    past: list[float] = []
    offset = [0.0]

    def settle(s: float, q: float) -> float:
        past.append(abs(s))
        size = max(past) if scale is None else scale
        offset[0] += 0.7 * size * len(past) ** -0.7 * (a - (s <= q))
        return offset[0]

    return settle


def slow_scale_free(a: float, scale: float | None = None) -> Settle:
    sizes: list[float] = []
    errors: list[float] = []
    offset = [0.0]

    def settle(s: float, q: float) -> float:
        sizes.append(abs(s))
        errors.append(a - (s <= q))
        d = math.sqrt(3) * max(sizes) if scale is None else scale
        offset[0] += d / math.sqrt(3) * errors[-1] / math.sqrt(sum(e * e for e in errors))
        return offset[0]

    return settle


def slow_optimistic(a: float) -> Settle:
    past: list[float] = []
    track = [0.0]

    def settle(s: float, q: float) -> float:
        past.append(s)
        latest = past[-20:]
        step = 0.3 * (max(latest) - min(latest))
        track[0] += step * (a - (s <= q))
        if len(past) < 20:
            return track[0]
        return track[0] + 0.4 * step * (a - sum(x <= track[0] for x in latest) / 20)

    return settle


def wealth_and_share(a: float, m: int, k: int, u: float, v: float) -> tuple[float, float]:
    """Of a first wealth of 1 after m misses and k hits, one factor after the other; the order does not matter."""
    wealth, missed, hit = 1.0, u, v
    for _ in range(m):
        wealth *= missed / (missed + hit) / (1 - a)
        missed += 1
    for _ in range(k):
        wealth *= hit / (missed + hit) / a
        hit += 1
    return wealth, missed / (missed + hit)


def slow_portfolio(a: float, jeffreys: bool = False) -> Settle:
    past: list[float] = []
    count = {True: 0, False: 0}

    def settle(s: float, q: float) -> float:
        past.append(abs(s))
        count[s <= q] += 1
        u, v = (0.5, 0.5) if jeffreys else (1 - a, a)
        wealth, share = wealth_and_share(a, count[False], count[True], u, v)
        return past[0] * wealth * (share / (1 - a) - (1 - share) / a)

    return settle


def slow_cqr(a: float, window: int = 10**9) -> Settle:
    past: list[float] = []

    def settle(s: float, q: float) -> float:
        past.append(s)
        ordered = sorted(past[-window:])
        n = len(ordered)
        rank = math.floor((n + 1) * a + 1e-9) if a < 0.5 else math.ceil((n + 1) * a - 1e-9)
        return ordered[min(max(rank, 1), n) - 1]

    return settle


TWINS: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[[float], Settle]]] = {
    "equilibrium": (GradientEquilibrium, {"rate": 0.02}, slow_equilibrium),
    "decaying": (DecayingTracking, {"rate": 0.7, "decay": 0.2}, slow_decaying),
    "decaying, scale": (DecayingTracking, {"rate": 0.7, "decay": 0.2, "scale": 9}, lambda a: slow_decaying(a, 9)),
    "scale-free": (ScaleFreeTracking, {}, slow_scale_free),
    "scale-free, scale": (ScaleFreeTracking, {"scale": 9}, lambda a: slow_scale_free(a, 9)),
    "optimistic": (OptimisticTracking, {"rate": 0.3, "optimism": 0.4, "window": 20}, slow_optimistic),
    "portfolio": (UniversalPortfolioTracking, {}, slow_portfolio),
    "portfolio, jeffreys": (UniversalPortfolioTracking, {"prior": "jeffreys"}, lambda a: slow_portfolio(a, True)),
    "cqr": (ConformalQuantiles, {}, slow_cqr),
    "cqr, window": (ConformalQuantiles, {"window": 30}, lambda a: slow_cqr(a, 30)),
}


def stream(rounds: int, seed: int) -> tuple[Vector, Vector]:
    """Centres of an expert that is too low and too narrow, and outcomes."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(50, 5, size=rounds)
    return centres, np.clip(centres + rng.normal(2, 6, size=rounds), 1, 99)


@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("name", TWINS)
def test_against_slow_twins(name: str, late: int) -> None:
    make, options, twin = TWINS[name]
    centres, y = stream(120, 1)
    fast = offsets(make(0, 100, levels=LEVELS, **options), [oc.Normal(c, 4) for c in centres], y, late=late)
    for k, a in enumerate(LEVELS.tolist()):
        scores = (y - norm(centres, 4).ppf(a)).tolist()
        settle, slow = twin(a), [0.0]
        for t in range(120):
            slow.append(settle(scores[t - late], slow[t - late]) if t >= late else 0.0)
        np.testing.assert_allclose(fast[:, k], slow, rtol=1e-9, atol=1e-9)


def slow_strongly_adaptive(a: float, scores: list[float], late: int, lifetime: int, scale: float | None) -> list[float]:
    """Trackers as dictionaries, one level; each learns from the rounds in which it was there."""

    def pinball(e: float) -> float:
        return max(a * e, (a - 1) * e)

    def new(i: int, at: float) -> dict[str, Any]:
        life = lifetime
        while i % 2 == 0:
            i, life = i // 2, 2 * life
        return {"at": at, "life": life, "errors": [], "g": [], "wg": [], "w": 0.0}

    alive = {1: new(1, 0.0)}
    issued, seen = [0.0], 0.0
    then: list[dict[int, tuple[float, float]]] = []
    for t in range(len(scores)):
        then.append({i: (e["at"], e["w"]) for i, e in alive.items()})
        if t < late:
            issued.append(issued[-1])
            continue
        s, q, there = scores[t - late], issued[t - late], then[t - late]
        seen = max(seen, abs(s))
        d = math.sqrt(3) * seen if scale is None else scale
        for i, e in alive.items():
            if i in there:
                at, w = there[i]
                g = max(min((pinball(s - q) - pinball(s - at)) / d, 1.0), -1.0)
                g = 0.0 if abs(g) < 1e-12 else g if w > 0 else max(g, 0.0)
                e["g"].append(g)
                e["wg"].append(w * g)
                e["errors"].append(a - (s <= at))
                e["at"] += d / math.sqrt(3) * e["errors"][-1] / math.sqrt(sum(x * x for x in e["errors"]))
                e["w"] = sum(e["g"]) * (1 + sum(e["wg"])) / len(e["g"])
        alive = {i: e for i, e in alive.items() if len(e["g"]) < e["life"]}
        prior = {i: 1 / (i**2 * (1 + math.floor(math.log2(i)))) for i in alive}
        p = {i: prior[i] * max(e["w"], 0.0) for i, e in alive.items()}
        p = p if sum(p.values()) > 0 else prior
        offset = sum(p[i] * e["at"] for i, e in alive.items()) / sum(p.values())
        alive[t - late + 2] = new(t - late + 2, offset)
        issued.append(offset)
    return issued


@pytest.mark.parametrize("scale", [None, 20.0])
@pytest.mark.parametrize("late", [0, 3, 11])
def test_strongly_adaptive_against_its_slow_twin(late: int, scale: float | None) -> None:
    centres, y = stream(150, 2)
    y[75:] = np.clip(y[75:] + 10, 0, 99)
    method = StronglyAdaptiveTracking(0, 100, levels=LEVELS, lifetime=4, scale=scale)
    fast = offsets(method, [oc.Normal(c, 4) for c in centres], y, late=late)
    for k, a in enumerate(LEVELS.tolist()):
        slow = slow_strongly_adaptive(a, (y - norm(centres, 4).ppf(a)).tolist(), late, 4, scale)
        np.testing.assert_allclose(fast[:, k], slow, rtol=1e-9, atol=1e-9)
    alive = 4 / 2 * math.log2(150) + 4 + late
    assert len(method._born) < 1.5 * alive


def test_without_anyone_left_the_offset_stays() -> None:
    """Lives of one round: where outcomes are late, all may be gone before one is born."""
    method = StronglyAdaptiveTracking(0, 10, levels=[0.2, 0.8], lifetime=1)
    seen = offsets(method, [oc.Normal(5, 1)] * 40, np.linspace(2, 9, 40), late=5)
    assert np.isfinite(seen).all()
    assert (seen[-1] != 0.0).all()


# --- what is promised on any sequence ---


def attack(method: Any, level: int, up: bool, rounds: int) -> tuple[Vector, Vector]:
    """Scores, and errors, of outcomes just below or above the quantile that is issued, with a bound now and then."""
    levels = method.levels
    rng = np.random.default_rng(3)
    scores, errors = [], []
    for t in range(rounds):
        centre = rng.uniform(4, 6)
        before = method.offset
        q = method.predict(oc.Normal(centre, 1)).quantile(levels)
        assert (np.diff(q) >= 0).all()
        near = float(np.clip(q[level] + (-1e-6 if up else 1e-6), 0, 10))
        y = {0: 0.0, 1: 10.0}.get(t % 10, near)
        method.update(y)
        scores.append(y - norm(centre, 1).ppf(levels))
        errors.append(levels - (scores[-1] <= before))
    return np.array(scores), np.array(errors)


def by_parts(steps: Vector) -> Vector:
    """1 / step_1 and the changes of 1 / step since, summed up."""
    inverse = 1 / steps
    return np.cumsum(np.abs(np.diff(inverse, axis=0, prepend=0 * inverse[:1])), axis=0)


def promised(name: str, method: Any, scores: Vector, errors: Vector) -> Vector:
    """What |sum of errors| is at most, round by round and level by level."""
    t = np.arange(1, len(scores) + 1)[:, None]
    bound = np.abs(scores).max()
    seen = np.maximum.accumulate(np.abs(scores), axis=0)
    if name == "equilibrium":
        step = method.rate * 10
        return np.full_like(errors, (2 * bound + step) / step)
    if name.startswith("decaying"):
        steps = (5.0 if "scale" in name else seen) * np.power(t, -0.6) * np.ones_like(scores)
        return (2 * bound + steps.max()) * by_parts(steps)
    if name.startswith("scale-free"):
        return 2 * (bound * math.sqrt(3) / 5 + 1) * np.sqrt(np.cumsum(errors**2, axis=0))
    steps = np.array([0.1 * np.ptp(scores[max(k - 20, 0) : k], axis=0) for k in range(1, len(scores) + 1)])
    parts = np.concatenate((np.zeros_like(steps[:1]), by_parts(steps[1:])))
    return 1 + (2 * bound + 1.5 * steps.max()) * parts


ATTACKED: dict[str, Callable[[], Any]] = {
    "equilibrium": lambda: GradientEquilibrium(0, 10, levels=[0.05, 0.5, 0.95], rate=0.05),
    "decaying": lambda: DecayingTracking(0, 10, levels=[0.05, 0.5, 0.95]),
    "decaying, scale": lambda: DecayingTracking(0, 10, levels=[0.05, 0.5, 0.95], scale=5),
    "scale-free, scale": lambda: ScaleFreeTracking(0, 10, levels=[0.05, 0.5, 0.95], scale=5),
    "optimistic": lambda: OptimisticTracking(0, 10, levels=[0.05, 0.5, 0.95], window=20),
}


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", ATTACKED)
def test_promises_hold_under_attack(name: str, level: int, up: bool) -> None:
    method = ATTACKED[name]()
    scores, errors = attack(method, level, up, 300)
    sums = np.abs(np.cumsum(errors, axis=0))
    most = promised(name, method, scores, errors)
    assert (sums <= most + 1e-9).all()
    assert most[-1].min() < 300  # which says something
    assert sums.max() > 1.5  # it was an attack


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_portfolio_holds_its_frequency_under_attack(level: int, up: bool) -> None:
    """A miss needs an offset below a score, and so a wealth that has not exploded; likewise a hit."""
    rounds, levels = 300, [0.05, 0.5, 0.95]
    method = UniversalPortfolioTracking(0, 10, levels=levels, first=1)
    scores, errors = attack(method, level, up, rounds)
    bound = float(np.abs(scores).max())

    def offset(a: float, m: int, k: int) -> float:
        log = math.lgamma(m + 1 - a) + math.lgamma(k + a) - math.lgamma(m + k + 1)
        log -= math.lgamma(1 - a) + math.lgamma(a) + m * math.log(1 - a) + k * math.log(a)
        share = (m + 1 - a) / (m + k + 1)
        return math.exp(min(log, 600)) * (share / (1 - a) - (1 - share) / a)

    for j, a in enumerate(levels):
        misses = np.cumsum(errors[:, j] > 0)
        most = least = 0
        for t in range(1, rounds + 1):
            most = max([most, *(m for m in range(1, t + 1) if offset(a, m - 1, t - m) < bound)])
            hits = max(k for k in range(t + 1) if k == 0 or offset(a, t - k, k - 1) >= -bound)
            least = max(least, hits)
            assert t - least <= misses[t - 1] <= most
        assert most / rounds - (1 - a) < 0.2
        assert least / rounds - a < 0.2


def test_cqr_covers_exactly_where_scores_are_exchangeable() -> None:
    """Each of ten scores comes last once: as many of them are covered as the rank says."""
    values = [0.3, 1.0, 2.2, 3.1, 4.4, 5.5, 6.1, 7.9, 8.8, 9.7]
    levels = np.array([0.15, 0.35, 0.5, 0.72, 0.85])
    hits = np.zeros(5)
    for last in values:
        cqr = ConformalQuantiles(0, 10, levels=levels)
        others = [y for y in values if y != last]
        offsets(cqr, [oc.Normal(0, 0)] * 9, others)
        hits += last <= cqr.offset
    assert hits.tolist() == [1.0, 3.0, 5.0, 8.0, 9.0]


@pytest.mark.parametrize("late", [0, 4])
def test_equilibrium_of_means(late: int) -> None:
    """The mean of y - m is the way of the offset, divided by the rate and the rounds."""
    centres, y = stream(200, 4)
    method = GradientEquilibrium(0, 100, rate=0.05, loss="squared")
    means = []
    for t, c in enumerate(centres):
        means.append(method.predict(oc.Normal(c, 4), id=t).mean())
        if t >= late:
            method.update(y[t - late], id=t - late)
    n = 200 - late
    bias = np.mean(y[:n] - means[:n])
    assert bias == pytest.approx(method.offset[0] / (0.05 * n), abs=1e-9)
    assert abs(bias) < 0.5 < np.mean(y - centres)


def test_strongly_adaptive_forgets_sooner() -> None:
    """After a long calm and a jump it is where it should be before a single scale-free tracker is."""
    y = np.r_[np.full(600, 50.0), np.full(40, 58.0)] + np.random.default_rng(5).normal(0, 1, size=640)
    wide = [oc.Normal(50, 1)] * 640
    loss = {
        make.__name__: np.abs(y[600:] - 50 - offsets(make(0, 100, levels=[0.25, 0.5]), wide, y)[600:-1, 1]).mean()
        for make in (ScaleFreeTracking, StronglyAdaptiveTracking)
    }
    assert loss["StronglyAdaptiveTracking"] < 0.8 * loss["ScaleFreeTracking"]


def test_what_is_given_in_the_unit_of_y_scales_with_it() -> None:
    centres, y = stream(80, 6)
    for make in (DecayingTracking, ScaleFreeTracking, StronglyAdaptiveTracking, UniversalPortfolioTracking):
        options = {"first" if make is UniversalPortfolioTracking else "scale": 3}
        larger = {key: 8 * value for key, value in options.items()}
        here = offsets(make(0, 100, **options), [oc.Normal(c, 4) for c in centres], y)
        there = offsets(make(0, 800, **larger), [oc.Normal(8 * c, 32) for c in centres], 8 * y)
        np.testing.assert_allclose(there, 8 * here, rtol=1e-9, atol=1e-9)


def test_offsets_without_a_bound_end_at_the_bounds() -> None:
    """A wealth beyond what a double holds is still a bet."""
    up = UniversalPortfolioTracking(0, 10, levels=[0.001, 0.999], first=1e300)
    for _ in range(30):
        q = up.predict(oc.Normal(5, 1)).quantile([0.001, 0.999])
        assert np.isfinite(q).all()
        up.update(float(q[0] > 5) * 10)
