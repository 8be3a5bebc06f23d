"""Dense solver of the logit equilibrium, for payoffs whose context depends on the forecast.

    log p = log prior + <s, payoff(p, .)> + const,         s = cumulative payoff / temperature

Newton's method with the Jacobians of the payoffs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from orcast.constants import MAX_STEP, SHRINK

Array = NDArray[np.float64]
Field = Callable[[Array], Array]
Jacobian = Callable[[Array], Array | None]

# Number of times that a rejected Newton step is shortened.
TRIES = 5


def normalised(log_mass: Array) -> Array:
    """Log masses that sum to one."""
    top = log_mass.max()
    return log_mass - (top + math.log(np.exp(log_mass - top).sum()))


def residual(lp: Array, log_prior: Array, field: Field) -> tuple[Array, Array]:
    """Residual of the fixed-point equation at lp, and the image of lp."""
    aim = normalised(log_prior + field(np.exp(lp)))
    return lp - aim, aim


def solve(
    log_prior: Array, field: Field, jacobian: Jacobian, start: Array, tolerance: float, steps: int
) -> tuple[Array, float]:
    """Log masses of an equilibrium near `start`, and the largest residual.

    An inexact solution is valid, because the certificate is computed from the forecast itself.
    """
    lp = normalised(start)
    r, aim = residual(lp, log_prior, field)
    size = float(np.abs(r).max())
    for _ in range(steps):
        step = newton_step(lp, aim, r, jacobian) if size > tolerance else None
        if step is None:
            break
        length = 1.0
        for _ in range(TRIES):
            trial = normalised(lp + length * step)
            r_trial, aim_trial = residual(trial, log_prior, field)
            new = float(np.abs(r_trial).max())
            if new < size:
                break
            length *= SHRINK
        else:
            break
        lp, r, aim, size = trial, r_trial, aim_trial, new
    return lp, size


def newton_step(lp: Array, aim: Array, r: Array, jacobian: Jacobian) -> Array | None:
    """Limited step of Newton's method in log masses; None if the matrix is singular."""
    p = np.exp(lp)
    by_mass = jacobian(p)
    if by_mass is None:
        return np.minimum(np.maximum(-r, -MAX_STEP), MAX_STEP)
    by_log = (by_mass - (by_mass @ p)[:, None]) * p
    # the aim is normalised: its mean change under itself is zero
    by_log -= np.exp(aim) @ by_log
    np.negative(by_log, out=by_log)
    by_log.flat[:: p.size + 1] += 1.0
    try:
        step = np.linalg.solve(by_log, -r)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(step).all():
        return None
    return np.minimum(np.maximum(step, -MAX_STEP), MAX_STEP)
