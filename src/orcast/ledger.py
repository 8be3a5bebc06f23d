"""The ledger: what the forecasts owe to the outcomes so far, and the promise about it that is known beforehand.

S is the sum of the booked payoffs (one-sided coordinates count through their positive part), B_t the largest squared
norm that the payoff of round t could have.  A forecast holds when the worst outcome keeps

    ||S_{t-1} + payoff||_+^2  <=  C B + B_1 + ... + B_t                                   (the slack rule)

so that the miscalibration ||S_T||_+ / T is at most sqrt(C B + B_1 + ... + B_T) / T <= sqrt(B (T + C)) / T on any
sequence (paper, theorem 4.1, where C = 0; the half-space condition of its proposition 4.2 is sufficient for the rule,
not necessary).  The credit of C rounds is ours: without it the bound is so tight after one or two outcomes that only
absurd forecasts keep it; it costs a factor sqrt(1 + C / T).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Places in the account of a ledger.
BUDGET = 0  # the credit, B_1 + ... + B_T, the allowances for delay, and the measured excess of rounds that did not hold
ROUNDS = 1  # outcomes booked
HELD = 2  # of these, rounds whose certificate held
EXCESS = 3  # what was added to the budget because a certificate did not hold
ROOTS = 4  # sum of the sizes that the booked payoffs may have
DELAY = 5  # for each booked round, the outcomes booked between its forecast and its own outcome; summed
ACCOUNT_SIZE = 6

# Places in the note that a round keeps of its certificate.
WORST, OVERDRAFT, BOUND, ALLOWED, HOLDS, ROOT, ROOTS_THEN, ROUNDS_THEN = 0, 1, 2, 3, 4, 5, 6, 7
NOTE_SIZE = 8
# The promise starts with the budget of this many rounds.
CREDIT = 16.0
# Rounding of sums of some thousand terms.
ROUNDING = 1e-9


def squared_norm(total: Array, one_sided: int) -> float:
    """||S||_+^2; the coordinates from `one_sided` on count through their positive part."""
    square = 0.0
    for i in range(total.shape[0]):
        s = total[i]
        if i < one_sided or s > 0.0:
            square += s * s
    return square


def note_certificate(
    account: Array,
    square: float,
    reserved: float,
    worst: float,
    linear: float,
    bound: float,
    general: float,
    note: Array,
) -> None:
    """Judge a forecast before its outcome: `linear` is the largest 2 <S_+, payoff> + ||payoff||^2.

    `bound` is B_t, the largest squared payoff of this round, and `general` the bound B of any round.

    What it may use beyond its own B_t (its overdraft) comes out of the slack that is not `reserved`: the overdrafts of
    the rounds which still wait for their outcome.
    """
    overdraft = max(linear - bound, 0.0)
    free = max(account[BUDGET] - reserved - square, 0.0)
    note[WORST] = worst
    note[BOUND] = bound
    note[ALLOWED] = account[BUDGET] - reserved + bound
    note[HOLDS] = 1.0 if overdraft <= free + ROUNDING * (account[BUDGET] + bound) else 0.0
    note[OVERDRAFT] = min(overdraft, free)
    note[ROOT] = max(bound, general) ** 0.5
    note[ROOTS_THEN] = account[ROOTS]
    note[ROUNDS_THEN] = account[ROUNDS]


def settle(account: Array, total: Array, one_sided: int, reserved: float, payoff: Array, note: Array) -> None:
    """Book the payoff of a round; `reserved` is the overdraft of the others that still wait.

    With d outcomes booked since its forecast, S has moved by at most d sqrt(B), and the budget grows by the cross
    term of the squares, 2 d B; so the promise squared is at most B (T + C + 2 sum d) / T^2.
    """
    square = 0.0
    for i in range(total.shape[0]):
        total[i] += payoff[i]
        if i < one_sided or total[i] > 0.0:
            square += total[i] * total[i]
    account[BUDGET] += note[BOUND] + 2.0 * note[ROOT] * (account[ROOTS] - note[ROOTS_THEN])
    account[DELAY] += account[ROUNDS] - note[ROUNDS_THEN]
    account[ROOTS] += note[ROOT]
    account[ROUNDS] += 1.0
    account[HELD] += note[HOLDS]
    excess = square - (account[BUDGET] - reserved)
    if excess > 0.0:
        account[BUDGET] += excess
        account[EXCESS] += excess


@dataclass(frozen=True)
class Certificate:
    """What is known of a forecast before its outcome: `holds` if no outcome can break the promise.

    ``worst_next`` is the largest ||S + payoff||_+^2 that any outcome can cause and ``allowed`` what the promise allows;
    ``bound`` is B_t, the largest squared payoff of this round.

    >>> import orcast as oc
    >>> p = oc.Recalibrator(oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1))
    >>> p.certificate.holds, p.certificate.worst_next <= p.certificate.allowed
    (True, True)
    """

    holds: bool
    worst_next: float
    allowed: float
    bound: float


@dataclass(frozen=True)
class Guarantee:
    """What was promised and what was kept: ``miscalibration <= promised`` after every round.

    ``miscalibration`` is the norm of the mean normalised payoff, ``held`` the share of rounds whose certificate held
    (1.0 before any), ``parts`` the size of the mean payoff of each part in its own units: the root of the QCE on cells
    for quantiles, the largest error of a mean power for moments, the mean excess score (negative: better than the
    expert, as represented on the cells) for regret.  ``delay`` is the mean number of outcomes booked between a
    forecast and its own outcome.

    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 1))
    >>> _ = recal.predict(oc.Normal(0.5, 0.1)); recal.update(0.55)
    >>> g = recal.guarantee
    >>> g.rounds, g.held, g.miscalibration <= g.promised
    (1, 1.0, True)
    """

    rounds: int
    miscalibration: float
    promised: float
    held: float
    parts: dict[str, float] = field(default_factory=dict)
    delay: float = 0.0

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {value:.3g}" for name, value in self.parts.items())
        return (
            f"{self.rounds} rounds: miscalibration {self.miscalibration:.3g} <= promised {self.promised:.3g}, "
            f"held {self.held:.1%} ({parts})"
        )


class Ledger:
    """The sum of the payoffs and its account, of constant size.

    The coordinates from ``one_sided`` on (regret) count through their positive part.

    >>> ledger = Ledger(2, one_sided=1)
    >>> note = ledger.certify(worst=1.0, linear=1.0, bound=1.0)
    >>> ledger.book(np.array([0.6, -0.8]), note)
    >>> round(ledger.miscalibration, 3), ledger.promised
    (0.6, 1.0)
    """

    def __init__(self, size: int, one_sided: int | None = None, *, credit: float = 0.0) -> None:
        self.total: Array = np.zeros(size)
        self.account: Array = np.zeros(ACCOUNT_SIZE)
        self.account[BUDGET] = credit
        self.one_sided = size if one_sided is None else one_sided

    @property
    def rounds(self) -> int:
        """Outcomes booked so far."""
        return int(self.account[ROUNDS])

    @property
    def miscalibration(self) -> float:
        """||S_T||_+ / T, zero before any outcome."""
        square = float(squared_norm(self.total, self.one_sided))
        return float(np.sqrt(square)) / max(self.rounds, 1)

    @property
    def promised(self) -> float:
        """The bound on the miscalibration that was known before each outcome."""
        return float(np.sqrt(self.account[BUDGET])) / max(self.rounds, 1)

    @property
    def held(self) -> float:
        """Share of the booked rounds whose certificate held."""
        return float(self.account[HELD] / self.account[ROUNDS]) if self.rounds else 1.0

    @property
    def delay(self) -> float:
        """Outcomes booked between a forecast and its own outcome, on average."""
        return float(self.account[DELAY]) / max(self.rounds, 1)

    def certify(
        self, *, worst: float, linear: float, bound: float, general: float = 0.0, reserved: float = 0.0
    ) -> Array:
        """The note of a certificate: what the worst outcome could do against what is allowed."""
        note = np.zeros(NOTE_SIZE)
        square = squared_norm(self.total, self.one_sided)
        note_certificate(self.account, square, reserved, worst, linear, bound, general, note)
        return note

    def book(self, payoff: Array, note: Array, *, reserved: float = 0.0) -> None:
        """Add the payoff of a round; `reserved` is the overdraft of the rounds that still wait."""
        settle(self.account, self.total, self.one_sided, reserved, payoff, note)

    def to_plain(self) -> dict[str, Any]:
        """Plain data, exact."""
        return {"total": self.total.tolist(), "account": self.account.tolist(), "one_sided": self.one_sided}

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> Ledger:
        """The inverse of :meth:`to_plain`."""
        ledger = cls(len(data["total"]), int(data["one_sided"]))
        ledger.total[:] = data["total"]
        ledger.account[:] = data["account"]
        return ledger


def certificate(note: Array) -> Certificate:
    """The public form of a note."""
    return Certificate(bool(note[HOLDS] > 0.0), float(note[WORST]), float(note[ALLOWED]), float(note[BOUND]))
