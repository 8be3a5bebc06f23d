"""The certificate against brute force, and the accounts of the ledger against its bound."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

import orcast as oc
from helpers import (
    Vector,
    bound_to,
    cells_of,
    certified,
    certify,
    default_payoff,
    engine_of,
    fast_payoff,
    full_payoff,
    on_cells,
    page_with,
    positive,
    powers,
    record_of,
    whole,
    within,
)
from helpers import positive_square as square
from orcast import ledger
from orcast.constants import TINY_MASS
from orcast.engine.ordered import PLAYED, OrderedEngine
from orcast.kernels import records
from orcast.kernels.judging import regret_units_arrays
from orcast.kernels.state import Layout, LedgerState, Round
from orcast.ledger import Ledger, PartShape, ledger_layout
from orcast.payoffs import Payoff

SMALL = oc.Interval(-2, 7, cells=12, tail_cells=2)
POINTS = np.linspace(0.0, 1.0, 9)

PAYOFFS = {
    "quantile": oc.QuantileCalibration(),
    "three levels": oc.QuantileCalibration([0.25, 0.5, 0.75], weight=2.0),
    "moment": oc.MomentMatching(3),
    "regret": oc.NoRegret(oc.CRPS(), oc.MSE()),
    "default": default_payoff(),
    "full": full_payoff(),
    "interval": oc.IntervalCalibration([0.5, 0.9]),
    "everything": oc.QuantileCalibration([0.2, 0.8])
    + oc.IntervalCalibration(0.5, weight=2.0)
    + oc.MomentMatching(1)
    + oc.NoRegret(oc.CRPS(), oc.MSE()),
}
# What is constant within a cell: there the claim is exact.
EXACT = {"quantile", "three levels", "interval"}


def brute_force(engine: OrderedEngine, record: Round) -> tuple[float, float, float]:
    """The same three, over a grid of points in every cell."""
    total, sides = engine.ledger.total, engine.ledger.layout.side_list
    carried = square(total, sides)
    worst, norm = -np.inf, -np.inf
    for k, (left, right, _) in enumerate(zip(*cells_of(record), strict=True)):
        for y in left + (right - left) * (POINTS if right > left else np.zeros(1)):
            cumulative = fast_payoff(engine, record, y, k)
            worst = max(worst, square(total + cumulative, sides))
            norm = max(norm, float(cumulative @ cumulative))
    return worst, worst - carried, norm


@st.composite
def positions(draw: st.DrawFn, payoff: Payoff) -> tuple[OrderedEngine, Round]:
    """Any ledger and any forecast."""
    engine = bound_to(SMALL, payoff)
    sizes = st.floats(-1, 1, allow_subnormal=False) | st.integers(-1, 1).map(float)
    total = draw(arrays(np.float64, engine.ledger.total.size, elements=sizes))
    engine.ledger.total[:] = draw(st.sampled_from([0.0, 0.1, 1.0, 30.0])) * total
    p, expert = draw(on_cells(SMALL))
    return engine, page_with(engine, p, expert)


@pytest.mark.parametrize("name", PAYOFFS)
@given(data=st.data())
def test_no_outcome_is_worse_than_the_certificate_says(name: str, data: st.DataObject) -> None:
    engine, record = data.draw(positions(PAYOFFS[name]))
    for claimed, found in zip(certified(engine, record), brute_force(engine, record), strict=True):
        assert claimed >= found - 1e-9 * (1.0 + abs(found))
        if name in EXACT:
            assert claimed == pytest.approx(found, rel=1e-9, abs=1e-9)


@given(st.data())
def test_a_ledger_that_moves_changes_the_claim_by_the_cross_term(data: st.DataObject) -> None:
    """Growth at S' is at most that at S plus 2 ||S' - S|| ||payoff||: what the slack rule rests on under delay."""
    size = data.draw(st.integers(1, 5))
    numbers = arrays(np.float64, size, elements=st.floats(-3, 3, allow_subnormal=False))
    now, then, cumulative = data.draw(numbers), data.draw(numbers), data.draw(numbers)
    sides = data.draw(arrays(np.float64, size, elements=st.sampled_from([0.0, 1.0])))
    growth = square(now + cumulative, sides) - square(now, sides)
    claimed = square(then + cumulative, sides) - square(then, sides)
    assert growth <= claimed + 2.0 * np.linalg.norm(now - then) * np.linalg.norm(cumulative) + 1e-9
    # and the half-space condition is enough for the rule
    pull = positive(then, sides)
    assert claimed <= 2.0 * pull @ cumulative + cumulative @ cumulative + 1e-9


@pytest.mark.parametrize("mass", [0.0, 1e-13, 0.5 * TINY_MASS, 3 * TINY_MASS])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_level_inside_an_almost_empty_cell(mass: float, share: float) -> None:
    """Which side of the level the outcome counts on must be the same in the claim and in the books."""
    levels = np.array([0.25, 0.5])
    engine = bound_to(SMALL, oc.QuantileCalibration(levels))
    below = 0.25 - share * mass
    p = oc.Forecast([-2, 0, 3], [0, 3, 7], [below, mass, 1.0 - below - mass])
    for total in ([-3.0, 3.0], [3.0, -3.0], [0.0, 0.0]):
        engine.ledger.total[:] = total
        record = page_with(engine, p, p.mass)
        assert certified(engine, record) == pytest.approx(brute_force(engine, record), rel=1e-6)


@pytest.mark.parametrize("oracle", [oc.Committee(), oc.Equilibrium(temperature=2)], ids=str)
@pytest.mark.parametrize("payoff", [oc.QuantileCalibration(), default_payoff(), full_payoff()], ids=str)
def test_the_certificate_issued_is_the_one_of_the_forecast_result(payoff: Payoff, oracle: oc.Committee) -> None:
    recal = oc.Recalibrator(oc.Interval(0, 1), payoff, oracle=oracle)
    engine, rng = engine_of(recal), np.random.default_rng(1)
    for t in range(25):
        p = recal.predict(oc.Normal(0.3 + 0.1 * np.sin(t), 0.02))
        worst, linear, bound = certified(engine, record_of(recal))
        found = brute_force(engine, record_of(recal))
        assert p.certificate is not None
        assert p.certificate.worst_next == pytest.approx(worst, rel=1e-12)
        assert p.certificate.bound == pytest.approx(bound, rel=1e-12)
        assert p.certificate.worst_next >= found[0] * (1 - 1e-9)
        if p.certificate.holds:
            # no outcome breaks the rule
            assert found[0] <= p.certificate.allowed * (1 + 1e-6)
            assert square(engine.ledger.total, engine.ledger.layout.side_list) + linear <= p.certificate.allowed * (
                1 + 1e-6
            )
        recal.update(rng.random())


def test_no_regret_counts_more_than_one() -> None:
    """The unit of a regret is one over its largest size, over all outcomes, or over the usual loss if that is more."""
    space = oc.Interval(0, 1, cells=8, tail_cells=1)
    recal = oc.Recalibrator(space, oc.QuantileCalibration([0.25, 0.75]) + oc.NoRegret(oc.CRPS()))
    engine, largest = engine_of(recal), []
    for t in range(16):
        recal.predict(oc.Normal(0.5, 0.2))
        record = record_of(recal)
        left, right, mass = cells_of(record)
        expert = oc.Forecast(left, right, record.view("rivals")[0, : mass.size])
        own = sum(weight * expert.crps(y) for y, weight in within(expert))
        losses, count = engine.memory.view("rivals")[0, [records.RIVAL.index(name) for name in ("crps", "count")]]
        usual = (5.0 * own + losses) / (5.0 + count)
        # F - G, whose integral is half of the difference, may change its sign within a cell
        result = oc.Forecast(left, right, mass)
        ys = np.concatenate([np.linspace(a, b, 21) for a, b in zip(left, right, strict=True)])
        most = max(abs(result.crps(y) - expert.crps(y)) for y in ys)
        largest.append(most / usual)
        assert record.view("crps_units")[0] == pytest.approx(1.0 / max(usual, most), rel=1e-3)
        recal.update(0.5 + 0.01 * (t % 3))
    assert max(largest) > 1.0


@pytest.mark.parametrize("seed", range(6))
def test_the_certificate_of_a_probability_is_exact(seed: int) -> None:
    """Two outcomes, any cumulative payoff, and two experts."""
    rng = np.random.default_rng(seed)
    parts = oc.BinaryCalibration(5) + oc.payoffs.Calibeating(4, weight=0.5) + oc.NoRegret(oc.Brier(), weight=2.0)
    recal = oc.Recalibrator(oc.Binary(), parts)
    for t in range(4):
        recal.predict(experts={"one": float(rng.random()), "other": 0.3 if t % 2 else None})
        engine: Any = recal.engine
        book = engine.ledger
        record = recal.rounds.find(None).record
        each = [whole(book.layout, engine.payoff(record, y), engine.context_of(record)) for y in (0, 1)]
        linear = max(
            2.0 * positive(book.total, book.layout.side_list) @ cumulative + cumulative @ cumulative
            for cumulative in each
        )
        carried = square(book.total, book.layout.side_list)
        assert record.read("certificate", "worst") == pytest.approx(carried + linear)
        assert record.read("certificate", "bound") == pytest.approx(max(cumulative @ cumulative for cumulative in each))
        recal.update(int(rng.integers(2)))
        book.total[:] = rng.normal(size=book.total.size)


# --- the ledger ---


def plain_ledger(size: int, one_sided: int | None = None, *, credit: float = 0.0) -> Ledger:
    """Two parts without contexts: the first coordinates are two-sided, the rest one-sided; B = 1."""
    first = size if one_sided is None else one_sided
    shapes = [
        PartShape(range(first), 1, False, 1.0, 1.0 if first == size else 0.5),
        PartShape(range(first, size), 1, True, 1.0, 0.0 if first == size else 0.5),
    ]
    return Ledger(LedgerState(ledger_layout(shapes)), credit=credit)


ONES = np.ones(2)


def test_delay_is_paid_for_by_the_cross_term() -> None:
    """Ten rounds forecast at S = 0, all with payoff +1: the square is 100, and so is the budget, to the last bit."""
    book = plain_ledger(1)
    records = [certify(book, ONES, linear=1.0, bound=1.0) for _ in range(10)]
    for certificate in records:
        book.book(np.array([1.0]), ONES, certificate)
    assert book.account[ledger.Account.DELAY] == 45
    assert book.delay == 4.5
    assert book.account[ledger.Account.BUDGET] == pytest.approx(10 + 2 * 45)
    assert book.miscalibration == pytest.approx(book.promised) == 1.0
    assert book.account[ledger.Account.EXCESS] == 0.0
    assert book.held == 1.0


@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(1, 3))
def test_bound_holds_with_outcomes_in_any_order(seed: int, queue: int, size: int) -> None:
    """Unit payoffs against an adversary, added in any order: certificates that hold need no excess."""
    rng = np.random.default_rng(seed)
    book = plain_ledger(size, one_sided=size - 1, credit=1.0)
    sides = book.layout.side_list
    credit = book.account[ledger.Account.BUDGET]
    book.bound = 1.0
    waiting: list[tuple[Vector, Vector]] = []
    for _ in range(60):
        # two outcomes, the worse of which is against us now
        pull = positive(book.total, sides)
        ways = rng.normal(size=(2, size))
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        linear = float((2.0 * ways @ pull + 1.0).max())
        reserved = sum(float(certificate[ledger.CertificateField.OVERDRAFT]) for certificate, _ in waiting)
        certificate = certify(book, ONES, linear=linear, bound=1.0, reserved=reserved)
        if certificate[ledger.CertificateField.HOLDS]:
            waiting.append((certificate, ways))
        while len(waiting) > queue:
            certificate, ways = waiting.pop(int(rng.integers(len(waiting))))
            reserved = sum(float(other[ledger.CertificateField.OVERDRAFT]) for other, _ in waiting)
            k = int(np.argmax([square(book.total + way, sides) for way in ways]))
            book.book(ways[k], ONES, certificate, reserved=reserved)
            assert book.account[ledger.Account.EXCESS] <= 1e-9 * book.account[ledger.Account.BUDGET]
            assert book.miscalibration <= book.promised * (1 + 1e-9)
    rounds, delays = book.account[ledger.Account.ROUNDS], book.account[ledger.Account.DELAY]
    assert book.account[ledger.Account.BUDGET] == pytest.approx(credit + rounds + 2.0 * delays)


def test_a_layout_says_where_things_are() -> None:
    layout = ledger_layout(
        [
            PartShape([0, 1], 3, False, 2.0, 1.0, reach=4.0),
            PartShape([1], 1, True, 0.5, 0.25),
            PartShape([2, 0], 2, False, 1.0, 1.0),
        ]
    )
    assert isinstance(layout, Layout)
    assert layout.part_table.tolist() == [[0, 2, 3, 0, 0, 0], [6, 1, 1, 2, 3, 1], [7, 2, 2, 3, 4, 0]]
    assert layout.place_list.tolist() == [0, 1, 1, 2, 0]
    assert layout.side_list.tolist() == [0.0] * 6 + [1.0] + [0.0] * 4
    assert layout.general == pytest.approx(4.0 + 0.25 + 1.0)


# --- in a game ---


def test_reserved_slack_lowers_what_is_allowed() -> None:
    """With half of the slack reserved by others the same forecast is allowed so much less."""
    recal = oc.Recalibrator(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Equilibrium(temperature=1000))
    engine = engine_of(recal)
    free, taken = engine.predict(None), engine.predict(None, reserved=0.5)
    gap = free.read("certificate", "allowed") - taken.read("certificate", "allowed")
    assert gap == pytest.approx(0.5 + free.read("certificate", "bound") - taken.read("certificate", "bound"))


def test_parts_are_in_their_own_units() -> None:
    recal = oc.Recalibrator(oc.Interval(-2, 7), full_payoff())
    rng, sums = np.random.default_rng(0), {"quantile": np.zeros(99), "moment": np.zeros(2)}
    for t in range(1, 40):
        p = recal.predict(oc.Normal(2, 1))
        y = float(np.clip(rng.normal(2.5, 1), -2, 7))
        for part in recal.payoff:
            if part.name in sums:
                sums[part.name] += part.evaluate(recal.space, p, y)
        recal.update(y)
        parts = recal.guarantee.parts
        assert set(parts) == {"quantile", "moment", "regret crps", "regret mse"}
        assert parts["quantile"] == pytest.approx(np.linalg.norm(sums["quantile"] / t), abs=1e-9)
        assert parts["moment"] == pytest.approx(np.abs(sums["moment"] / t).max(), abs=1e-9)
    assert "quantile" in str(recal.guarantee)


def test_the_unit_of_a_regret_that_crosses_zero() -> None:
    """Half of the mass at each end against an expert in the middle: in that cell the regret turns around."""
    engine: Any = oc.Recalibrator(oc.Interval(0, 1)).engine
    round = engine.predict((0.5 + 0.1 * engine.space.scores)[None, :])
    left, right, _ = cells_of(round)
    p = np.zeros(engine.capacity)
    p[[0, left.size - 1]] = 0.5
    expert = round.view("rivals")[0]
    expert[:] = 0.0
    expert[int(np.argmax((left <= 0.5) & (right > 0.5)))] = 1.0
    regret_units_arrays(engine.rules, engine.memory, round, p)
    mine, theirs = (oc.Forecast(left, right, masses[: left.size]) for masses in (p, expert))
    gaps = [mine.crps(y) - theirs.crps(y) for ends in zip(left, right, strict=True) for y in np.linspace(*ends, 21)]
    assert 1.0 / round.view("crps_units")[0] == pytest.approx(max(map(abs, gaps)), rel=1e-6)


@pytest.mark.parametrize("seed", range(300))
def test_an_event_has_a_forecast_that_holds_without_slack(seed: int) -> None:
    """Some forecast wins against any ledger, so that the certificate needs nothing of the budget."""
    rng = np.random.default_rng(seed)
    payoff = oc.BinaryCalibration(grid=int(rng.integers(2, 12))) + oc.NoRegret(oc.Brier()) if seed % 2 else None
    recal = oc.Recalibrator(oc.Binary(), payoff, randomised=1 if seed % 3 == 0 else None)
    book = recal.engine.ledger
    book.total[:] = 10.0 ** rng.uniform(-1, 4) * rng.normal(size=book.total.size) * (rng.random(book.total.size) < 0.7)
    book.account[ledger.Account.BUDGET] = book.square
    certificate = recal.predict(rng.choice([0.0, 1.0, rng.random()])).certificate
    assert certificate is not None
    assert certificate.holds


# --- the maximum of the sum ---


def refined(engine: OrderedEngine, record: Round) -> tuple[float, float, float]:
    """The largest ||S_+ + payoff||^2 and ||payoff||^2 over 41 points a cell; and the first once more, refined."""
    total, sides = engine.ledger.total, engine.ledger.layout.side_list
    pull = positive(total, sides)

    def at(y: float, k: int) -> tuple[float, float]:
        cumulative = fast_payoff(engine, record, y, k)
        after = square(pull, sides) + 2.0 * pull @ cumulative + cumulative @ cumulative
        return float(after), float(cumulative @ cumulative)

    best = []
    norm = -np.inf
    lefts, rights, _ = cells_of(record)
    for k, (left, right) in enumerate(zip(lefts, rights, strict=True)):
        values = [at(y, k) for y in np.linspace(left, right, 41)]
        where = int(np.argmax([value for value, _ in values]))
        best.append((values[where][0], k, left + (right - left) * where / 40, (right - left) / 40))
        norm = max(norm, *(size for _, size in values))
    worst = exact = max(best)[0]
    for _, k, y, width in sorted(best)[-3:]:
        middle, reach = y, width
        for _ in range(4):
            ys = np.clip(np.linspace(middle - reach, middle + reach, 11), lefts[k], rights[k])
            found = [at(y, k)[0] for y in ys]
            middle, reach = float(ys[int(np.argmax(found))]), reach / 5
            exact = max(exact, *found)
    return worst, norm, exact


def check_exact(engine: OrderedEngine, record: Round) -> None:
    """No point is worse than the certificate says, and where it must be, some point is as bad but for rounding."""
    claimed, _, bound = certified(engine, record, free=-np.inf)
    worst, norm, exact = refined(engine, record)
    size = 1.0 + square(engine.ledger.total, engine.ledger.layout.side_list)
    assert worst <= claimed + 1e-9 * size
    assert claimed <= exact + 1e-6 * size
    assert norm <= bound * (1 + 1e-9)
    # no round counts more than B, or the rate would not follow
    assert bound <= engine.ledger.bound * (1 + 1e-9)
    # what is good enough within the slack is no less
    assert certified(engine, record, free=np.inf)[0] >= claimed - 1e-9 * size


SUMS = {
    "moment 1": oc.MomentMatching(1),
    "moment 2": oc.MomentMatching(2),
    "moment 3": oc.MomentMatching(3),
    "moment 4": oc.MomentMatching(4),
    "crps": oc.NoRegret(oc.CRPS()),
    "mse": oc.NoRegret(oc.MSE()),
    "both": oc.NoRegret(oc.CRPS(), oc.MSE()),
    "sum": oc.QuantileCalibration([0.2, 0.7]) + oc.MomentMatching(3) + oc.NoRegret(oc.CRPS(), oc.MSE()),
    "given": oc.MomentMatching(2, context=oc.by("day", values="ab"))
    + oc.NoRegret(oc.CRPS(), context=oc.by("day", values="ab")),
    "shared": oc.NoRegret(oc.CRPS()) + oc.NoRegret(oc.CRPS(), context=oc.by("day", values="ab")),
}
SUM_SPACES = {
    "interval": oc.Interval(-2, 7, cells=8, tail_cells=1),
    "half line": oc.HalfLine(-2, cells=8, tail_cells=1),
    "line": oc.Line(cells=8, tail_cells=1),
}


@pytest.mark.parametrize("where", SUM_SPACES)
@pytest.mark.parametrize("name", SUMS)
def test_the_certificate_is_the_maximum_of_the_sum(name: str, where: str) -> None:
    """Any cumulative payoff; with two experts, in one group of two."""
    rng = np.random.default_rng(sum(map(ord, name + where)))
    recal = oc.Recalibrator(SUM_SPACES[where], SUMS[name], oracle=oc.Equilibrium())
    x = {"day": "a"}
    for size in (0.3, 30.0):
        recal.predict(
            experts={"one": oc.Normal(rng.normal(2, 1), 1.0), "two": oc.Normal(3.0, rng.uniform(0.3, 2))}, x=x
        )
        engine = engine_of(recal)
        record = record_of(recal)
        n, result = record.count(), record.view("cells")[PLAYED]
        result[:n] = rng.dirichlet(np.ones(n))
        engine.ledger.total[:] = size * rng.normal(size=engine.ledger.total.size)
        regret_units_arrays(engine.rules, engine.memory, record, result)
        record.view("expected")[:] = powers(engine, record)[0, :, :n] @ result[:n]
        check_exact(engine, record)
        recal.update(float(rng.normal(2, 1)))


@pytest.mark.parametrize("size", [20.0, 200.0])
@pytest.mark.parametrize("at", [0.1, 0.5, 0.75, 0.9])
def test_coordinates_that_pull_against_each_other_are_added_at_one_point(at: float, size: float) -> None:
    """S = (-2 t s, s): each moment has its maximum elsewhere, and adding them up said 17 where the truth is 0.1."""
    recal = oc.Recalibrator(oc.Interval(0, 1), oc.MomentMatching(2))
    engine = engine_of(recal)
    engine.ledger.total[:] = -2.0 * at * size, size
    p = recal.predict(oc.Normal(at, 0.05))
    record = record_of(recal)
    check_exact(engine, record)
    assert p.certificate is not None
    # its bound is the exact one, unless the sum of the maxima is within the slack
    if p.certificate.worst_next > p.certificate.allowed:
        assert p.certificate.worst_next <= refined(engine, record)[2] * (1 + 1e-9) + 1e-6
