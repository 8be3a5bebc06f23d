"""The guarantee against Nature at her worst: she sees each forecast and picks the outcome that hurts most."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import orcast as oc
from benchmarks.nature import ROUNDING, unforgiven, worst_outcome
from benchmarks.results import Line, Remark
from benchmarks.streams import BATCH, LATE, batches
from orcast import ledger
from orcast.metrics import LEVELS, qce

TITLE = "Guarantee: a greedy adversary that sees the forecast"
ROUNDS, QUICK_ROUNDS = 5000, 500

EXPERTS: dict[str, Callable[[int], oc.Normal]] = {
    "good": lambda t: oc.Normal(0.5 + 0.3 * np.sin(t / 20.0), 0.1),
    "very narrow": lambda t: oc.Normal(0.5 + 0.3 * np.sin(t / 20.0), 1e-5),
    "edge": lambda t: oc.Normal(0.0, 0.02),
}
PAYOFFS: dict[str, Callable[[], Any]] = {"quantile": oc.QuantileCalibration, "default": lambda: None}


@dataclass
class Duel:
    """What happened in a game against the adversary."""

    ratio: float = 0.0  # the largest miscalibration / promised after any round, excess not forgiven
    violations: int = 0  # rounds after which it was above 1
    uncertified: int = 0  # rounds in which an outcome was worse than the certificate's worst_next
    largest: float = 0.0  # the largest B_t
    qce: float = np.nan
    seconds: float = 0.0  # of predict and update alone
    guarantee: oc.Guarantee | None = None
    worst_case: float = 0.0  # the promise with every B_t at its largest by the theory, sqrt(B (T + 2 sum d)) / T


def duel(expert: Callable[[int], oc.Normal], payoff: Any, rounds: int, *, late: bool) -> Duel:
    """Play the game; with delay, she picks each outcome when it is revealed, knowing all forecasts until then."""
    recal = oc.Recalibrator(oc.Interval(0.0, 1.0), payoff)
    game = recal
    book = game.engine.ledger
    reveal = batches(rounds) if late else np.arange(1, rounds + 1)
    waiting: deque[int] = deque()
    result = Duel()
    played, outcomes = np.empty((rounds, LEVELS.size)), np.empty(rounds)

    def settle(t: int) -> None:
        note = game.rounds.pending[t].record.note
        outcomes[t], worst = worst_outcome(game, t)
        if not late and worst > note[ledger.CertificateField.WORST] * (1.0 + ROUNDING) + ROUNDING:
            result.uncertified += 1
        result.largest = max(result.largest, float(note[ledger.CertificateField.BOUND]))
        begin = time.perf_counter()
        recal.update(outcomes[t], id=t)
        result.seconds += time.perf_counter() - begin
        ratio = unforgiven(book)
        result.ratio = max(result.ratio, ratio)
        result.violations += ratio > 1.0 + ROUNDING

    for t in range(rounds):
        while waiting and reveal[waiting[0]] <= t:
            settle(waiting.popleft())
        forecast = expert(t)
        begin = time.perf_counter()
        p = recal.predict(forecast, id=t)
        result.seconds += time.perf_counter() - begin
        played[t] = p.quantile(LEVELS)
        waiting.append(t)
    while waiting:
        settle(waiting.popleft())
    result.guarantee = recal.guarantee
    result.qce = qce(played, outcomes, low=0.0, high=1.0)
    delay = float(book.account[ledger.Account.DELAY])
    result.worst_case = float(np.sqrt(book.bound * (rounds + 2.0 * delay))) / rounds
    return result


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    yield Remark(f"{rounds:,} rounds; she picks among both ends and the middle of every cell")
    yield Remark(
        "miscalibration / promised: the largest after any round; what a broken certificate cost is not forgiven"
    )
    for payoff_of in PAYOFFS.values():
        duel(EXPERTS["good"], payoff_of(), 5, late=False)  # compiles, if it has to
    for late in (False, True):
        if late:
            yield Remark(f"outcomes in batches of {BATCH}, {LATE} batches late, each picked when it is revealed:")
        for payoff_name, payoff_of in PAYOFFS.items():
            for expert_name, expert in EXPERTS.items():
                yield from lines(
                    f"{payoff_name}, {expert_name} expert{', late' if late else ''}",
                    duel(expert, payoff_of(), rounds, late=late),
                    rounds,
                )


def lines(name: str, result: Duel, rounds: int) -> Iterator[Line]:
    guarantee = result.guarantee
    assert guarantee is not None
    note = (
        f"{guarantee.miscalibration:.4f} of {guarantee.promised:.4f} at the end; {result.violations} violations; "
        f"QCE of hard indicators {result.qce:.4f}; {1e6 * result.seconds / rounds:.0f} us a round"
    )
    yield Line(name, "miscalibration / promised", result.ratio, 1.0 + ROUNDING, form=".3f", note=note)
    note = f"{result.uncertified} outcomes worse than certified" if result.uncertified else ""
    yield Line(name, "held", guarantee.held, 1.0, "=", form=".2%", note=note)
    note = f"sqrt(B (T + 2 sum of delays)) / T = {result.worst_case:.4f}; largest B_t {result.largest:.3g}"
    yield Line(name, "promised / worst-case promise", guarantee.promised / result.worst_case, form=".3f", note=note)
