"""Hat functions of probabilities; `payoffs.cell_payoffs` has the same in numpy."""

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
