"""A game against an adversary, with a ledger of its own: payoffs by their definitions, sums in plain numpy."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast.adapters import expert_row
from orcast.forecasts import forecast_on
from orcast.ledger import Certificate, CertificateField
from orcast.payoffs import Part
from orcast.payoffs.decisions import DecisionCalibration, SwapRegret
from orcast.payoffs.probabilities import Calibeating
from orcast.spaces import FiniteSpace, Space
from orcast.testing import payoffs_of
from research.attack.games import Game, features
from tests.adversaries import Turn, run_rounds
from tests.definitions import evaluate

Array = NDArray[np.float64]

ROUNDS = 1000
ROUNDS_THEN = int(CertificateField.ROUNDS_THEN)
ROUNDING, GAP = 1e-9, 1e-6


@dataclass
class Found:
    """Result of a game; `failure` is the error that ended it.

    `ratio` is the largest miscalibration / bound, `beyond` the largest squared norm after a round over the certified
    one, minus 1. `unsaid` counts rounds that broke the announced bound, `groups` groups beyond their stated bound, and
    `targets` groups beyond the bound of a group alone.
    """

    game: Game
    held: int = 0
    ratio: float = 0.0
    beyond: float = -math.inf
    unsaid: int = 0
    groups: int = 0
    targets: int = 0
    ms: list[float] = field(default_factory=list)
    failure: str = ""


class OwnLedger:
    """Sums of the payoffs of a game: a matrix with a row a group for each part."""

    def __init__(self, recal: oc.Forecaster) -> None:
        self.recal, self.rounds = recal, 0
        self.parts: list[Part] = recal.engine.bound_payoff.parts
        self.sums: list[Array] = []
        self.counts: list[Array] = []

    def add(self, turn: Turn, x: Any, expert: Any) -> None:
        """Add the payoff of a pending round, and check what the library books against the definitions."""
        recal, space = self.recal, self.recal.space
        settled = payoffs_of(recal, [space.outcome(turn.y)], turn.id)[:, 0]
        context = recal.engine.context_of(recal.rounds.pending[turn.id].record)
        at = 0
        places = recal.engine.ledger.layout
        for number, part in enumerate(self.parts):
            _, size, groups, first, _, _ = places.part_table[number].tolist()
            own = settled[places.place_list[first : first + size]]
            slow = self._by_definition(part, turn, x, expert)
            if slow is not None and float(np.abs(slow - own).max()) > GAP * math.sqrt(part.bound):
                raise AssertionError(f"expected {part.payoff!r} to book {slow}, got {own}")
            reach = part.payoff.context.bound
            scale = part.payoff.weight / (1.0 if part.payoff.name == "regret" else math.sqrt(part.bound * reach))
            c = context[at : at + groups]
            if self.rounds == 0:
                self.sums.append(np.zeros((groups, size)))
                self.counts.append(np.zeros(groups))
            self.sums[number] += scale * np.outer(c, own if slow is None else slow)
            self.counts[number] += np.abs(c)
            at += groups
        self.rounds += 1

    def _by_definition(self, part: Part, turn: Turn, x: Any, expert: Any) -> Array | None:
        """Payoff in its own units; None for scores and contexts with a memory, and cuts around the expert's median."""
        space: Space = self.recal.space
        payoff = part.payoff
        if part.state() or isinstance(payoff, oc.NoRegret):
            return None
        if isinstance(payoff, DecisionCalibration | SwapRegret) and isinstance(space, oc.Line | oc.HalfLine):
            return None
        given = None
        if isinstance(payoff, Calibeating) and isinstance(space, FiniteSpace):
            given = forecast_on(space, expert_row(expert, space)[0], None)
        return evaluate(payoff, space, turn.forecast, turn.y, given, x)

    def norms(self, number: int) -> Array:
        """Norm of each group of a part."""
        sums = self.sums[number]
        found: Array = np.linalg.norm(np.maximum(sums, 0.0) if self.parts[number].payoff.one_sided else sums, axis=1)
        return found

    @property
    def norm(self) -> float:
        """||S||_+."""
        return math.sqrt(sum(float(self.norms(number) @ self.norms(number)) for number in range(len(self.parts))))


def play(game: Game, ahead: float, end: float, rounds: int = ROUNDS) -> Found:
    """Play a game for its share of the time until `end`, which `ahead` games have; an error is part of the result."""
    found, seconds = Found(game), max(end - time.time(), 0.0) / ahead
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # features that no part of the payoff uses
            _play(game, seconds, rounds, found)
    except Exception as reason:
        found.failure = f"{type(reason).__name__}: {reason}"
    return found


def _play(game: Game, seconds: float, rounds: int, found: Found) -> None:
    recal = oc.Forecaster(game.on(), game.payoff(), oracle=oc.Committee())
    own, given, end = OwnLedger(recal), game.experts(), time.perf_counter() + seconds
    known: dict[Any, list[Any]] = {"expert": [], "x": []}
    of_round = features()

    def noted(what: str, value: Any) -> Any:
        known[what].append(value)
        return value

    rng = np.random.default_rng(0)
    experts, x = (lambda t: noted("expert", given(t))), (lambda rng: noted("x", of_round(rng)))
    for turn in run_rounds(recal, game.opponent(), rounds, experts=experts, x=x, rng=rng):
        id: Any = turn.id
        certificate, row = turn.forecast.certificate, recal.rounds.pending[id].record.certificate_row
        at_once = row[ROUNDS_THEN] == own.rounds
        own.add(turn, known["x"][id], known["expert"][id])
        begin = time.process_time()
        recal.update(turn.y, id=id)
        found.ms.append(1e3 * (turn.seconds + time.process_time() - begin))
        after = None if at_once else recal.guarantee
        _judge(found, own, certificate, after)
        if time.perf_counter() > end:
            break
    for number, name in enumerate(recal.engine.bound_payoff.names):
        for group, norm in zip(recal.guarantee.groups.get(name, {}).values(), own.norms(number), strict=False):
            stated = (group.promised + group.excess) * max(group.rounds, 1.0)
            found.groups += norm > stated * (1.0 + ROUNDING)
            found.targets += norm > group.target * max(group.rounds, 1.0) * (1.0 + ROUNDING)


def _judge(found: Found, own: OwnLedger, certificate: Certificate, after: oc.Guarantee | None) -> None:
    """Compare the own ledger after a round with what was announced before it, or, for a late outcome, is stated now."""
    said = certificate if after is None else after
    size = own.norm / own.rounds
    found.held += certificate.holds
    found.ratio = max(found.ratio, size / said.promised)
    found.unsaid += size > (said.promised + said.excess) * (1.0 + ROUNDING)
    if after is None:
        found.beyond = max(found.beyond, own.norm**2 / max(certificate.worst_next, 1e-12) - 1.0)
