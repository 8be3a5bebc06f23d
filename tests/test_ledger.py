"""The ledger with parts, groups and forgetting against its definitions in numpy."""

import math
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from helpers import Vector, certify, positive_square, whole
from orcast import ledger
from orcast.kernels.ledger import available_slack_arrays, combine_arrays, squared_norm
from orcast.kernels.state import Layout, LedgerState
from orcast.ledger import Ledger, PartShape, ledger_layout

numbers = st.floats(-3, 3, allow_subnormal=False) | st.integers(-1, 1).map(float)
# Share of a budget that counts as rounding.
ROUNDING = 1e-9
contexts = st.sampled_from([0.0, 0.0, 1.0, 0.5, -0.7])


class Game(NamedTuple):
    """A ledger in the middle of things, and a round of it."""

    book: Ledger
    context: Vector
    cell_payoff: Vector
    reserved: float


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[PartShape], int]:
    """One to three parts, some of which share places of the core."""
    size = draw(st.integers(1, 4))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        places = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
        one_sided = draw(st.booleans())
        scale, bound = draw(st.floats(0.1, 3.0)), draw(st.floats(0.1, 3.0))
        found.append(PartShape(places, draw(st.integers(1, 3)), one_sided, scale, bound, draw(st.floats(1.0, 2.0))))
    return found, size


@st.composite
def recals(draw: st.DrawFn) -> Game:
    found, size = draw(shapes())
    discount = draw(st.sampled_from([1.0, 0.9, 0.5]))
    book = Ledger(LedgerState(ledger_layout(found, discount)), credit=draw(st.sampled_from([0.0, 1.0, 16.0])))
    book.total[:] = draw(arrays(np.float64, book.total.size, elements=numbers))
    book.account[ledger.Account.ROUNDS] = draw(st.integers(0, 50))
    book.account[ledger.Account.WEIGHT] = book.account[ledger.Account.ROUNDS]
    book.account[ledger.Account.ROOTS] = draw(st.floats(0, 9))
    book.account[ledger.Account.BUDGET] += draw(st.floats(0, 99) | st.just(1e4))
    book.groups[:, ledger.GroupAccount.BUDGET] += draw(arrays(np.float64, len(book.groups), elements=st.floats(0, 50)))
    book.groups[:, ledger.GroupAccount.COUNT] += draw(arrays(np.float64, len(book.groups), elements=st.floats(0, 50)))
    shares = draw(st.sampled_from([0.0, 0.0, 0.3, 1.0]))
    book.account[ledger.Account.EXCESS] = shares * book.account[ledger.Account.BUDGET]
    book.groups[:, ledger.GroupAccount.EXCESS] = shares * book.groups[:, ledger.GroupAccount.BUDGET]
    context = draw(arrays(np.float64, len(book.groups), elements=contexts))
    return Game(
        book, context, draw(arrays(np.float64, size, elements=numbers)), draw(st.sampled_from([0.0, 0.0, 0.5, 20.0]))
    )


# --- slow twins ---


def blocks(layout: Layout, total: Vector) -> list[Vector]:
    """The sums of each part, one-sided ones through their positive part: a row a group."""
    found = []
    for start, size, groups, _, _, one_sided in layout.part_table:
        sums = total[start : start + size * groups].reshape(groups, size)
        found.append(np.maximum(sums, 0.0) if one_sided else sums)
    return found


def shares(layout: Layout, context: Vector) -> list[Vector]:
    return [context[at : at + groups] for _, _, groups, _, at, _ in layout.part_table]


def slow_combine(recal: Game) -> tuple[Vector, Vector]:
    layout = recal.book.layout
    cumulative, factors = np.zeros((2, recal.cell_payoff.size))
    for i, (sums, c) in enumerate(zip(blocks(layout, recal.book.total), shares(layout, recal.context), strict=True)):
        _, size, _, places, _, _ = layout.part_table[i]
        at = layout.place_list[places : places + size]
        cumulative[at] += recal.book.discount * layout.scales[i] * (c @ sums)
        factors[at] += layout.scales[i] ** 2 * (c @ c)
    return cumulative, factors


def slow_room(recal: Game) -> float:
    """What the whole has left; with groups also what those of the round have left, single ones lending their share."""
    book, context = recal.book, recal.context
    discount = book.discount**2
    whole_left = (
        discount * (book.account[ledger.Account.BUDGET] - positive_square(book.total, book.layout.side_list))
        - recal.reserved
    )
    rows = np.split(book.groups, np.cumsum(book.layout.part_table[:, ledger.PartColumn.GROUPS])[:-1])
    there = list(zip(blocks(book.layout, book.total), shares(book.layout, context), rows, strict=True))
    counts = [row[c != 0.0, ledger.GroupAccount.COUNT] for _, c, row in there if c.size > 1]
    counts = np.concatenate(counts) if counts else np.empty(0)
    if counts.size == 0 or whole_left <= 0.0:
        return max(whole_left, 0.0)
    rounds = book.account[ledger.Account.ROUNDS]
    share = min((max(min(counts.min(), rounds), 0.0) + 1.0) / (rounds + 1.0), 1.0)
    own = -share * recal.reserved
    for sums, c, row in there:
        left = row[:, ledger.GroupAccount.BUDGET] - (sums**2).sum(axis=1)
        own += discount * left[c != 0.0].sum() * (1.0 if c.size > 1 else share)
    return max(min(whole_left, own), 0.0)


def scratch(book: Ledger) -> tuple[Vector, Vector, Vector]:
    return book.account.copy(), book.groups.copy(), book.total.copy()


@given(recals())
def test_combine_is_its_definition(recal: Game) -> None:
    book = recal.book
    expected = slow_combine(recal)
    cumulative, factors = np.empty((2, recal.cell_payoff.size))
    combine_arrays(book.state, recal.context, cumulative, factors)
    assert cumulative == pytest.approx(expected[0], abs=1e-9)
    assert factors == pytest.approx(expected[1], abs=1e-9)


@given(recals())
def test_combined_sums_determine_inner_products_and_norms(recal: Game) -> None:
    """<g S_+, payoff> = <core payoff, core> and ||payoff||^2 = sum of factors core^2."""
    layout, total = recal.book.layout, recal.book.total
    cumulative, factors = slow_combine(recal)
    payoff = whole(layout, recal.cell_payoff, recal.context)
    pull = np.concatenate([sums.ravel() for sums in blocks(layout, total)])
    assert recal.book.discount * pull @ payoff == pytest.approx(cumulative @ recal.cell_payoff, abs=1e-9)
    assert payoff @ payoff == pytest.approx(factors @ recal.cell_payoff**2, abs=1e-9)


@given(recals())
def test_room_is_its_definition(recal: Game) -> None:
    book = recal.book
    square = positive_square(book.total, book.layout.side_list)
    found = available_slack_arrays(book.state, square, recal.context, recal.reserved)
    assert found == pytest.approx(slow_room(recal), abs=1e-9)
    assert squared_norm(book.state) == pytest.approx(square, abs=1e-9)


def slow_settle(recal: Game, certificate: Vector) -> tuple[Vector, Vector, Vector]:
    book, layout, c = recal.book, recal.book.layout, recal.context
    discount = book.discount
    account, groups, total = scratch(book)
    total = discount * total + whole(layout, recal.cell_payoff, c)
    account[ledger.Account.BUDGET] = (
        discount**2 * account[ledger.Account.BUDGET] + certificate[ledger.CertificateField.BOUND]
    )
    account[ledger.Account.EXCESS] *= discount**2
    account[ledger.Account.BUDGET] += (
        2.0
        * certificate[ledger.CertificateField.ROOT]
        * (account[ledger.Account.ROOTS] - certificate[ledger.CertificateField.ROOTS_THEN])
    )
    account[ledger.Account.DELAY] += account[ledger.Account.ROUNDS] - certificate[ledger.CertificateField.ROUNDS_THEN]
    account[ledger.Account.ROOTS] += certificate[ledger.CertificateField.ROOT]
    account[ledger.Account.ROUNDS] += 1.0
    account[ledger.Account.WEIGHT] = discount * account[ledger.Account.WEIGHT] + 1.0
    account[ledger.Account.HELD] += certificate[ledger.CertificateField.HOLDS]
    bounds = np.repeat(layout.bound_list, layout.part_table[:, ledger.PartColumn.GROUPS])
    late = account[ledger.Account.ROUNDS] - 1.0 - certificate[ledger.CertificateField.ROUNDS_THEN]
    groups[:, [ledger.GroupAccount.BUDGET, ledger.GroupAccount.EXCESS]] *= discount**2
    groups[:, ledger.GroupAccount.BUDGET] += (c**2 + 2.0 * np.abs(c) * late) * bounds
    groups[:, ledger.GroupAccount.COUNT] = discount * groups[:, ledger.GroupAccount.COUNT] + np.abs(c)
    squares = np.concatenate([(sums**2).sum(axis=1) for sums in blocks(layout, total)])
    over = np.maximum(squares - groups[:, ledger.GroupAccount.BUDGET], 0.0)
    real = over > ROUNDING * groups[:, ledger.GroupAccount.BUDGET]
    groups[:, ledger.GroupAccount.BUDGET] += over
    groups[:, ledger.GroupAccount.EXCESS] += np.where(real, over, 0.0)
    excess = max(squares.sum() - (account[ledger.Account.BUDGET] - recal.reserved), 0.0)
    if excess > ROUNDING * account[ledger.Account.BUDGET]:
        account[ledger.Account.HELD] -= certificate[ledger.CertificateField.HOLDS]  # the outcome proved it wrong
        account[ledger.Account.EXCESS] += excess
    account[ledger.Account.BUDGET] += excess
    return account, groups, total


@given(recals(), st.floats(-5, 9), st.floats(1e-6, 4))
def test_settle_is_its_definition(recal: Game, linear: float, bound: float) -> None:
    book = recal.book
    certificate = certify(book, recal.context, linear=linear, bound=bound, reserved=recal.reserved)
    certificate[ledger.CertificateField.ROOTS_THEN] *= 0.5
    certificate[ledger.CertificateField.ROUNDS_THEN] = max(certificate[ledger.CertificateField.ROUNDS_THEN] - 2.0, 0.0)
    expected = slow_settle(recal, certificate)
    book.book(recal.cell_payoff, recal.context, certificate, reserved=recal.reserved)
    for found, slow in zip(scratch(book), expected, strict=True):
        assert found == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize("reserved", [0.0, 3.0])
@pytest.mark.parametrize("late", [False, True])
def test_an_outcome_beyond_the_budget(reserved: float, late: bool) -> None:
    """What others have reserved does not cover it, and a certificate that is wrong did not hold, late or not."""
    book = Ledger(LedgerState(ledger_layout([PartShape([0], 1, False, 1.0, 1.0)])), credit=0.0)
    account = book.account
    book.total[0] = 5.0
    account[[ledger.Account.BUDGET, ledger.Account.ROUNDS, ledger.Account.WEIGHT, ledger.Account.HELD]] = 30.0, 7, 7, 7
    certificate = np.zeros(ledger.CERTIFICATE_SIZE)
    certificate[[ledger.CertificateField.BOUND, ledger.CertificateField.HOLDS]] = 1.0, 1.0
    certificate[ledger.CertificateField.ROUNDS_THEN] = 6.0 if late else 7.0  # no root: nothing is allowed for it
    book.book(np.array([1.0]), np.ones(1), certificate, reserved=reserved)
    # 5 + 1 squared is 36, the budget 30 + 1
    assert account[ledger.Account.BUDGET] == 36.0 + reserved
    assert account[ledger.Account.EXCESS] == 5.0 + reserved
    assert account[ledger.Account.HELD] == 7.0


@pytest.mark.parametrize("late", [False, True])
def test_rounding_is_no_excess(late: bool) -> None:
    """Where every certificate held the excess is 0.0 to the last bit, and the promise stays true."""
    book = Ledger(LedgerState(ledger_layout([PartShape([0], 2, False, 1.0, 1.0)])), credit=0.0)
    context = np.array([1.0, 0.0])
    for _ in range(50):
        certificate = certify(book, context, linear=1.0, bound=1.0)
        certificate[ledger.CertificateField.ROUNDS_THEN] -= float(late)
        book.total[0] = math.sqrt(book.account[ledger.Account.BUDGET] + 1.0) * (1.0 + 1e-13) - 1.0
        book.book(np.ones(1), context, certificate)
        assert book.held == 1.0
        assert (book.excess, book.account[ledger.Account.EXCESS], book.groups[0, ledger.GroupAccount.EXCESS]) == (
            0,
            0,
            0,
        )
        assert book.miscalibration <= book.promised
    assert book.promised == pytest.approx(math.sqrt(50.0) / 50.0)


def test_promised_before_and_added_after() -> None:
    """One round of three goes beyond: the promise is what it was, and the excess is what was added, in its units."""
    book = Ledger(LedgerState(ledger_layout([PartShape([0], 1, False, 1.0, 1.0)])), credit=0.0)
    one = np.ones(1)
    for payoff, bound in ((1.0, 1.0), (3.0, 2.0), (0.0, 1.0)):
        linear = payoff * (payoff + 2.0 * book.total[0])
        book.book(np.array([payoff]), one, certify(book, one, linear=linear, bound=bound))
    # 1 after the first, then (1 + 3)^2 where 1 + 2 was allowed
    assert book.account[ledger.Account.EXCESS] == 13.0
    assert book.promised == pytest.approx(math.sqrt(1.0 + 2.0 + 1.0) / 3.0)
    assert book.excess == pytest.approx(math.sqrt(1.0 + 2.0 + 1.0 + 13.0) / 3.0 - book.promised)
    assert book.promised < book.miscalibration <= book.promised + book.excess
    assert book.held == pytest.approx(2 / 3)


@given(recals(), st.floats(-5, 9), st.floats(1e-6, 4))
def test_promised_and_excess_bound_whatever_comes(recal: Game, linear: float, bound: float) -> None:
    book = recal.book
    note = certify(book, recal.context, linear=linear, bound=bound, reserved=recal.reserved)
    held, excess = book.account[[ledger.Account.HELD, ledger.Account.EXCESS]]
    book.book(recal.cell_payoff, recal.context, note, reserved=recal.reserved)
    assert book.miscalibration <= book.promised + book.excess
    assert book.excess >= 0.0
    if book.account[ledger.Account.HELD] - held == 1.0 and excess == 0.0:
        assert book.excess == 0.0
    for number in range(len(book.layout.part_table)):
        for group in book.group_guarantees(number, disjoint=False):
            assert group.miscalibration <= group.promised + group.excess + 1e-12


@given(recals(), st.floats(-5, 9), st.floats(1e-6, 4))
def test_a_certificate_is_its_definition(recal: Game, linear: float, bound: float) -> None:
    book = recal.book
    certificate = certify(book, recal.context, linear=linear, bound=bound, reserved=recal.reserved)
    free, square = slow_room(recal), positive_square(book.total, book.layout.side_list)
    carried = book.discount**2 * square
    assert certificate[ledger.CertificateField.WORST] == pytest.approx(carried + linear, abs=1e-9)
    assert certificate[ledger.CertificateField.ALLOWED] == pytest.approx(carried + free + bound, abs=1e-9)
    if (
        abs(certificate[ledger.CertificateField.WORST] - certificate[ledger.CertificateField.ALLOWED]) > 1e-6
        and linear > bound + 1e-6
    ):
        assert bool(certificate[ledger.CertificateField.HOLDS]) == (
            certificate[ledger.CertificateField.WORST] < certificate[ledger.CertificateField.ALLOWED]
        )
    assert certificate[ledger.CertificateField.ROOT] == pytest.approx(np.sqrt(max(bound, book.bound)))
    assert certificate[ledger.CertificateField.OVERDRAFT] == pytest.approx(min(max(linear - bound, 0.0), free))
    # the budget after the round without what was added after; apart from it, that and what this round could add
    weight = book.discount * book.account[ledger.Account.WEIGHT] + 1.0
    budget, added = book.account[[ledger.Account.BUDGET, ledger.Account.EXCESS]]
    before = np.sqrt(book.discount**2 * (budget - added) + bound)
    assert certificate[ledger.CertificateField.PROMISED] == pytest.approx(before / weight)
    beyond = 0.0 if certificate[ledger.CertificateField.HOLDS] else carried + linear - (carried + free + bound)
    excess = (np.sqrt(book.discount**2 * budget + bound + beyond) - before) / weight
    assert certificate[ledger.CertificateField.EXCESS] == pytest.approx(excess, abs=1e-7)
    if certificate[ledger.CertificateField.HOLDS] and added == 0.0:
        assert certificate[ledger.CertificateField.EXCESS] == 0.0


# --- groups of their own ---


def test_no_group_can_spend_the_slack_of_another() -> None:
    """A group that was never visited leaves its credit alone, and one that is used up has none left."""
    book = Ledger(LedgerState(ledger_layout([PartShape([0], 2, False, 1.0, 1.0)])), credit=2.0)
    first, second = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    for _ in range(40):
        certificate = certify(book, first, linear=1.0, bound=1.0)
        book.book(np.array([0.0]), first, certificate)
    # forty rounds without a payoff left much slack to the first, nothing to the second
    used = certify(book, second, linear=1e9, bound=1.0)
    assert used[ledger.CertificateField.ALLOWED] - 1.0 == pytest.approx(2.0)
    plenty = certify(book, first, linear=1e9, bound=1.0)
    assert plenty[ledger.CertificateField.ALLOWED] - 1.0 == pytest.approx(42.0)


def test_the_accounts_of_groups_are_told() -> None:
    book = Ledger(LedgerState(ledger_layout([PartShape([0, 1], 2, False, 0.5, 1.0)])), credit=4.0)
    first, second = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    for context, cell_payoff in ((first, [1.0, 0.0]), (first, [0.0, 1.0]), (second, [-1.0, 1.0])):
        book.book(np.array(cell_payoff), context, certify(book, context, linear=1.0, bound=1.0))
    a, b = book.group_guarantees(0, disjoint=True)
    assert (a.rounds, b.rounds) == (2.0, 1.0)
    assert a.miscalibration == pytest.approx(0.5 * np.sqrt(2.0) / 2)
    assert b.miscalibration == pytest.approx(0.5 * np.sqrt(2.0))
    assert a.promised == pytest.approx(np.sqrt(4.0 + 2.0) / 2)
    assert b.promised == pytest.approx(np.sqrt(4.0 + 1.0))
    assert book.part(0) == pytest.approx(np.array([[1.0, 1.0], [-1.0, 1.0]]))


# --- forgetting ---


@given(st.floats(0.05, 0.99), st.integers(1, 60))
def test_the_stated_bound_is_the_discounted_budget(g: float, rounds: int) -> None:
    """sum g^(2 (T - t)) / (sum g^(T - t))^2 = (1 - g)(1 + g^T) / ((1 + g)(1 - g^T))."""
    book = Ledger(LedgerState(ledger_layout([PartShape([0], 1, False, 1.0, 1.0)], g)), credit=0.0)
    one = np.ones(1)
    for _ in range(rounds):
        book.book(np.array([0.0]), one, certify(book, one, linear=1.0, bound=1.0))
    stated = (1 - g) * (1 + g**rounds) / ((1 + g) * (1 - g**rounds))
    assert book.promised**2 == pytest.approx(stated, rel=1e-9)
