"""Hat functions of probabilities, and the payoffs of events; `payoffs.cell_payoffs` has the same in numpy."""

import cython
import numpy as np

# Steepness of the transition from one hat function to the next: 1 is linear interpolation between their middles, larger
# values have flatter tops. (With hats that only touch their middle, the rest of a bin belongs to its neighbours, and
# the calibration error would not be that of a reliability diagram.)
STEEPNESS = STEEP = 2.0


def hat(at, grid):
    """Hat that a point of [0, 1] has (partly) left, and the share of the next one.

    Hat v has the middle (v + 1/2) / grid. Hats have flat tops and add up to one: from one middle to the next, the
    share goes from 0 to 1 over the inner part 1 / STEEPNESS of the way, as at the soft edge of a bin; as
    3 u^2 - 2 u^3, so that Newton's method meets no kinks.
    """
    place = min(max(at, 0.0), 1.0) * grid - 0.5
    k = int(floor(place))
    k = min(max(k, 0), grid - 2)
    u = min(max(0.5 + STEEP * (place - k - 0.5), 0.0), 1.0)
    return k, u * u * (3.0 - 2.0 * u)


def hat_slope(at, grid):
    """Derivative of that share."""
    place = min(max(at, 0.0), 1.0) * grid - 0.5
    k = int(floor(place))
    k = min(max(k, 0), grid - 2)
    u = min(max(0.5 + STEEP * (place - k - 0.5), 0.0), 1.0)
    return 6.0 * u * (1.0 - u) * STEEP * grid


def between(nodes, count, at):
    """Node on the left of a point, and the share of the next one, which is linear from node to node."""
    left, right = 0, count - 1
    while right - left > 1:
        middle = (left + right) // 2
        if nodes[middle] <= at:
            left = middle
        else:
            right = middle
    share = (at - nodes[left]) / (nodes[right] - nodes[left])
    return left, min(max(share, 0.0), 1.0)


def chances(witness, events, p, cells, q):
    """Probability of each event."""
    for j in range(events):
        total = 0.0
        for k in range(cells):
            total += witness[j * cells + k] * p[k]
        q[j] = total


def fill_field(s, grid, witness, events, p, cells, out, w):
    """Fill sum_j s_j(q_j) (q_j - w_jk)."""
    m = mark(w)
    q = take(w, events)
    chances(witness, events, p, cells, q)
    for k in range(cells):
        out[k] = 0.0
    for j in range(events):
        left, share = hat(q[j], grid)
        pull = (1.0 - share) * s[left * events + j] + share * s[(left + 1) * events + j]
        for k in range(cells):
            out[k] += pull * (q[j] - witness[j * cells + k])
    release(w, m)


def fill_jacobian(s, grid, witness, events, p, cells, out, w):
    """Fill the derivative of the field by the masses."""
    m = mark(w)
    q = take(w, events)
    chances(witness, events, p, cells, q)
    for i in range(cells * cells):
        out[i] = 0.0
    for j in range(events):
        left, _ = hat(q[j], grid)
        slope = (s[(left + 1) * events + j] - s[left * events + j]) * hat_slope(q[j], grid)
        if slope == 0.0:
            continue
        for k in range(cells):
            pull = slope * (q[j] - witness[j * cells + k])
            for i in range(cells):
                out[k * cells + i] += pull * witness[j * cells + i]
    release(w, m)


def fill_assessment(s, grid, factor, witness, events, p, cells, linear, square, w):
    """Fill 2 <s, payoff> + factor ||payoff||^2 and factor ||payoff||^2 for an outcome in each cell."""
    m = mark(w)
    q = take(w, events)
    chances(witness, events, p, cells, q)
    for k in range(cells):
        linear[k] = 0.0
        square[k] = 0.0
    for j in range(events):
        left, share = hat(q[j], grid)
        pull = (1.0 - share) * s[left * events + j] + share * s[(left + 1) * events + j]
        size = factor * ((1.0 - share) * (1.0 - share) + share * share)
        for k in range(cells):
            error = q[j] - witness[j * cells + k]
            norm = size * error * error
            square[k] += norm
            linear[k] += 2.0 * pull * error + norm
    release(w, m)


# --- entry points: 1-d arrays; `s` has all events of a vertex together, `witness` all cells of an event


def event_count(s, grid, witness, p):
    """Number of events; refuses arrays whose sizes do not fit together."""
    events = len(witness) // len(p)
    if grid < 2 or len(witness) != events * len(p) or len(s) != grid * events:
        raise ValueError(f"expected sizes that fit together, got {len(s)}, {grid}, {len(witness)} and {len(p)}")
    return events


def event_field(s, grid, witness, p):
    """sum_j s_j(q_j) (q_j - w_jk), with cumulative payoffs s_j interpolated by the hats."""
    cells = len(p)
    events = event_count(s, grid, witness, p)
    out = np.empty(cells)
    cumulative, seen, masses = readable_of(s), readable_of(witness), readable_of(p)
    found, w = numbers_of(out), workspace()
    with cython.nogil:
        fill_field(cumulative, grid, seen, events, masses, cells, found, w)
    return out


def event_jacobian(s, grid, witness, p):
    """Derivative of the field by the masses, through the interpolated cumulative payoffs."""
    cells = len(p)
    events = event_count(s, grid, witness, p)
    out = np.empty(cells * cells)
    cumulative, seen, masses = readable_of(s), readable_of(witness), readable_of(p)
    found, w = numbers_of(out), workspace()
    with cython.nogil:
        fill_jacobian(cumulative, grid, seen, events, masses, cells, found, w)
    return out.reshape(cells, cells)


def event_assess(s, grid, factor, witness, p):
    """For an outcome in each cell, 2 <s, payoff> + factor ||payoff||^2 and factor ||payoff||^2."""
    cells = len(p)
    events = event_count(s, grid, witness, p)
    linear, square = np.empty(cells), np.empty(cells)
    cumulative, seen, masses, w = readable_of(s), readable_of(witness), readable_of(p), workspace()
    found, sizes = numbers_of(linear), numbers_of(square)
    with cython.nogil:
        fill_assessment(cumulative, grid, factor, seen, events, masses, cells, found, sizes, w)
    return linear, square
