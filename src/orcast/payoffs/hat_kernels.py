"""Compiled kernels of payoffs with hat functions; the slow twin is `payoffs.calibration.hats`."""

from __future__ import annotations

import numpy as np

from orcast.jit import entry_kernel, kernel
from orcast.jit.ieee import floor

# How steeply one hat function gives way to the next: 1 is linear interpolation between their middles, larger values
# have flatter tops.  (Hats that only touch their middle leave the rest of a bin to its neighbours: what is kept small
# would not be what a reliability diagram shows.)
STEEPNESS = 2.0


@kernel
def hat(at, grid):
    """The hat that a point of [0, 1] has (partly) left, and the share of the next one.

    Hat v has the middle (v + 1/2) / grid.  Hats have flat tops and add up to one: from one middle to the next, the
    share goes from 0 to 1 over the inner part 1 / STEEPNESS of the way, as it would at the soft edge of a bin; as
    3 u^2 - 2 u^3, so that Newton's method meets no kinks.
    """
    place = min(max(at, 0.0), 1.0) * grid - 0.5
    k = min(max(int(floor(place)), 0), grid - 2)
    u = min(max(0.5 + STEEPNESS * (place - k - 0.5), 0.0), 1.0)
    return k, u * u * (3.0 - 2.0 * u)


@kernel
def hat_slope(at, grid):
    """The derivative of that share."""
    place = min(max(at, 0.0), 1.0) * grid - 0.5
    k = min(max(int(floor(place)), 0), grid - 2)
    u = min(max(0.5 + STEEPNESS * (place - k - 0.5), 0.0), 1.0)
    return 6.0 * u * (1.0 - u) * STEEPNESS * grid


@kernel
def chances(witness, p, q):
    """The probability of each event."""
    for j in range(witness.shape[0]):
        total = 0.0
        for k in range(p.shape[0]):
            total += witness[j, k] * p[k]
        q[j] = total


@entry_kernel
def event_field(s, witness, p):
    """sum_j s_j(q_j) (q_j - w_jk), with the ledgers s_j interpolated by the hats."""
    events, cells = witness.shape
    q = np.empty(events)
    chances(witness, p, q)
    out = np.zeros(cells)
    for j in range(events):
        left, share = hat(q[j], s.shape[0])
        pull = (1.0 - share) * s[left, j] + share * s[left + 1, j]
        for k in range(cells):
            out[k] += pull * (q[j] - witness[j, k])
    return out


@entry_kernel
def event_jacobian(s, witness, p):
    """Its derivative by the masses through the interpolated ledgers."""
    events, cells = witness.shape
    q = np.empty(events)
    chances(witness, p, q)
    out = np.zeros((cells, cells))
    for j in range(events):
        left, _ = hat(q[j], s.shape[0])
        slope = (s[left + 1, j] - s[left, j]) * hat_slope(q[j], s.shape[0])
        if slope == 0.0:
            continue
        for k in range(cells):
            pull = slope * (q[j] - witness[j, k])
            for i in range(cells):
                out[k, i] += pull * witness[j, i]
    return out


@entry_kernel
def event_assess(s, factor, witness, p):
    """For an outcome in each cell, 2 <s, payoff> + factor ||payoff||^2 and factor ||payoff||^2."""
    events, cells = witness.shape
    q = np.empty(events)
    chances(witness, p, q)
    linear = np.zeros(cells)
    square = np.zeros(cells)
    for j in range(events):
        left, share = hat(q[j], s.shape[0])
        pull = (1.0 - share) * s[left, j] + share * s[left + 1, j]
        size = factor * ((1.0 - share) * (1.0 - share) + share * share)
        for k in range(cells):
            error = q[j] - witness[j, k]
            norm = size * error * error
            square[k] += norm
            linear[k] += 2.0 * pull * error + norm
    return linear, square
