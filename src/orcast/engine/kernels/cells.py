"""Compiled kernels on ordered cells: building them around an expert, and reading a forecast off them.

A forecast is a mass on each of `n` consecutive cells; cell `k` reaches from `left[k]` to `right[k]`, its mass
is spread evenly over it, and a cell of zero width is an atom.  An outcome on an edge belongs to the cell on its left,
unless an atom sits there.  Arrays in, arrays out; nothing is validated here.
"""

from __future__ import annotations

import numpy as np

from orcast.jit import entry_kernel, kernel
from orcast.jit.ieee import log, power, real_power

# Widths below this share of the interval are atoms: the expert says "exactly this value".
ATOM = 1e-12
# The innermost tail cell is this wide in units of the expert's 98% spread; or of its usual loss, where it claims next
# to no spread ("exactly this value"); but at least this share of the tail.
TAIL_SPREAD, TAIL_LOSS, TAIL_LEAST = 0.18, 0.3, 1e-4
NO_SPREAD = 0.05
# Outwards each cell holds this share of its neighbour's mass, or less where the widths grow fast, growth^-TAIL_POWER:
# so generous bounds do not leak into the mean and the variance.  No tail cell has less than TAIL_FLOOR.
TAIL_FALL, TAIL_POWER, TAIL_FLOOR = 0.6, 2.5, 1e-12


@kernel
def tail_edges(distance, first, out):
    """Distances of `len(out)` edges from the outer quantile: widths grow geometrically from `first` to fill.

    Returns the growth.
    """
    m = out.shape[0]
    share = first / distance
    if m == 1 or share >= 1.0 / m:
        for i in range(m):
            out[i] = distance * (i + 1) / m
        return 1.0
    # The growth r solves share * (r^m - 1) = r - 1; start right of the root, where Newton descends to it.
    r = real_power(share, -1.0 / (m - 1))
    for _ in range(30):
        grown = power(r, m)
        step = (share * (grown - 1.0) - (r - 1.0)) / (share * m * grown / r - 1.0)
        r -= step
        if abs(step) < 1e-12 * r:
            break
    scale = distance / (power(r, m) - 1.0)
    edge = 1.0
    for i in range(m - 1):
        edge *= r
        out[i] = scale * (edge - 1.0)
    out[m - 1] = distance
    return r


@kernel
def tail_fall(distance, first, atom, tail):
    """Fill the distances of a tail's edges; how fast its masses fall, with a minus if there is no room for a tail."""
    if distance <= atom:
        return -TAIL_FALL
    growth = tail_edges(distance, max(first, TAIL_LEAST * distance), tail)
    return min(TAIL_FALL, real_power(growth, -TAIL_POWER))


@entry_kernel
def build_cells(q, low, high, tail_cells, tail_mass, usual, left, right, mass, slots):
    """Cells at the expert's quantiles `q`, geometric tails, an atom at each bound; returns how many there are.

    `q` holds the quantiles at even steps between `tail_mass` and `1 - tail_mass`, `usual` is the usual loss of
    the expert.  Equal quantiles merge into one atom; `slots[i]` says in which cell the i-th unmerged cell ended up.
    """
    inner = q.shape[0] - 1
    side = tail_cells + 1
    total = inner + 2 * side
    atom = ATOM * (high - low)
    edges = np.empty(total + 1)
    tail = np.empty(tail_cells)
    spread = q[inner] - q[0]
    first = TAIL_SPREAD * spread if spread > NO_SPREAD * usual else TAIL_LOSS * usual
    fall_down = tail_fall(q[0] - low, first, atom, tail)
    for i in range(tail_cells):
        edges[tail_cells - i] = q[0] - tail[i] if fall_down > 0.0 else low
    for j in range(inner + 1):
        edges[side + j] = q[j]
    fall_up = tail_fall(high - q[inner], first, atom, tail)
    for i in range(tail_cells):
        edges[side + inner + 1 + i] = q[inner] + tail[i] if fall_up > 0.0 else high
    fall_down = abs(fall_down)
    fall_up = abs(fall_up)
    for k in range(total):
        # a rounding error inside a bound is on it: else an outcome on the bound would be in no cell
        edges[k] = low if k < 2 or edges[k] - low <= atom else high if high - edges[k] <= atom else edges[k]
    edges[total - 1] = high
    edges[total] = high
    floor = TAIL_FLOOR * side
    innermost_down = (tail_mass - floor) * (1.0 - fall_down) / (1.0 - power(fall_down, side))
    innermost_up = (tail_mass - floor) * (1.0 - fall_up) / (1.0 - power(fall_up, side))
    inner_mass = (1.0 - 2.0 * tail_mass) / inner
    n = 0
    last_was_atom = False
    end = low
    for k in range(total):
        if k < side:
            m = TAIL_FLOOR + innermost_down * power(fall_down, side - 1 - k)
        elif k < side + inner:
            m = inner_mass
        else:
            m = TAIL_FLOOR + innermost_up * power(fall_up, k - side - inner)
        if edges[k + 1] - end <= atom:
            if last_was_atom:
                mass[n - 1] += m
            else:
                left[n] = end
                right[n] = end
                mass[n] = m
                n += 1
            last_was_atom = True
        else:
            left[n] = end
            right[n] = edges[k + 1]
            mass[n] = m
            end = edges[k + 1]
            n += 1
            last_was_atom = False
        slots[k] = n - 1
    return n


@kernel
def locate(y, left, right, n):
    """The cell of an outcome: on an edge the left one, at an atom the atom."""
    a = 0
    b = n - 1
    while a < b:
        middle = (a + b) // 2
        if right[middle] >= y:
            b = middle
        else:
            a = middle + 1
    if a + 1 < n and right[a + 1] == y and left[a + 1] == y:
        a += 1
    return a


@kernel
def place(y, k, left, right):
    """Where in its cell the outcome lies, from 0 to 1 (an atom counts as the middle)."""
    width = right[k] - left[k]
    return min(max((y - left[k]) / width, 0.0), 1.0) if width > 0.0 else 0.5


@kernel
def cut_cells(places, n, left, right, mass, slots):
    """Cut the cells at given places, each part with its share of the mass; returns how many there are now."""
    for i in range(places.shape[0]):
        y = places[i]
        k = locate(y, left, right, n)
        if not left[k] < y < right[k]:
            continue
        share = (y - left[k]) / (right[k] - left[k])
        for j in range(n, k + 1, -1):
            left[j] = left[j - 1]
            right[j] = right[j - 1]
            mass[j] = mass[j - 1]
        left[k + 1] = y
        right[k + 1] = right[k]
        right[k] = y
        mass[k + 1] = mass[k] * (1.0 - share)
        mass[k] *= share
        for j in range(slots.shape[0]):
            if slots[j] > k:
                slots[j] += 1
        n += 1
    return n


@entry_kernel
def rebin(n_from, left_from, right_from, mass_from, n, left, right, out):
    """Masses of one set of cells carried over to another on the same interval, evenly within each source cell."""
    for k in range(n):
        out[k] = 0.0
    k = 0
    for j in range(n_from):
        a = left_from[j]
        b = right_from[j]
        if a == b:
            out[locate(a, left, right, n)] += mass_from[j]
            continue
        density = mass_from[j] / (b - a)
        while k > 0 and left[k] > a:
            k -= 1
        while k < n - 1 and right[k] <= a:
            k += 1
        i = k
        while True:
            share = min(b, right[i]) - max(a, left[i])
            if share > 0.0:
                out[i] += density * share
            if right[i] >= b or i == n - 1:
                break
            i += 1
        k = i


@kernel
def read_quantiles(n, left, right, mass, levels, out):
    """Quantiles at increasing levels, linear within cells."""
    k = 0
    below = 0.0
    for i in range(levels.shape[0]):
        while k < n - 1 and below + mass[k] < levels[i]:
            below += mass[k]
            k += 1
        share = (levels[i] - below) / mass[k] if mass[k] > 0.0 else 1.0
        out[i] = left[k] + min(max(share, 0.0), 1.0) * (right[k] - left[k])


@kernel
def crps(y, k, n, left, right, mass):
    """Exact continuous ranked probability score of the cell forecast, for an outcome in cell k."""
    below = 0.0
    total = 0.0
    for j in range(n):
        width = right[j] - left[j]
        after = below + mass[j]
        if j < k:
            total += width * (below * below + below * after + after * after)
        elif j > k:
            a = 1.0 - below
            b = 1.0 - after
            total += width * (a * a + a * b + b * b)
        elif width > 0.0:
            s = (y - left[j]) / width
            here = below + s * mass[j]
            a = 1.0 - here
            b = 1.0 - after
            total += s * width * (below * below + below * here + here * here)
            total += (1.0 - s) * width * (a * a + a * b + b * b)
        below = after
    return total / 3.0


@kernel
def expected_crps(n, left, right, mass):
    """What the forecast itself expects its CRPS to be: the integral of F (1 - F)."""
    below = 0.0
    total = 0.0
    for j in range(n):
        after = below + mass[j]
        squares = (below * below + below * after + after * after) / 3.0
        total += (right[j] - left[j]) * (0.5 * (below + after) - squares)
        below = after
    return total


@kernel
def mean_of(n, left, right, mass):
    """Mean of the cell forecast."""
    total = 0.0
    for j in range(n):
        total += mass[j] * 0.5 * (left[j] + right[j])
    return total


@kernel
def power_mean(a, b, order):
    """Mean of y^order for y uniform on [a, b]."""
    if order == 1:
        return 0.5 * (a + b)
    if order == 2:
        return (a * a + a * b + b * b) / 3.0
    total = 0.0
    for i in range(order + 1):
        total += power(a, i) * power(b, order - i)
    return total / (order + 1)


@kernel
def log_masses(n, mass, out):
    """Logarithms of the masses, guarded against zero."""
    for k in range(n):
        out[k] = log(max(mass[k], 1e-300))
