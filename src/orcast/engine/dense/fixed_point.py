"""The dense solver of the logit equilibrium, for payoffs whose context depends on the forecast.

    log p = log prior + <s, payoff(p, .)> + const,         s = what is owed, over the temperature

Newton with the payoffs' own Jacobians, Anderson acceleration where it does not get on, and on two cells a bisection,
which always finds a root.
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

# How often a rejected Newton step is shortened.
TRIES = 5
# Beyond so many cells a Newton step costs more than it gains.
MOST_CELLS = 100
DEPTH, DAMPING = 5, 0.5
# Masses that a root on two cells may come to.
LEAST_MASS = 1e-12


def normalised(log_mass: Array) -> Array:
    """Log masses that sum to one."""
    top = log_mass.max()
    return log_mass - (top + math.log(np.exp(log_mass - top).sum()))


def residual(lp: Array, log_prior: Array, field: Field) -> tuple[Array, Array]:
    """lp minus where the equation sends it, and that place."""
    aim = normalised(log_prior + field(np.exp(lp)))
    return lp - aim, aim


def solve(
    log_prior: Array, field: Field, jacobian: Jacobian, start: Array, tolerance: float, steps: int
) -> tuple[Array, float]:
    """Log masses of an equilibrium near `start`, and the largest residual.

    Where Newton is stuck at a kink, Anderson goes on, unless the residual is within ten times the tolerance: an
    inexact solution is fine, because the certificate is that of what is played.
    """
    if start.size == 2:
        return two_cells(log_prior, field, start)
    lp = normalised(start)
    r, aim = residual(lp, log_prior, field)
    size = float(np.abs(r).max())
    for _ in range(steps):
        if size <= tolerance:
            break
        step = newton_step(lp, aim, r, jacobian) if lp.size <= MOST_CELLS else None
        if step is not None:
            length = 1.0
            for _ in range(TRIES):
                trial = normalised(lp + length * step)
                r_trial, aim_trial = residual(trial, log_prior, field)
                new = float(np.abs(r_trial).max())
                if new < size:
                    break
                length *= SHRINK
            else:
                step = None
        if step is None:
            if size <= 10.0 * tolerance:
                break
            trial, r_trial, aim_trial, new = anderson(lp, r, log_prior, field)
            if not new < size:
                break
        lp, r, aim, size = trial, r_trial, aim_trial, new
    return lp, size


def newton_step(lp: Array, aim: Array, r: Array, jacobian: Jacobian) -> Array | None:
    """The step of Newton's method in log masses, limited; None if it cannot be taken."""
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


def anderson(lp: Array, r: Array, log_prior: Array, field: Field) -> tuple[Array, Array, Array, float]:
    """A few steps of Anderson acceleration of the damped fixed-point iteration; the best place seen."""
    places, errors = [lp], [r]
    best: tuple[Array, Array, Array, float] = (lp, r, lp - r, float(np.abs(r).max()))
    for _ in range(4 * DEPTH):
        if len(places) > 1:
            differences = np.array(errors[1:]) - np.array(errors[:-1])
            moves = np.array(places[1:]) - np.array(places[:-1])
            weights = np.linalg.lstsq(differences.T, errors[-1], rcond=1e-8)[0]
            step = -DAMPING * (errors[-1] - weights @ differences) - weights @ moves
        else:
            step = -DAMPING * errors[-1]
        here = normalised(places[-1] + np.clip(step, -MAX_STEP, MAX_STEP))
        error, aim = residual(here, log_prior, field)
        size = float(np.abs(error).max())
        if size < best[3]:
            best = (here, error, aim, size)
        places, errors = [*places[-DEPTH:], here], [*errors[-DEPTH:], error]
    return best


def two_cells(log_prior: Array, field: Field, start: Array) -> tuple[Array, float]:
    """The scalar root log(p / (1 - p)) = prior odds + v_1(p) - v_0(p), by bisection; that nearest to the start."""
    odds = float(log_prior[1] - log_prior[0])

    def gap(p: float) -> float:
        v = field(np.array([1.0 - p, p]))
        return math.log(p / (1.0 - p)) - odds - float(v[1] - v[0])

    near = normalised(start)
    p = min(max(math.exp(near[1]), LEAST_MASS), 1.0 - LEAST_MASS)
    value = gap(p)
    # walk from the start to the side where the sign changes: below it the gap ends up negative, above it positive
    a, b = p, p
    step = 0.01
    while True:
        if value > 0.0:
            a = max(a - step, LEAST_MASS)
            if gap(a) <= 0.0 or a == LEAST_MASS:
                break
            b = a
        else:
            b = min(b + step, 1.0 - LEAST_MASS)
            if gap(b) > 0.0 or b == 1.0 - LEAST_MASS:
                break
            a = b
        step *= 2.0
    for _ in range(60):
        middle = 0.5 * (a + b)
        if not a < middle < b:
            break
        if gap(middle) > 0.0:
            b = middle
        else:
            a = middle
    p = 0.5 * (a + b)
    return np.log(np.array([1.0 - p, p])), abs(b - a)
