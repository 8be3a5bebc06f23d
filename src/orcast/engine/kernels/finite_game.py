"""Compiled kernels of the last layer on finite spaces: the logit equilibrium and its certificate.

With hat functions w_v on an even grid, an event j (the outcome 1, or each label) has the payoffs
w_v(p_j) (p_j - 1{y = j}) and w_v(x_j) (p_j - 1{y = j}), the outcome 1 also p - y, and each expert, one-sided,
c (Brier(p, y) - Brier(x, y)).  For what the ledger owes S, the equilibrium around the prior m is

    log p_c = log m_c + v_c(p) / kappa + const,      v_c(p) = <S_+, payoff(p, c)>

The mean of v under p is at most 0, so max v is at most kappa times a constant: lowering kappa ends at a forecast whose
certificate holds.  But for a constant and the units of the regrets, v_c depends on p_c alone.  So two cells have a
scalar root, which exists for every ledger.  For more cells a Newton step costs O(k); where Newton does not converge, a
bisection on the common value of log p_c - log m_c - v_c / kappa finds an equilibrium, unless two cells jump at once;
the certificate is that of the forecast in any case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orcast.constants import (
    BINARY_DELAY_TEMPERATURE,
    DELAY_TEMPERATURE,
    MAX_STEP,
    MIN_SLOPE,
    SHRINK,
    STRICT_STEPS,
    TRUSTED,
)
from orcast.engine.kernels.records import Array
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import ceil, exp, floor, log, real_power, sqrt
from orcast.ledger import ROUNDING
from orcast.payoffs.hat_kernels import hat, hat_slope

# The largest log odds of a forecast of two cells at a temperature, and the least mass of one cell of several.
MOST_PLAYED, LEAST_MASS = 30.0, 1e-300
HALVINGS, REFINEMENTS = 40, 2
TOLERANCE, STEPS, NEWTON_STEPS, TRIES = 1e-10, 60, 12, 6
# How often the units of the regrets are taken anew in a bisection, and when they have settled.
UNIT_PASSES, SETTLED = 4, 1e-6
# The ledger forgives this much rounding; what is played must not count on all of it.
SURE = 0.1 * ROUNDING


class FiniteGame(NamedTuple):
    """What the last layer plays on: what the ledger owes, the experts, and the prior."""

    owed: Array  # on the hats of the forecast, a column an event
    first: int  # the cell of the first event
    fixed: Array  # the pull on each event that does not depend on p
    fixed_size: Array  # the factor of the squared error of each event, of the payoffs that do not depend on p
    hat_factor: float  # squared weight times the squared norm of the context, of the hats of the forecast
    owed_regret: Array  # on the regret against each expert
    regret_factor: float
    experts: Array  # masses, a row each, nan where missing
    units: Array  # of their regrets; 0 where missing
    brier: float  # the Brier score is this times |p - e_y|^2
    prior: Array  # masses
    odds: float  # log odds of the second cell in the prior


@kernel
def sigmoid(z):
    """The probability with log odds z."""
    if z >= 0.0:
        return 1.0 / (1.0 + exp(-z))
    e = exp(z)
    return e / (1.0 + e)


@kernel
def squares_ahead(p, x):
    """|p|^2 - |x|^2."""
    total = 0.0
    for c in range(p.shape[0]):
        total += (p[c] - x[c]) * (p[c] + x[c])
    return total


@kernel
def regret_scale(p, x, unit, brier):
    """The unit of the regret of p against x, or less where the regret could exceed 1."""
    ahead = squares_ahead(p, x)
    most = 1.0 / unit
    for c in range(p.shape[0]):
        most = max(most, brier * abs(ahead - 2.0 * (p[c] - x[c])))
    return 1.0 / most


@kernel
def regret_pulls(game, p, eager, pulls):
    """The pull of the regret against each expert, with the units that p has; 0 where nothing is owed.

    `eager` multiplies it: it points back to the expert and cannot overshoot, so delay need not soften it.
    """
    for e in range(pulls.shape[0]):
        pulls[e] = 0.0
        if game.owed_regret[e] > 0.0 and game.units[e] > 0.0:
            scale = regret_scale(p, game.experts[e], game.units[e], game.brier)
            pulls[e] = 2.0 * game.brier * eager * game.owed_regret[e] * scale


@kernel
def interpolate(table, j, at):
    """A column of a function given at the vertices, taken between them."""
    k, share = hat(at, table.shape[0])
    return (1.0 - share) * table[k, j] + share * table[k + 1, j]


@kernel
def cell_field(game, pulls, c, at):
    """v_c for a mass of the cell, up to a constant."""
    total = 0.0
    if c >= game.first:
        total = -(interpolate(game.owed, c - game.first, at) + game.fixed[c - game.first])
    for e in range(pulls.shape[0]):
        if pulls[e] > 0.0:
            total += pulls[e] * (game.experts[e, c] - at)
    return total


@kernel
def cell_slope(game, pulls, c, at):
    """The derivative of v_c by the mass of the cell, that of the regrets' units left out."""
    total = 0.0
    if c >= game.first:
        vertices = game.owed.shape[0]
        k, _ = hat(at, vertices)
        j = c - game.first
        total = -(game.owed[k + 1, j] - game.owed[k, j]) * hat_slope(at, vertices)
    for e in range(pulls.shape[0]):
        total -= pulls[e]
    return total


# --- two cells: a scalar root


@kernel
def advantage(game, q, eager, p, pulls):
    """v_1 - v_0 where the second cell has the mass q: the pull on the log odds; fills p and the regrets' pulls."""
    p[0] = 1.0 - q
    p[1] = q
    regret_pulls(game, p, eager, pulls)
    return cell_field(game, pulls, 1, q) - cell_field(game, pulls, 0, 1.0 - q)


@kernel
def bracket(game, towards, kappa, eager, p, pulls):
    """The first stretch between vertices, from the prior on in the direction of the pull, that holds a root."""
    vertices = game.owed.shape[0]
    near = sigmoid(game.odds)
    if towards > 0.0:
        k = floor(near * vertices - 0.5) + 1
    else:
        k = ceil(near * vertices - 0.5) - 1
    while 0 <= k < vertices:
        far = (k + 0.5) / vertices
        if not 0.0 < far < 1.0:
            break
        value = advantage(game, far, eager, p, pulls)
        if kappa > 0.0:
            value -= kappa * (log(far / (1.0 - far)) - game.odds)
        if value * towards <= 0.0:
            return near, far
        near = far
        k += 1 if towards > 0.0 else -1
    return near, 1.0 if towards > 0.0 else 0.0


@kernel
def root(game, kappa, eager, p, pulls):
    """The equilibrium nearest to the prior on two cells, for kappa > 0: the mass of the second."""
    m = sigmoid(game.odds)
    pull = advantage(game, m, eager, p, pulls)
    if pull == 0.0:
        return m
    towards = 1.0 if pull > 0.0 else -1.0
    near, far = bracket(game, towards, kappa, eager, p, pulls)
    a = game.odds if near == m else log(near / (1.0 - near))
    b = log(far / (1.0 - far)) if 0.0 < far < 1.0 else towards * MOST_PLAYED
    if (b - a) * towards <= 0.0:
        return sigmoid(a)
    z = a
    for n in range(STEPS):
        q = sigmoid(z)
        value = z - game.odds - advantage(game, q, eager, p, pulls) / kappa
        if value * towards < 0.0:
            a = z
        else:
            b = z
        slope = cell_slope(game, pulls, 1, q) + cell_slope(game, pulls, 0, 1.0 - q)
        rise = 1.0 - slope * q * (1.0 - q) / kappa
        then = z - value / rise if rise > 0.0 else np.inf
        if abs(then - z) < TOLERANCE:
            # converged, whatever side of the root rounding puts it on: the bracket would lead to another root
            return sigmoid(then)
        if n >= NEWTON_STEPS or not min(a, b) < then < max(a, b):
            then = 0.5 * (a + b)
        moved = abs(then - z)
        z = then
        if moved < TOLERANCE:
            break
    return sigmoid(z)


@kernel
def strict_root(game, p, pulls):
    """The limit kappa = 0: the zero of v_1 - v_0 nearest to the prior, or the end of [0, 1] that it points to."""
    m = sigmoid(game.odds)
    pull = advantage(game, m, 1.0, p, pulls)
    if pull == 0.0:
        return m
    towards = 1.0 if pull > 0.0 else -1.0
    a, b = bracket(game, towards, 0.0, 1.0, p, pulls)
    if advantage(game, b, 1.0, p, pulls) * towards >= 0.0:
        return b
    for _ in range(STEPS):
        q = 0.5 * (a + b)
        if advantage(game, q, 1.0, p, pulls) * towards > 0.0:
            a = q
        else:
            b = q
    return 0.5 * (a + b)


# --- more cells: Newton, or a bisection on the level that all cells share


@kernel
def residual(game, kappa, eager, log_prior, lp, p, pulls, r):
    """Normalise lp; fill masses and the centred residual of the equilibrium; return its largest size."""
    top = lp[0]
    for c in range(1, lp.shape[0]):
        top = max(top, lp[c])
    total = 0.0
    for c in range(lp.shape[0]):
        p[c] = exp(lp[c] - top)
        total += p[c]
    shift = top + log(total)
    for c in range(lp.shape[0]):
        lp[c] -= shift
        p[c] /= total
    regret_pulls(game, p, eager, pulls)
    mean = 0.0
    for c in range(lp.shape[0]):
        r[c] = lp[c] - log_prior[c] - cell_field(game, pulls, c, p[c]) / kappa
        mean += p[c] * r[c]
    worst = 0.0
    for c in range(lp.shape[0]):
        r[c] -= mean
        worst = max(worst, abs(r[c]))
    return worst


@kernel
def newton(game, kappa, eager, log_prior, p, pulls):
    """The equilibrium by damped Newton steps from the masses p, in place; returns the residual."""
    cells = p.shape[0]
    lp, start, r, step = np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells)
    for c in range(cells):
        lp[c] = log(max(p[c], LEAST_MASS))
    size = residual(game, kappa, eager, log_prior, lp, p, pulls, r)
    for _ in range(STRICT_STEPS):
        if size <= TOLERANCE:
            break
        # the matrix is diagonal but for the constant, which keeps the masses at a sum of one
        above = 0.0
        below = 0.0
        for c in range(cells):
            step[c] = 1.0 / max(1.0 - cell_slope(game, pulls, c, p[c]) * p[c] / kappa, MIN_SLOPE)
            above += p[c] * r[c] * step[c]
            below += p[c] * step[c]
        for c in range(cells):
            start[c] = lp[c]
            step[c] = min(max((above / below - r[c]) * step[c], -MAX_STEP), MAX_STEP)
        length = 1.0
        new = np.inf
        for _ in range(TRIES):
            for c in range(cells):
                lp[c] = start[c] + length * step[c]
            new = residual(game, kappa, eager, log_prior, lp, p, pulls, r)
            if new < size:
                break
            length *= SHRINK
        if not new < size:
            break
        size = new
    return size


@kernel
def level_of(game, kappa, pulls, c, at):
    """kappa log(p_c / m_c) - v_c at a mass of the cell: an equilibrium has the same in all cells."""
    return kappa * log(max(at, LEAST_MASS) / game.prior[c]) - cell_field(game, pulls, c, at)


@kernel
def mass_at(game, kappa, pulls, c, level):
    """The mass of a cell at a level, the nearest to the prior; it never falls as the level rises."""
    vertices = game.owed.shape[0]
    near = game.prior[c]
    up = level_of(game, kappa, pulls, c, near) < level
    far = 1.0 if up else LEAST_MASS
    k = floor(near * vertices - 0.5) + 1 if up else ceil(near * vertices - 0.5) - 1
    while 0 <= k < vertices:
        middle = (k + 0.5) / vertices
        if (level_of(game, kappa, pulls, c, middle) < level) != up:
            far = middle
            break
        near = middle
        k += 1 if up else -1
    if (level_of(game, kappa, pulls, c, far) < level) == up:
        return 1.0 if up else 0.0
    a, b = log(near), log(far)
    for _ in range(STEPS):
        middle = 0.5 * (a + b)
        if (level_of(game, kappa, pulls, c, exp(middle)) < level) == up:
            a = middle
        else:
            b = middle
    return exp(b)


@kernel
def masses_at(game, kappa, pulls, level, given, mass, p):
    """The masses of all cells at a level, but for one cell that has a given mass; their sum."""
    total = 0.0
    for c in range(p.shape[0]):
        p[c] = mass if c == given else mass_at(game, kappa, pulls, c, level)
        total += p[c]
    return total


@kernel
def balance(game, kappa, pulls, p):
    """The equilibrium for fixed units of the regrets: the level at which the masses add up to one.

    At a jump of the sum one cell has several masses at that level; between them its own mass is what is searched for.
    """
    cells = p.shape[0]
    low = np.inf
    high = -np.inf
    for c in range(cells):
        level = level_of(game, kappa, pulls, c, game.prior[c])
        low = min(low, level)
        high = max(high, level)
    for _ in range(STEPS):
        level = 0.5 * (low + high)
        if masses_at(game, kappa, pulls, level, -1, 0.0, p) < 1.0:
            low = level
        else:
            high = level
    below = np.empty(cells)
    masses_at(game, kappa, pulls, low, -1, 0.0, below)
    total = masses_at(game, kappa, pulls, high, -1, 0.0, p)
    jump = 0
    for c in range(cells):
        if p[c] - below[c] > p[jump] - below[jump]:
            jump = c
    if p[jump] - below[jump] > TOLERANCE:
        a, b = below[jump], p[jump]
        for _ in range(STEPS):
            mass = 0.5 * (a + b)
            level = level_of(game, kappa, pulls, jump, mass)
            total = masses_at(game, kappa, pulls, level, jump, mass, p)
            if total < 1.0:
                a = mass
            else:
                b = mass
    for c in range(cells):
        p[c] /= total


@kernel
def equilibrium(game, kappa, eager, p, pulls):
    """Fill p with the equilibrium at a temperature, around the prior."""
    if p.shape[0] == 2:
        q = root(game, kappa, eager, p, pulls)
        p[0] = 1.0 - q
        p[1] = q
        return
    log_prior = np.empty(p.shape[0])
    for c in range(p.shape[0]):
        p[c] = game.prior[c]
        log_prior[c] = log(p[c])
    if newton(game, kappa, eager, log_prior, p, pulls) <= TRUSTED:
        return
    before = np.empty(pulls.shape[0])
    for _ in range(UNIT_PASSES):
        before[:] = pulls
        balance(game, kappa, pulls, p)
        regret_pulls(game, p, eager, pulls)
        change = 0.0
        for e in range(pulls.shape[0]):
            change = max(change, abs(pulls[e] - before[e]) - SETTLED * before[e])
        if change <= 0.0:
            break


# --- the certificate, and the temperature that it allows


@kernel
def certify(game, p):
    """The largest 2 <S_+, payoff> + ||payoff||^2 and the largest ||payoff||^2 over all outcomes, exact."""
    events, experts = game.fixed.shape[0], game.owed_regret.shape[0]
    # what an outcome changes is its own error p_c - 1 instead of p_c
    inner = 0.0
    square = 0.0
    pulls, sizes = np.empty(events), np.empty(events)
    for j in range(events):
        at = p[game.first + j]
        _, share = hat(at, game.owed.shape[0])
        pulls[j] = interpolate(game.owed, j, at) + game.fixed[j]
        sizes[j] = game.hat_factor * (share * share + (1.0 - share) * (1.0 - share)) + game.fixed_size[j]
        inner += pulls[j] * at
        square += sizes[j] * at * at
    scales, ahead = np.zeros(experts), np.zeros(experts)
    for e in range(experts):
        if game.units[e] > 0.0:
            scales[e] = game.brier * regret_scale(p, game.experts[e], game.units[e], game.brier)
            ahead[e] = squares_ahead(p, game.experts[e])
    linear = -np.inf
    bound = 0.0
    for c in range(p.shape[0]):
        along = inner
        size = square
        if c >= game.first:
            j = c - game.first
            along -= pulls[j]
            size += sizes[j] * (1.0 - 2.0 * p[c])
        for e in range(experts):
            if scales[e] > 0.0:
                regret = scales[e] * (ahead[e] - 2.0 * (p[c] - game.experts[e, c]))
                along += max(game.owed_regret[e], 0.0) * regret
                size += game.regret_factor * regret * regret
        linear = max(linear, 2.0 * along + size)
        bound = max(bound, size)
    return linear, bound


@kernel_part
def allows(linear, bound, free, budget):
    """Whether a certificate holds with the slack that is free."""
    return linear - bound <= free + SURE * (budget + bound)


@kernel
def play(game, kappa, pending, free, budget, p):
    """Fill the forecast; return the temperature used (0: strict) and its certificate: `linear` and `bound`.

    The equilibrium at the usual temperature, or at a lower one where the slack that is `free` does not allow it.
    """
    two = p.shape[0] == 2
    soft = real_power(1.0 + pending, BINARY_DELAY_TEMPERATURE if two else DELAY_TEMPERATURE)
    pulls = np.empty(game.owed_regret.shape[0])
    warm = kappa * soft
    equilibrium(game, warm, soft, p, pulls)
    linear, bound = certify(game, p)
    if allows(linear, bound, free, budget):
        return warm, linear, bound
    cool = warm
    held = False
    for _ in range(HALVINGS):
        cool *= 0.5
        equilibrium(game, cool, 1.0, p, pulls)
        linear, bound = certify(game, p)
        if allows(linear, bound, free, budget):
            held = True
            break
        warm = cool
    if not held:
        if two:
            q = strict_root(game, p, pulls)
            p[0] = 1.0 - q
            p[1] = q
            linear, bound = certify(game, p)
        return 0.0, linear, bound
    trial = np.empty(p.shape[0])
    for _ in range(REFINEMENTS):
        middle = sqrt(warm * cool)
        equilibrium(game, middle, 1.0, trial, pulls)
        high, size = certify(game, trial)
        if allows(high, size, free, budget):
            p[:] = trial
            cool, linear, bound = middle, high, size
        else:
            warm = middle
    return cool, linear, bound
