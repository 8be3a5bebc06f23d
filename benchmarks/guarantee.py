"""The guarantee under attack: every payoff on every space against every Nature, and random sums with contexts."""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import numpy as np

import orcast as oc
from benchmarks import coin, speed
from benchmarks.games import SPACES, Game, all_games, features_of
from benchmarks.results import Line, Remark
from orcast import ledger as _ledger
from orcast.ledger import Account, CertificateField, Ledger
from orcast.testing.natures import play, worst_outcome

TITLE = "Guarantee: every payoff, space and Nature"
ROUNDS, SECONDS = 2000, 60.0
QUICK_ROUNDS, QUICK_SECONDS = 60, 2.0
WORKERS = 2
# Every so many rounds all cells are looked at, whatever their certificates say.
THOROUGH = 25
ROUNDING = 1e-9
WORST = 10
POINTS = 41
# Shares of certificates that must hold, by space; 99.9% elsewhere and for payoffs that users write.
WHOLE = ("Interval", "HalfLine", "Binary", "Labels", "Circle")
NEARLY = 0.999
USUAL_MS, LARGEST_MS = 20.0, 200.0
SETTINGS = {"ORCAST_KERNELS": "compiled"} | dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Outcome:
    """What happened in a game."""

    game: Game
    rounds: int
    held: float
    first: int  # round of the first certificate that did not hold, -1 if all did
    ratio: float  # the largest miscalibration / what was promised before, after any round
    excess: float  # what was added to the promise, over the budget
    uncertified: int  # outcomes worse than certified
    ms: tuple[float, float, float]  # CPU of predict + update: median, 99%, largest
    failure: str = ""

    @property
    def target(self) -> float:
        exact = self.game.space in WHOLE and self.game.what not in ("custom", "recipe", "recipe given p")
        return 1.0 if exact else NEARLY

    @property
    def missed(self) -> bool:
        late = self.ms[1] > USUAL_MS or self.ms[2] > LARGEST_MS
        return bool(self.failure) or self.held < self.target or self.ratio > 1.0 + ROUNDING or late

    @property
    def row(self) -> str:
        if self.failure:
            return f"{self.game.name:<52} {self.failure}"
        name, (usual, most, largest) = self.game.name, self.ms
        notes = [f"first in round {self.first}; excess {self.excess:.2g}"] if self.first >= 0 else []
        notes += [f"{self.uncertified} worse than certified"] if self.uncertified else []
        return (
            f"{name:<52}{self.rounds:>6}{self.held:>9.2%}{self.ratio:>8.3f}{usual:>9.2f}{most:>9.1f}{largest:>9.1f}"
            f"  {'MISSED' if self.missed else 'ok':<7}{'; '.join(notes)}"
        ).rstrip()


HEAD = (
    f"{'game':<52}{'rounds':>6}{'held':>9}{'ratio':>8}{'median':>9}{'99%':>9}{'largest':>9}",
    f"{'target':<52}{'':>6}{'see below':>9}{'<= 1':>8}{'':>9}{f'<= {USUAL_MS:g}':>9}{f'<= {LARGEST_MS:g}':>9}",
)


def unforgiven(ledger: Ledger) -> float:
    """Miscalibration / what was promised before, which is at most sqrt(B (T + C + 2 sum of delays)) / T.

    The ledger adds what a broken certificate cost to its promise, and so it would a payoff beyond its own bound: here
    neither is forgiven.
    """
    account = ledger.account
    before = float(account[Account.BUDGET] - account[Account.EXCESS])
    most = ledger.bound * float(account[Account.ROUNDS] + _ledger.CREDIT + 2.0 * account[Account.DELAY])
    return float(np.sqrt(ledger.square / max(min(before, most), 1e-300)))


def attack(case: Game, rounds: int, seconds: float) -> Outcome:
    """A game, until so many rounds or CPU seconds are over."""
    game = oc.Forecaster(case.on(), case.payoff(), oracle=oc.Committee())
    rng, start = np.random.default_rng(0), time.process_time()
    ratio, first, uncertified, times = 0.0, -1, 0, []
    for turn in play(game, case.opponent(), rounds, experts=case.experts(), x=features_of, rng=rng):
        ledger = game.engine.ledger
        certificate = game.rounds.pending[turn.id].record.certificate
        if len(times) % THOROUGH == 0 and certificate[CertificateField.ROUNDS_THEN] == ledger.rounds:
            worst = certificate[CertificateField.WORST] * (1.0 + ROUNDING) + ROUNDING
            uncertified += worst_outcome(game, turn.id)[1] > worst
        held = float(ledger.account[Account.HELD])
        begin = time.process_time()
        game.update(turn.y, id=turn.id)
        times.append(turn.seconds + time.process_time() - begin)
        if first < 0 and ledger.account[Account.HELD] == held:
            first = ledger.rounds - 1
        ratio = max(ratio, unforgiven(ledger))
        if time.process_time() - start > seconds:
            break
    account = game.engine.ledger.account
    ms = 1e3 * np.array(times)
    return Outcome(
        case,
        len(times),
        game.guarantee.held,
        first,
        ratio,
        float(account[Account.EXCESS] / account[Account.BUDGET]),
        uncertified,
        (float(np.median(ms)), float(np.quantile(ms, 0.99)), float(ms.max())),
    )


def attempt(case: Game, rounds: int, seconds: float) -> Outcome:
    """The game, or why it broke off."""
    try:
        attack(case, 2, math.inf)  # compiles, if it has to
        return attack(case, rounds, seconds)
    except Exception as reason:
        return Outcome(case, 0, 0.0, 0, math.inf, 0.0, 0, (math.nan,) * 3, f"{type(reason).__name__}: {reason}")


@contextmanager
def environment() -> Iterator[None]:
    """A thread a process, and compiled kernels from the first round on."""
    before = {name: os.environ.get(name) for name in SETTINGS}
    os.environ.update(SETTINGS)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def measure(
    quick: bool = False, *, rounds: int | None = None, seconds: float | None = None, games: str = ""
) -> Iterator[Line | Remark]:
    rounds = (QUICK_ROUNDS if quick else ROUNDS) if rounds is None else rounds
    seconds = (QUICK_SECONDS if quick else SECONDS) if seconds is None else seconds
    chosen = [game for game in all_games() if re.search(games, game.name)]
    yield Remark(f"{len(chosen):,} games of {rounds:,} rounds, or as many as {seconds:g} CPU seconds allow;")
    yield Remark("ratio: the largest miscalibration / what was promised before, after any round, nothing forgiven;")
    yield Remark("CPU milliseconds of predict + update alone")
    yield from map(Remark, HEAD)
    found: list[Outcome] = []
    with environment(), ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(attempt, game, rounds, seconds) for game in chosen]
        for each in waiting:
            found.append(each.result())
            yield Remark(found[-1].row)
    yield from summaries(found)
    if not games:
        yield from injected_ledgers()
        yield Remark(coin.TITLE)
        yield from coin.measure(quick)
        yield from natural_data(30 if quick else 140)


def summaries(found: Iterable[Outcome]) -> Iterator[Line | Remark]:
    """By space and target, then the worst games."""
    found = list(found)
    for space in SPACES:
        for target in (1.0, NEARLY):
            own = [each for each in found if each.game.space == space and each.target == target]
            if not own:
                continue
            name = space if target == 1.0 or space not in WHOLE else f"{space}, payoffs of users"
            least = min(own, key=lambda each: each.held)
            sense = "=" if target == 1.0 else ">="
            broken = sum(each.held < target for each in own)
            note = f"{least.game.name}; {broken} of {len(own)} games below" if broken else ""
            yield Line(name, "held, least", least.held, target, sense, ".2%", note)
            most = max(own, key=lambda each: each.ratio)
            note = most.game.name if most.ratio > 1.0 + ROUNDING else ""
            yield Line(name, "miscalibration / promised before", most.ratio, 1.0 + ROUNDING, form=".3f", note=note)
            note = f"median of medians {median(each.ms[0] for each in own):.2f} ms"
            slow, slowest = (max(own, key=lambda each, i=i: each.ms[i]) for i in (1, 2))  # type: ignore[misc]
            yield Line(name, "CPU a round, 99%, ms", slow.ms[1], USUAL_MS, form=".1f", note=f"{slow.game.name}; {note}")
            yield Line(name, "CPU a round, largest, ms", slowest.ms[2], LARGEST_MS, form=".1f", note=slowest.game.name)
    worst = sorted((each for each in found if each.missed), key=badness)
    if worst:
        yield Remark(f"the worst of {len(worst)} games that missed a target of {len(found)}:")
        yield from (Remark(each.row) for each in worst[:WORST])


def badness(each: Outcome) -> tuple[bool, bool, float, float]:
    """What broke off comes first, then what broke its promise, what was not certified, and what took longest."""
    return not each.failure, each.ratio <= 1.0 + ROUNDING, each.held, -each.ms[2]


def injected_ledgers() -> Iterator[Line | Remark]:
    """What the certificate says beside brute force, on ledgers whose coordinates pull against each other in a cell."""
    yield Remark(f"certificates against {POINTS} points a cell, on ledgers S = (-2 t s, s) of MomentMatching(2):")
    least, most = math.inf, (-math.inf, "")
    for s in (1.0, 20.0, 200.0):
        for t in np.linspace(0.05, 0.95, 19).tolist():
            said, true = grown(s, t)
            least = min(least, (said - true) / max(abs(true), 1.0))
            most = max(most, (said - true, f"s = {s:g}, t = {t:.2f}: certificate {said:+.2f}, truth {true:+.2f}"))
    yield Line("injected ledgers", "certificate - truth, least", least, -ROUNDING, ">=", ".2e")
    yield Line("injected ledgers", "certificate - truth, most", most[0], form=".3f", note=most[1])
    said, true = grown(200.0, 0.9)
    yield Line("injected ledgers", "s = 200, t = 0.9", said - true, form=".3f", note=f"{said:+.2f} for {true:+.2f}")


def grown(s: float, t: float) -> tuple[float, float]:
    """By how much the squared ledger may grow in a round: by the certificate, and by brute force."""
    game = oc.Forecaster(oc.Interval(0.0, 1.0), oc.MomentMatching(2), oracle=oc.Committee())
    game.predict(oc.Normal(0.5, 0.1))
    ledger = game.engine.ledger
    ledger.total[:] = (-2.0 * t * s, s)
    ledger.account[Account.BUDGET] = ledger.square
    certificate = game.predict(oc.Normal(0.5, 0.1)).certificate
    return certificate.worst_next - ledger.square, worst_outcome(game, points=POINTS)[1] - ledger.square


def natural_data(repetitions: int) -> Iterator[Line | Remark]:
    """What a round takes where nobody attacks, in units of a scipy call of the same run."""
    stream = oc.datasets.stream(oc.datasets.load("humidity"), "rls")
    recal = oc.Recalibrator(oc.Interval(stream.low, stream.high))
    works = {"natural data, predict + update": (speed.quantity(stream, recal), speed.DEFAULT_LIMIT)}
    yield from speed.interleaved(stream, works, repetitions, speed.BLOCK)
