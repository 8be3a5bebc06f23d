"""Ledger: cumulative payoff S, its budget, certificates and the guarantee (docs/theory.md has the proofs).

One-sided coordinates of S count through their positive part. B_t is the largest possible squared norm of the payoff of
round t, C = 64 the credit. A certificate holds if for every outcome

    ||S_{t-1} + payoff||_+^2  <=  C B + B_1 + ... + B_t                                   (the slack rule)

so the miscalibration ||S_T||_+ / T is at most sqrt(B (T + C)) / T on any sequence (paper, theorem 4.1, where C = 0).
If no such forecast is found, the one closest to it is issued, and the part of the payoff beyond the budget is recorded
as the excess.

The payoff is a direct sum of parts. Part i has a context c_i, known before the outcome, and adds c_i (x) payoff_i. Each
group of a part has its own account, which caps the slack that its rounds may use. With a memory of M rounds,
S <- g S + payoff and b <- g^2 b + B_t with g = 1 - 1/M.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.kernels import records
from orcast.kernels.ledger import combine_arrays, miscalibration, settle_arrays, squared_norm
from orcast.kernels.state import Layout, LedgerState

Array = NDArray[np.float64]


def places_of(kind: str, members: Sequence[str]) -> Any:
    """Places of the numbers of a record, by their names in upper case."""
    return IntEnum(kind, [name.upper() for name in members], start=0)


# `kernels.records` describes the numbers.
Account = places_of("Account", records.ACCOUNT)
GroupAccount = places_of("GroupAccount", records.GROUP_ACCOUNT)
PartColumn = places_of("PartColumn", records.PART)
CertificateField = places_of("CertificateField", records.CERTIFICATE)
RoundLog = places_of("RoundLog", records.ROUND_LOG)

CERTIFICATE_SIZE, ROUND_LOG_SIZE = len(records.CERTIFICATE), len(records.ROUND_LOG)
# The budget starts with that of this many rounds.
CREDIT = 64.0


class PartShape(NamedTuple):
    """Shape of a part in the ledger."""

    places: Sequence[int]
    groups: int
    one_sided: bool
    scale: float
    bound: float
    reach: float = 1.0  # squared bound of the context


def ledger_layout(shapes: Sequence[PartShape], discount: float = 1.0) -> Layout:
    """Layout of consecutive parts."""
    parts: list[list[int]] = []
    places: list[int] = []
    sides: list[float] = []
    start = context = 0
    for shape in shapes:
        size = len(shape.places)
        parts.append([start, size, shape.groups, len(places), context, int(shape.one_sided)])
        places.extend(shape.places)
        sides.extend([float(shape.one_sided)] * (size * shape.groups))
        start += size * shape.groups
        context += shape.groups
    return Layout(
        np.array(parts, dtype=np.int64).reshape(-1, 6),
        np.array(places, dtype=np.int64),
        np.array([shape.scale for shape in shapes], dtype=np.float64),
        np.array([shape.bound for shape in shapes], dtype=np.float64),
        np.array(sides, dtype=np.float64),
        float(sum(shape.bound * shape.reach for shape in shapes)),
        discount,
    )


@dataclass(frozen=True)
class Certificate:
    """Certificate of a forecast, computed before its outcome.

    Attributes
    ----------
    holds
        True if no outcome can break the bound.
    worst_next
        Largest squared norm of the cumulative payoff after this round, over all outcomes.
    allowed
        Largest squared norm that the slack rule allows.
    bound
        B_t, the largest squared norm of the payoff of this round.
    promised
        Bound on the miscalibration after this round.
    half_space
        Largest <mean payoff, payoff> over the outcomes, stated by the oracles of the paper; else None.
    approximation
        Amount by which the true value may exceed `half_space`.
    excess
        Sum added to the bound by certificates that did not hold; 0 if all held.

    Notes
    -----
    The certificate holds if

        max_y ||S + payoff(p, y)||_+^2  <=  worst_next  <=  allowed

    The last step is the slack rule (docs/theory.md). Then `miscalibration <= promised + excess` after this round is
    known before the outcome, if no other outcome is settled before its own.

    Examples
    --------
    >>> import orcast as oc
    >>> p = oc.Recalibrator(oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1))
    >>> p.certificate.holds, p.certificate.worst_next <= p.certificate.allowed, p.certificate.excess
    (True, True, 0.0)
    """

    holds: bool
    worst_next: float
    allowed: float
    bound: float
    promised: float
    half_space: float | None = field(default=None, compare=False)
    approximation: float | None = field(default=None, compare=False)
    excess: float = 0.0


@dataclass(frozen=True)
class Group:
    """Mean normalised payoff of one group and its bound.

    Attributes
    ----------
    rounds
        Sum of the context over the settled rounds, n; for hard groups the number of rounds.
    miscalibration
        Norm of the mean normalised payoff.
    promised
        Bound on the miscalibration: `miscalibration <= promised + excess`.
    excess
        Sum added to the bound by certificates that did not hold.
    target
        Bound of the group alone, sqrt(B_i (n + 64)) / n.

    Notes
    -----
    If the groups are disjoint and their part is the only one, `promised` is `target`. In a sum another part may fall
    while a group rises; there the certificates bound the whole sum, and `promised` is the bound of the whole over the
    rounds of the group, at most sqrt(B (T + 64)) / n and at most the largest payoff, sqrt(B_i) (docs/theory.md).
    """

    rounds: float
    miscalibration: float
    promised: float
    excess: float = 0.0
    target: float = math.inf


class Action(NamedTuple):
    """Rounds in which `decide` returned an action, and its mean utility there: expected by the forecasts, and real."""

    rounds: float
    expected: float
    utility: float


@dataclass(frozen=True)
class Empirical:
    """Empirical errors of what was published, and their bounds with `randomised=`.

    Attributes
    ----------
    errors
        Errors by name. On quantities "qce", the sum over the levels a of (mean of 1{y <= reported quantile} - a)^2. On
        events and labels, with e_v = mean of 1{published v} (v - y) for each published value v (without a draw: each
        bin of the payoff's grid): "ece", the sum of |e_v|, on labels averaged over the labels; and "ece l2", the root
        of the sum of e_v^2. With `decide`, "swap regret": the mean utility that the best swap of actions would add.
    bounds
        Bounds on these errors by name; empty without `randomised=`.
    confidence
        Probability that a bound holds at all times together.
    actions
        Rounds of each action that `decide` returned, and its mean utility there, expected and real.

    Notes
    -----
    `guarantee.parts` has the smoothed errors, those expected before the draw, which `promised` bounds. With
    `randomised=`, and for outcomes chosen without the random draw, the empirical ones have a bound too:

        error  <=  sqrt(B) (promised + excess)  +  sqrt((V + 64) (2 log(1/d) + log(1 + V/64))) / T

    for the root of the QCE and the L2 form, with d = 1 - confidence, B the bound of the payoff over its squared weight,
    and V the sum over the rounds of the largest squared difference of the two. The bound on the ECE follows by
    Cauchy and Schwarz, over the values that were published (docs/theory.md).

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 1), randomised=7)
    >>> _ = recal.run([oc.Normal(0.5, 0.1)] * 50, [0.45, 0.6] * 25)
    >>> empirical = recal.guarantee.empirical
    >>> empirical.errors["qce"] <= empirical.bounds["qce"], empirical.confidence
    (True, 0.95)
    """

    errors: dict[str, float]
    bounds: dict[str, float] = field(default_factory=dict)
    confidence: float = 0.95
    actions: dict[Hashable, Action] = field(default_factory=dict)


@dataclass(frozen=True)
class Guarantee:
    """Miscalibration over the settled rounds, and its bound.

    Attributes
    ----------
    rounds
        Number of settled rounds.
    miscalibration
        Norm of the mean payoff, ||S||_+ / T.
    promised
        Bound that was known before the outcomes.
    held
        Share of the rounds whose certificate held.
    parts
        Size of the mean payoff of each part in its own units: root of the smoothed QCE, largest error of a mean power,
        mean excess score (negative if better than the expert).
    delay
        Mean number of outcomes settled between a forecast and its own outcome.
    groups
        Accounts of the groups of each part with a context.
    bounds
        `promised` in the units of `parts` (paper, proposition 3).
    excess
        Sum added to the bound by certificates that did not hold.
    empirical
        Empirical QCE and its bound; None without quantile calibration.
    vacuous
        True if the bound is not below the largest possible miscalibration, sqrt(B): after few rounds, or where the
        resolution of the cells was added in many.

    Notes
    -----
    After every round

        miscalibration = ||S||_+ / T  <=  promised + excess,    promised <= sqrt(B (T + 64)) / T

    The last bound holds if no outcome was late. B bounds the squared payoff of a round; it is 3 for the default payoff
    on quantities. The proof follows the paper's theorem 4.1 (docs/theory.md).

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 1))
    >>> _ = recal.predict(oc.Normal(0.5, 0.1)); recal.update(0.55)
    >>> g = recal.guarantee
    >>> g.rounds, g.held, g.miscalibration <= g.promised, g.excess
    (1, 1.0, True, 0.0)
    """

    rounds: int
    miscalibration: float
    promised: float
    held: float
    parts: dict[str, float] = field(default_factory=dict)
    delay: float = 0.0
    groups: dict[str, dict[str, Group]] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)
    excess: float = 0.0
    empirical: Empirical | None = None
    vacuous: bool = False

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {value:.3g}" for name, value in self.parts.items())
        excess = f" + excess {self.excess:.3g}" if self.excess else ""
        return (
            f"{self.rounds} rounds: miscalibration {self.miscalibration:.3g} <= promised {self.promised:.3g}{excess}"
            f"{' (vacuous)' if self.vacuous else ''}, held {self.held:.1%} ({parts})"
        )


def before_excess(budget: float, excess: float, weight: float, now: float) -> float:
    """Bound on the miscalibration from a budget, without its excess."""
    bound = math.sqrt(max(budget - excess, 0.0)) / max(weight, 1.0)
    # sums of squares in another order differ by rounding
    return now if bound < now <= bound * (1.0 + 1e-12) else bound


def added_after(budget: float, excess: float, weight: float, now: float) -> float:
    """Difference that the excess makes to that bound; the sum is at least the miscalibration."""
    if excess == 0.0:
        return 0.0
    promised, whole = before_excess(budget, excess, weight, now), before_excess(budget, 0.0, weight, now)
    added = max(whole - promised, 0.0)
    return added if promised + added >= now else math.nextafter(added, math.inf)


class Ledger:
    """Sum of the payoffs and its accounts, at the start of the row of a new `state`; its size is constant."""

    def __init__(self, state: LedgerState, *, credit: float = CREDIT) -> None:
        self.state, self.layout = state, state.layout
        layout = self.layout
        self.discount, self.bound = layout.discount, layout.general
        self.total: Array = state.view("total")
        self.account: Array = state.view("account")
        self.groups: Array = state.view("groups")
        self.account[Account.BUDGET] = credit * self.bound
        counts = layout.part_table[:, PartColumn.GROUPS]
        # numpy.repeat needs 32-bit counts on 32-bit platforms, such as a browser
        self.groups[:, GroupAccount.BUDGET] = credit * np.repeat(layout.bound_list, counts.astype(np.intp))

    @property
    def rounds(self) -> int:
        """Outcomes settled so far."""
        return int(self.account[Account.ROUNDS])

    @property
    def square(self) -> float:
        """||S||_+^2."""
        return float(squared_norm(self.state))

    @property
    def miscalibration(self) -> float:
        """||S_T||_+ / T, zero before any outcome."""
        return float(miscalibration(self.state))

    @property
    def promised(self) -> float:
        """Bound on the miscalibration that was known before each outcome."""
        return before_excess(*self._accounts, self.miscalibration)

    @property
    def excess(self) -> float:
        """Sum added by certificates that did not hold, in the units of `promised`."""
        return added_after(*self._accounts, self.miscalibration)

    @property
    def _accounts(self) -> tuple[float, float, float]:
        account = self.account
        return float(account[Account.BUDGET]), float(account[Account.EXCESS]), float(account[Account.WEIGHT])

    @property
    def held(self) -> float:
        """Share of the settled rounds whose certificate held."""
        return float(self.account[Account.HELD] / self.account[Account.ROUNDS]) if self.rounds else 1.0

    @property
    def delay(self) -> float:
        """Outcomes settled between a forecast and its own outcome, on average."""
        return float(self.account[Account.DELAY]) / max(self.rounds, 1)

    def part(self, number: int) -> Array:
        """Sums of one part in its own units, one row per group."""
        start, size, groups = self.layout.part_table[number, :3]
        sums: Array = self.total[start : start + size * groups].reshape(groups, size) / self.layout.scales[number]
        return sums

    def group_guarantees(self, number: int, disjoint: bool) -> list[Group]:
        """Guarantee of each group of a part; groups are `disjoint` if no round is in two of them."""
        first = int(self.layout.part_table[:number, PartColumn.GROUPS].sum())
        one_sided = self.layout.part_table[number, PartColumn.ONE_SIDED]
        alone = disjoint and len(self.layout.part_table) == 1
        most = math.sqrt(self.layout.bound_list[number])
        found = []
        for row, sums in enumerate(self.part(number) * self.layout.scales[number], start=first):
            norm = float(np.linalg.norm(np.maximum(sums, 0.0) if one_sided else sums))
            budget, count, excess = self.groups[row].tolist()
            now = norm / max(count, 1.0)
            target = before_excess(budget, excess, count, now)
            if alone:
                stated = target, added_after(budget, excess, count, now)
            else:
                whole, beyond, _ = self._accounts
                stated = before_excess(whole, beyond, count, now), added_after(whole, beyond, count, now)
                stated = (most, 0.0) if stated[0] > most >= now else stated
            found.append(Group(count, now, *stated, target))
        return found

    def book(self, payoff: Array, context: Array, certificate: Array, *, reserved: float = 0.0) -> None:
        """Add the core payoff of a round; `reserved` is the overdraft of the rounds that still wait."""
        settle_arrays(self.state, context, reserved, payoff, certificate)

    def cumulative(self, context: Array, size: int) -> Array:
        """Cumulative payoff by coordinate of the core, in a context."""
        cumulative, factors = np.empty(size), np.empty(size)
        combine_arrays(self.state, context, cumulative, factors)
        return cumulative

    def arrays(self) -> dict[str, Array]:
        """State of the ledger."""
        return {"total": self.total, "account": self.account, "groups": self.groups}


# Plain indices: this runs in every round, and an enum takes as long as the reading.
shown_of = itemgetter(
    *(int(getattr(CertificateField, name)) for name in ("HOLDS", "WORST", "ALLOWED", "BOUND", "PROMISED", "EXCESS"))
)


def certificate_of(
    certificate: Array, half_space: float | None = None, approximation: float | None = None
) -> Certificate:
    """Public form of a round's certificate."""
    holds, worst, allowed, bound, promised, excess = shown_of(certificate.tolist())
    found = object.__new__(Certificate)
    # bypasses the checks of a frozen class, which take half of the time
    found.__dict__.update(
        holds=holds > 0.0,
        worst_next=worst,
        allowed=allowed,
        bound=bound,
        promised=promised,
        half_space=None if half_space is None else float(half_space),
        approximation=None if approximation is None else float(approximation),
        excess=excess,
    )
    return found
