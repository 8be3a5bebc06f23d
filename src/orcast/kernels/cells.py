"""Ordered cells: cells around quantiles, masses on other cells, and numbers read from a forecast on cells.

A forecast is a mass on each of `n` consecutive cells. Cell `k` reaches from `left[k]` to `right[k]`, and its mass is
spread evenly over it; a cell of zero width is an atom. An outcome on an edge belongs to the cell on its left, unless
there is an atom at the edge.
"""

import numpy as np

from orcast.constants import TAIL_FALL

# Widths below this share of the interval are atoms: the quantiles coincide.
ATOM = 1e-12
# Width of the innermost tail cell in units of the 98% spread of the quantiles, or of the usual loss where the spread is
# below NO_SPREAD times this loss; and its least share of the tail.
TAIL_SPREAD, TAIL_LOSS, TAIL_LEAST = 0.18, 0.3, 1e-4
NO_SPREAD = 0.05
# Outwards each cell holds this share of its neighbour's mass, or growth^-TAIL_POWER where that is less, so that wide
# bounds have little effect on the mean and the variance. No tail cell has less mass than TAIL_FLOOR.
TAIL_POWER, TAIL_FLOOR = 2.5, 1e-12


def tail_edges(distance, first, out, m):
    """Fill the distances of m edges from the outer quantile; widths grow geometrically. Return the growth."""
    share = first / distance
    if m == 1 or share >= 1.0 / m:
        for i in range(m):
            out[i] = distance * (i + 1) / m
        return 1.0
    # The growth r solves share * (r^m - 1) = r - 1; Newton's method descends to it from a start right of the root.
    r = real_power(share, -1.0 / (m - 1))
    for _ in range(30):
        grown = power(r, m)
        step = (share * (grown - 1.0) - (r - 1.0)) / (share * m * grown / r - 1.0)
        r -= step
        if fabs(step) < 1e-12 * r:
            break
    scale = distance / (power(r, m) - 1.0)
    edge = 1.0
    for i in range(m - 1):
        edge *= r
        out[i] = scale * (edge - 1.0)
    out[m - 1] = distance
    return r


def tail_fall(distance, first, atom, tail, m):
    """Fill the distances of a tail's edges; return the decay of its masses, negative if there is no room for a tail."""
    if distance <= atom:
        return -TAIL_FALL
    growth = tail_edges(distance, max(first, TAIL_LEAST * distance), tail, m)
    return min(TAIL_FALL, real_power(growth, -TAIL_POWER))


def build_cells(q, count, low, high, tail_cells, tail_mass, usual, left, right, mass, w):
    """Build cells at quantiles, with geometric tails and an atom at each bound; return their number.

    `q` has the quantiles at even steps between `tail_mass` and `1 - tail_mass`; `usual` is the expert's usual loss.
    Equal quantiles are merged into one atom.
    """
    inner = count - 1
    side = tail_cells + 1
    total = inner + 2 * side
    atom = ATOM * (high - low)
    start = mark(w)
    edges = take(w, total + 1)
    tail = take(w, tail_cells)
    spread = q[inner] - q[0]
    first = TAIL_SPREAD * spread if spread > NO_SPREAD * usual else TAIL_LOSS * usual
    fall_down = tail_fall(q[0] - low, first, atom, tail, tail_cells)
    for i in range(tail_cells):
        edges[tail_cells - i] = q[0] - tail[i] if fall_down > 0.0 else low
    for j in range(inner + 1):
        edges[side + j] = q[j]
    fall_up = tail_fall(high - q[inner], first, atom, tail, tail_cells)
    for i in range(tail_cells):
        edges[side + inner + 1 + i] = q[inner] + tail[i] if fall_up > 0.0 else high
    fall_down = fabs(fall_down)
    fall_up = fabs(fall_up)
    edges[0] = low
    edges[1] = low
    for k in range(2, total):
        # an edge within rounding of a bound is put on it; otherwise an outcome on the bound would be in no cell
        if edges[k] - low <= atom:
            edges[k] = low
        elif high - edges[k] <= atom:
            edges[k] = high
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
    release(w, start)
    return n


def locate(y, left, right, n):
    """Index of the cell of an outcome: on an edge the left one, at an atom the atom."""
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


def cut_cells(places, count, n, left, right, mass):
    """Cut the cells at given places, each part with its share of the mass; return the new number of cells."""
    for i in range(count):
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
        n += 1
    return n


def rebin(n_from, left_from, right_from, mass_from, n, left, right, out):
    """Masses on other cells of the same interval; the mass of each source cell is spread evenly over it."""
    for k in range(n):
        out[k] = 0.0
    at = 0
    for j in range(n_from):
        a = left_from[j]
        b = right_from[j]
        if a == b:
            out[locate(a, left, right, n)] += mass_from[j]
            continue
        density = mass_from[j] / (b - a)
        while at > 0 and left[at] > a:
            at -= 1
        while at < n - 1 and right[at] <= a:
            at += 1
        while True:
            share = min(b, right[at]) - max(a, left[at])
            if share > 0.0:
                out[at] += density * share
            if right[at] >= b or at == n - 1:
                break
            at += 1


def crps(y, k, n, left, right, mass):
    """Exact continuous ranked probability score of a forecast on cells, for an outcome in cell k."""
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


def expected_crps(n, left, right, mass):
    """Expected CRPS of a forecast under itself: the integral of F (1 - F)."""
    below = 0.0
    total = 0.0
    for j in range(n):
        after = below + mass[j]
        squares = (below * below + below * after + after * after) / 3.0
        total += (right[j] - left[j]) * (0.5 * (below + after) - squares)
        below = after
    return total


def mean_of(n, left, right, mass):
    """Mean of a forecast on cells."""
    total = 0.0
    for j in range(n):
        total += mass[j] * 0.5 * (left[j] + right[j])
    return total


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


def log_masses(n, mass, out):
    """Logarithms of the masses; a mass of zero counts as 1e-300."""
    for k in range(n):
        out[k] = log(max(mass[k], 1e-300))


# --- entries from Python: the same on numpy arrays


def cells_of(quantiles, low, high, tail_cells, tail_mass):
    """Left and right ends and masses of the cells of quantiles within finite bounds."""
    w, count = workspace(), len(quantiles)
    total = count + 2 * tail_cells + 1
    left, right, mass = np.empty(total), np.empty(total), np.empty(total)
    lefts, rights, masses, q = numbers_of(left), numbers_of(right), numbers_of(mass), readable_of(quantiles)
    n = build_cells(q, count, low, high, tail_cells, tail_mass, 0.0, lefts, rights, masses, w)
    return left[:n].copy(), right[:n].copy(), mass[:n].copy()


def rebin_arrays(n_from, left_from, right_from, mass_from, n, left, right, out):
    """Masses on other cells of the same interval."""
    lefts, rights, masses = readable_of(left_from), readable_of(right_from), readable_of(mass_from)
    rebin(n_from, lefts, rights, masses, n, readable_of(left), readable_of(right), numbers_of(out))
