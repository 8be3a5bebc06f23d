"""Guarantee under attack: share of certificates that held, worst ratio to the bound, and time of a round."""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

import orcast as oc
from orcast import ledger as _ledger
from orcast.ledger import Account, CertificateField, Ledger
from orcast.testing.adversaries import run_rounds
from orcast.testing.consequences import worst_outcome
from research.benchmarks.games import SPACES, Game, all_games, features_of
from research.benchmarks.lines import Line, Lines, Remark

TITLE = "Guarantee: payoffs, spaces and adversaries"
ROUNDS, SECONDS = 2000, 60.0
QUICK_ROUNDS, QUICK_SECONDS, QUICK_EVERY = 60, 1.0, 7
THOROUGH = 25  # every so many rounds the certificate is compared with a search over all outcomes
ROUNDING = 1e-9
WORST = 10
NEARLY = 0.999
EXACT = ("Interval", "HalfLine", "Binary", "Labels", "Circle")
USUAL_MS, LARGEST_MS = 20.0, 200.0
SETTINGS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Outcome:
    """Result of a game; `ratio` is the largest miscalibration / bound, `ms` the median, 99% and largest CPU time."""

    game: Game
    rounds: int
    held: float
    ratio: float
    uncertified: int  # outcomes worse than certified
    ms: tuple[float, float, float]
    failure: str = ""

    @property
    def target(self) -> float:
        """Share of certificates that must hold."""
        return (
            1.0 if self.game.space in EXACT and self.game.what not in ("custom", "recipe", "recipe given p") else NEARLY
        )

    @property
    def missed(self) -> bool:
        """True if a target is missed."""
        late = self.ms[1] > USUAL_MS or self.ms[2] > LARGEST_MS
        return bool(self.failure or self.uncertified) or self.held < self.target or self.ratio > 1.0 + ROUNDING or late

    def __str__(self) -> str:
        if self.failure:
            return f"{self.game.name:<52} {self.failure}"
        usual, most, largest = self.ms
        return (
            f"{self.game.name:<52}{self.rounds:>6}{self.held:>9.2%}{self.ratio:>8.3f}{usual:>9.2f}{most:>9.1f}"
            f"{largest:>9.1f}  {'MISSED' if self.missed else 'ok'}"
        )


def unforgiven(ledger: Ledger) -> float:
    """Miscalibration / bound known before, which is at most sqrt(B (T + C + 2 sum of delays)) / T.

    The ledger adds the cost of a broken certificate to its bound; here that is not forgiven.
    """
    account = ledger.account
    before = float(account[Account.BUDGET] - account[Account.EXCESS])
    most = ledger.bound * float(account[Account.ROUNDS] + _ledger.CREDIT + 2.0 * account[Account.DELAY])
    return float(np.sqrt(ledger.square / max(min(before, most), 1e-300)))


def attack(case: Game, rounds: int, seconds: float) -> Outcome:
    """Run a game until the rounds or the CPU seconds are over."""
    game = oc.Forecaster(case.on(), case.payoff(), oracle=oc.Committee())
    rng, start = np.random.default_rng(0), time.process_time()
    ratio, uncertified = 0.0, 0
    times: list[float] = []
    for turn in run_rounds(game, case.opponent(), rounds, experts=case.experts(), x=features_of, rng=rng):
        ledger = game.engine.ledger
        certificate = game.rounds.pending[turn.id].record.certificate_row
        if len(times) % THOROUGH == 0 and certificate[CertificateField.ROUNDS_THEN] == ledger.rounds:
            worst = certificate[CertificateField.WORST] * (1.0 + ROUNDING) + ROUNDING
            uncertified += worst_outcome(game, turn.id)[1] > worst
        begin = time.process_time()
        game.update(turn.y, id=turn.id)
        times.append(turn.seconds + time.process_time() - begin)
        ratio = max(ratio, unforgiven(ledger))
        if time.process_time() - start > seconds:
            break
    ms = 1e3 * np.array(times)
    most = (float(np.median(ms)), float(np.quantile(ms, 0.99)), float(ms.max()))
    return Outcome(case, len(times), game.guarantee.held, ratio, int(uncertified), most)


def attempt(case: Game, rounds: int, seconds: float) -> Outcome:
    """Result of a game, or the error that ended it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # features that no part of the payoff uses
            return attack(case, rounds, seconds)
    except Exception as reason:
        return Outcome(case, 0, 0.0, math.inf, 0, (math.nan,) * 3, f"{type(reason).__name__}: {reason}")


def measure(quick: bool = False, *, games: str = "") -> Lines:
    """Each game, then the worst by space."""
    rounds, seconds = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
    chosen = [game for game in all_games() if re.search(games, game.name)]
    chosen = chosen[::QUICK_EVERY] if quick and not games else chosen
    yield Remark(f"{len(chosen):,} games of {rounds:,} rounds or {seconds:g} CPU seconds; CPU ms of predict + update")
    yield Remark(f"{'game':<52}{'rounds':>6}{'held':>9}{'ratio':>8}{'median':>9}{'99%':>9}{'largest':>9}")
    found = []
    os.environ |= SETTINGS  # of the new processes
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for outcome in pool.map(attempt, chosen, [rounds] * len(chosen), [seconds] * len(chosen)):
            found.append(outcome)
            yield Remark(str(outcome))
    yield from _summaries(found)


def _summaries(found: Sequence[Outcome]) -> Lines:
    for space in SPACES:
        for target in (1.0, NEARLY):
            own = [each for each in found if each.game.space == space and each.target == target]
            if not own:
                continue
            name = space if target == 1.0 or space not in EXACT else f"{space}, payoffs of users"
            least = min(own, key=lambda each: each.held)
            below = sum(each.held < target for each in own)
            note = f"{least.game.name}; {below} of {len(own)} games below" if below else f"{len(own)} games"
            yield Line(name, "held, least", least.held, target, ">=", ".2%", note)
            most = max(own, key=lambda each: each.ratio)
            yield Line(name, "miscalibration / bound, most", most.ratio, 1.0 + ROUNDING, "<=", ".3f", most.game.name)
            slow = max(own, key=lambda each: each.ms[1])
            yield Line(name, "CPU ms a round, 99%", slow.ms[1], USUAL_MS, "<=", ".1f", slow.game.name)
    worst = sorted((each for each in found if each.missed), key=lambda each: (not each.failure, -each.ratio, each.held))
    if worst:
        yield Remark(f"{len(worst)} of {len(found)} games missed a target, the worst:")
        yield from (Remark(str(each)) for each in worst[:WORST])
