"""What the live page plays in a worker of the browser: a series, its expert and a recalibrator, a round at a time."""

from __future__ import annotations

import contextlib
import io
import json
import math
import traceback
from collections import deque
from typing import Any

import numpy as np
from scipy.special import ndtri

import orcast as oc
from orcast.testing.adversaries import Greedy

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the fan; the outer two are the 90% band
LOW, HIGH = 0.0, 100.0
SPREAD = 4.0  # the expert's standard deviation, always
REACH = 20.0  # how far from the expert's mean the adversary may go
RECENT = 100
SITUATIONS = ("calm", "drift", "adversary")


class Coverage:
    """The share of outcomes in the 90% band, of all and of the last hundred."""

    def __init__(self) -> None:
        self.rounds = self.inside = 0
        self.recent: deque[bool] = deque(maxlen=RECENT)

    def update(self, fan: list[float], y: float) -> dict[str, float]:
        """Count an outcome, and say the shares."""
        covered = fan[0] <= y <= fan[-1]
        self.rounds += 1
        self.inside += covered
        self.recent.append(covered)
        return {"all": self.inside / self.rounds, "recent": sum(self.recent) / len(self.recent)}


class Demo:
    """An expert that never learns, and a recalibrator that does.

    The expert knows the daily course and one spread.  In `calm` outcomes are what it says.  In `drift` they move away
    from it, by `drift` in the end, and scatter more the further they are.  In `adversary` someone who sees each
    recalibrated forecast picks the outcome: far from the expert's mean, on the side after which most is owed.
    """

    def __init__(self, situation: str = "drift", drift: float = 12.0, seed: int = 0) -> None:
        if situation not in SITUATIONS:
            raise ValueError(f"expected one of {', '.join(SITUATIONS)} as situation, got {situation!r}")
        self.situation = situation
        self.drift = drift  # may change while the game goes on
        self.offset = 0.0
        self.rng = np.random.default_rng(seed)
        self.recal = oc.Recalibrator(oc.Interval(LOW, HIGH))
        self.before, self.after = Coverage(), Coverage()

    def step(self) -> dict[str, Any]:
        """Play a round: both forecasts, the outcome, the certificate before it and the guarantee after it."""
        t = self.before.rounds
        centre = 50.0 + 15.0 * math.sin(2.0 * math.pi * t / 24.0)
        p = self.recal.predict(oc.Normal(centre, SPREAD))
        y = self.outcome(centre, p)
        self.recal.update(y)
        before, after = (centre + SPREAD * ndtri(LEVELS)).tolist(), p.quantile(LEVELS).tolist()
        certificate, guarantee = p.certificate, self.recal.guarantee
        return {
            "round": t + 1,
            "y": y,
            "before": before,
            "after": after,
            "covered_before": self.before.update(before, y),
            "covered_after": self.after.update(after, y),
            "holds": bool(certificate.holds),
            "worst_next": float(certificate.worst_next),
            "allowed": float(certificate.allowed),
            "miscalibration": float(guarantee.miscalibration),
            "promised": float(guarantee.promised),
            "held": float(guarantee.held),
        }

    def outcome(self, centre: float, p: oc.Forecast) -> float:
        """What happens after a forecast."""
        if self.situation == "adversary":
            return float(Greedy(among=[centre - REACH, centre + REACH]).outcome(self.recal, p, self.rng))
        if self.situation == "drift":
            self.offset += (self.drift - self.offset) / 40.0
        scatter = SPREAD * (1.0 + abs(self.offset) / 20.0)
        return float(np.clip(centre + self.offset + scatter * self.rng.standard_normal(), LOW, HIGH))

    def play(self, rounds: int = 1) -> str:
        """Play some rounds: what `step` says of each, as JSON."""
        return json.dumps([self.step() for _ in range(rounds)])


def run(code: str) -> str:
    """Run a cell of code: what it prints, and how it failed if it did."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            exec(compile(code, "<cell>", "exec"), {"__name__": "__main__"})
        except BaseException as error:  # the cell may raise anything, SystemExit too
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<cell>"]
            line = lines[-1] if lines else getattr(error, "lineno", None)
            said.write(f"{type(error).__name__}: {error}" + (f" (line {line})" if line else "") + "\n")
    return said.getvalue()
