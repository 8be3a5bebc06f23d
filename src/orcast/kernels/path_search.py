"""Search over paths of the cumulated masses by dynamic programming, which ends in any case.

If no equilibrium that was found has a certificate that holds, all forecasts on a grid are searched. A forecast is a
path of F from 0 to 1, a step for each cell. On the cells the largest <S_+, payoff> in cell k is

    q(F_{k-1}, F_k)  +  c_k  +  A_k  -  V,      q = (H(F_k) - H(F_{k-1})) / p_k

where c_k is the largest value of the witnesses' tilt in the cell, A_k grows along the path with the pull back to the
experts in CRPS, and V is the same for all cells and a sum over the steps. So for each bound b the path that has

    q + c + A <= b  in every cell,    and the largest V

is found step by step; a path that holds has V >= b - slack. V falls with b, so from the largest possible bound on, b
becomes V + slack until the path holds or no path is left: then none on this grid holds. The bound falls in every pass
and V takes finitely many values, so the search ends. (With regrets in CRPS the best path to a point need not be part
of the best path: a path that is found holds, but one may be missed.)

If none is left and no other cells will be tried, the slack is larger by the resolution of the cells, the most by which
the tilt within a cell exceeds its mean: some forecast has q + mean tilt + A <= V in every cell (docs/theory.md), and
with the resolution its largest value is within reach. The path that misses least is kept.
"""

INF = float("inf")
# Points of F between 0 and 1 that the grid has about.
POINTS = 100
# Weights of A against V: 1 in the first two stages, then these.
LIGHT, HEAVY = 0.25, 4.0
# The bound falls by at least this in the first pass, relative to the field, and by twice as much in each further pass.
LEAST_FALL = 3e-4
# Rounding errors, relative to the field; and the smallest distance of a point from a level, relative to the gap.
BARELY = 1e-11
# The size of the field is at least this share of the range of the tilt.
LEAST_TILT = 0.01
# Steps towards the nearest forecast that holds.
NEAREST = 4


def grid_size(count):
    """Number of points between 0 and 1 for a number of levels."""
    gaps = count + 1
    if gaps >= POINTS:
        step = (gaps + POINTS - 1) // POINTS
        return (gaps + step - 1) // step
    return gaps * ((POINTS + gaps - 1) // gaps)


def spread_points(levels, count, points):
    """Fill the points of F from 0 to 1, none on a level."""
    gaps = count + 1
    size = grid_size(count)
    points[0] = 0.0
    for i in range(size):
        if gaps >= POINTS:
            gap = (i * gaps) // size
            share = 0.5
        else:
            each = size // gaps
            gap = i // each
            share = (i % each + 0.5) / each
        a = levels[gap - 1] if gap > 0 else 0.0
        b = levels[gap] if gap < count else 1.0
        points[i + 1] = a + share * (b - a)
    points[size + 1] = 1.0


def fill_grid(levels, count, knots, slopes, points):
    """Fill the points of F and the place where H falls through zero, at which two cells win for quantiles.

    Returns the number of points, at most grid_size(count) + 3.
    """
    spread_points(levels, count, points)
    total = grid_size(count) + 2
    for i in range(count):
        a = levels[i - 1] if i > 0 else 0.0
        b = levels[i]
        if knots[i] > 0.0 and knots[i + 1] <= 0.0:
            aside = BARELY * (b - a)
            zero = min(max(a - knots[i] / slopes[i], a + aside), b - aside)
            return put_point(zero, aside, points, total)
    return total


def put_point(zero, aside, points, total):
    """Insert a point, or move one that is closer than `aside`; return the number of points."""
    j = total
    while points[j - 1] > zero:
        j -= 1
    if fabs(points[j - 1] - zero) <= aside:
        points[j - 1] = zero
        return total
    if fabs(points[j] - zero) <= aside:
        points[j] = zero
        return total
    for other in range(total, j, -1):
        points[other] = points[other - 1]
    points[j] = zero
    return total + 1


def height_at(u, levels, count, knots, slopes, start):
    """H at a point, and the knot to its left; `start` is a knot at or before it."""
    j = start
    while j < count and levels[j] <= u:
        j += 1
    return knots[j] + slopes[j] * (u - (levels[j - 1] if j > 0 else 0.0)), j


def witness_tilts(rules, n, round, mean, most, w):
    """Mean and largest value of the witnesses' tilt in each cell."""
    at = rules.level_count + rules.interval_count
    low, span = round.info.low, round.info.high - round.info.low
    start = mark(w)
    nothing = take(w, rules.orders)
    for i in range(rules.orders):
        nothing[i] = 0.0
    w.regret_count = 0
    for k in range(n):
        for i in range(w.poly_size):
            w.poly[i] = 0.0
        a = (round.left[k] - low) / span
        b = (round.right[k] - low) / span
        add_moments(rules, at, nothing, a, b, 1.0, 0.0, w)
        most[k] = cell_maximum(-INF, w) if rules.orders > 0 else 0.0
        mean[k] = 0.0
        for i in range(rules.witnesses):
            cumulative, place = w.cumulative[at + i], i * rules.capacity + k
            mean[k] -= cumulative * w.witness_mean[place]
            if i >= rules.orders:
                most[k] -= cumulative * (w.witness_least[place] if cumulative > 0.0 else w.witness_largest[place])
    release(w, start)


def crps_pull(rules, n, round, cumulated, w):
    """Pull back to the experts in CRPS, summed over them, and the part of it that is the same for all forecasts.

    `cumulated` becomes the experts' mean F, weighted by their pull.
    """
    at = rules.level_count + rules.interval_count + rules.witnesses
    pull = 0.0
    same = 0.0
    for k in range(n + 1):
        cumulated[k] = 0.0
    if rules.crps == 0:
        return pull, same
    for e in range(rules.experts):
        own = w.cumulative[at + e] * round.crps_units[e]
        if own > 0.0:
            pull += own
            F = 0.0
            for k in range(n):
                a = 1.0 - F
                F += round.rivals[e * rules.capacity + k]
                b = 1.0 - F
                same -= own * w.width[k] * (a * a + a * b + b * b) / 3.0
                cumulated[k + 1] += own * F
    if pull > 0.0:
        for k in range(n + 1):
            cumulated[k] /= pull
    return pull, same


def best_path(n, width, bound, masses, w):
    """Find the path with the largest V under a bound, as masses; return V, or -inf if there is no path.

    To each point one path is kept, the one with the largest V - weight A. Without a pull back to the experts A is zero,
    and no path is missed.
    """
    total = w.point_count
    start = mark(w)
    A, best, next_A, next_best = take(w, total), take(w, total), take(w, total), take(w, total)
    for i in range(total):
        best[i] = -INF
    A[0] = 0.0
    best[0] = 0.0
    for k in range(n):
        step_paths(k, n, width[k], bound, A, best, next_A, next_best, w)
        A, next_A = next_A, A
        best, next_best = next_best, best
    j = total - 1
    found = -INF
    if best[j] != -INF:
        found = best[j] + w.path_weight * A[j]
        for k in range(n - 1, -1, -1):
            i = w.steps[k * total + j]
            masses[k] = w.points[j] - w.points[i]
            j = i
    release(w, start)
    return found


def step_paths(k, n, width, bound, A, best, next_A, next_best, w):
    """Extend the best paths to each point by the step of cell k."""
    total, points, fields, steps = w.point_count, w.points, w.fields, w.steps
    pull, weight, mean = w.path_pull, w.path_weight, w.tilt_mean[k]
    for j in range(total):
        next_best[j] = -INF
    g0, g1 = w.cumulated[k], w.cumulated[k + 1]
    room = bound - w.tilt_bound[k]
    for i in range(total):
        if best[i] == -INF:
            continue
        F0, own, so_far = points[i], A[i], best[i]
        first = total - 1 if k == n - 1 else i
        for j in range(first, total):
            left = room - fields[i * total + j] - own
            if left < 0.0:
                continue
            F1 = points[j]
            value = (F1 - F0) * mean
            rise = 0.0
            if pull > 0.0:
                slope_a = 2.0 * (F0 - g0)
                slope_b = 2.0 * (F1 - g1)
                rise = 0.5 * width * (slope_a + slope_b) * pull
                top = rise
                if slope_a > 0.0 > slope_b:
                    top = 0.5 * width * slope_a * slope_a / (slope_a - slope_b) * pull
                if top > left:
                    continue
                a = 1.0 - F0
                b = 1.0 - F1
                value -= pull * width * (a * a + a * b + b * b) / 3.0
            score = so_far + value - weight * rise
            if score > next_best[j]:
                next_best[j] = score
                next_A[j] = own + rise
                steps[k * total + j] = i


def add_mse_tilt(rules, n, round, p, most, w):
    """Add the tilt of the regrets in squared error at the mean of p; return the part that is the same for all cells."""
    same = 0.0
    if rules.mse == 0:
        return same
    at = rules.level_count + rules.interval_count + rules.witnesses + rules.crps * rules.experts
    low, span = round.info.low, round.info.high - round.info.low
    mean_p = 0.0
    for k in range(n):
        mean_p += p[k] * w.middle[k]
    for e in range(rules.experts):
        own = w.cumulative[at + e] * round.mse_units[e]
        if own > 0.0:
            mean_x = 0.0
            for k in range(n):
                mean_x += round.rivals[e * rules.capacity + k] * w.middle[k]
            c = own * (mean_p - mean_x)
            same += c * (mean_p + mean_x)
            for k in range(n):
                a = -2.0 * c * (round.left[k] - low) / span
                b = -2.0 * c * (round.right[k] - low) / span
                most[k] += max(a, b)
    return same


def fill_heights(points, total, levels, count, knots, slopes, heights, out):
    """Fill H at the points and the field of empty cells, on the diagonal; return the largest size of these."""
    size = 0.0
    at = 0
    for i in range(total):
        heights[i], at = height_at(points[i], levels, count, knots, slopes, at)
        # levels at or above F count as reached: h left of a level
        out[i * total + i] = slopes[at]
        size = max(size, fabs(slopes[at]))
    heights[total - 1] = 0.0
    return size


def field_of_pairs(points, total, levels, count, knots, slopes, factors, square_share, out, w):
    """Fill q + ||payoff||^2 / 2 of each pair of points, with a share of the square; the limit on the diagonal.

    Returns the largest size of the field, and half the squared norm that may count as the round's own.
    """
    start = mark(w)
    heights, below, above = take(w, total), take(w, count + 1), take(w, count + 1)
    size = fill_heights(points, total, levels, count, knots, slopes, heights, out)
    below[0] = 0.0
    above[count] = 0.0
    for i in range(count):
        below[i + 1] = below[i] + factors[i] * levels[i] * levels[i]
    for i in range(count - 1, -1, -1):
        above[i] = above[i + 1] + factors[i] * (1.0 - levels[i]) * (1.0 - levels[i])
    first = 0
    for i in range(total):
        while first < count and levels[first] < points[i]:
            first += 1
        square = below[first]
        last = first
        for j in range(i, total):
            if j > i:
                out[i * total + j] = (heights[j] - heights[i]) / (points[j] - points[i])
                while last < count and levels[last] < points[j]:
                    last += 1
                square = below[first]
                for a in range(first, last):
                    z = (levels[a] - points[i]) / (points[j] - points[i]) - levels[a]
                    square += factors[a] * z * z
            out[i * total + j] += 0.5 * square_share * (square + above[last])
    norm = 0.5 * square_share * max(below[count], above[0])
    release(w, start)
    return size, norm


def path_weight(stage):
    """Weight of A against V in a stage of the search."""
    if stage < 2:
        return 1.0
    return LIGHT if stage == 2 else HEAVY


def take_paths(rules, n, w):
    """Take the rows of the paths from scratch memory and fill the points of the grid."""
    w.points = take(w, grid_size(rules.level_count) + 3)
    w.point_count = fill_grid(rules.levels, rules.level_count, w.cumulative_knots, w.cumulative_slopes, w.points)
    w.fields, w.steps = take(w, w.point_count * w.point_count), take_whole(w, n * w.point_count)
    w.tilt_mean, w.tilt_largest, w.tilt_bound = take(w, n), take(w, n), take(w, n)
    w.cumulated = take(w, n + 1)
    w.passes = 0


def search_paths(rules, memory, mix, thorough, round, w):
    """Search all forecasts on a grid for one that holds.

    Between it and the mix, the forecast of the round is the nearest to the mix that holds.
    """
    n = cell_count(round)
    start = mark(w)
    take_paths(rules, n, w)
    witness_tilts(rules, n, round, w.tilt_mean, w.tilt_largest, w)
    w.path_pull, w.path_constant = crps_pull(rules, n, round, w.cumulated, w)
    masses = take(w, n)
    copy(w.best_p, n, masses)
    stages = 1
    least, most, apart = w.tilt_mean[0], w.tilt_largest[0], 0.0
    for k in range(n):
        least = min(least, w.tilt_mean[k])
        most = max(most, w.tilt_largest[k])
        apart = max(apart, w.tilt_largest[k] - w.tilt_mean[k])
    if thorough:
        stages = 4 if w.path_pull > 0.0 else 2
        if apart > 0.0:
            stages += 1
    for stage in range(stages):
        # squared payoffs below the largest are slack that a path may use; which is the largest is known too late
        w.field_size, w.field_norm = field_of_pairs(
            w.points,
            w.point_count,
            rules.levels,
            rules.level_count,
            w.cumulative_knots,
            w.cumulative_slopes,
            w.factors,
            1.0 if stage == 1 else 0.0,
            w.fields,
            w,
        )
        w.field_size = max(w.field_size, LEAST_TILT * (most - least))
        last = thorough and apart > 0.0 and stage == stages - 1
        w.path_weight = 1.0 if last else path_weight(stage)
        search_grid(rules, memory, apart if last else 0.0, round, masses, w)
        if w.best_missing <= 0.0:
            mix_in(rules, memory, mix, masses, round, w)
            break
    release(w, start)


def search_grid(rules, memory, apart, round, masses, w):
    """Lower the bound until a path holds, or none is left within the slack and the resolution `apart` of the cells."""
    p, n = round.result, cell_count(round)
    start = mark(w)
    lp = take(w, n)
    bound = INF
    fall = LEAST_FALL * w.field_size
    for _ in range(rules.effort):
        copy(w.tilt_largest, n, w.tilt_bound)
        slack = 0.5 * w.free + w.field_norm - w.path_constant + apart + BARELY * w.field_size
        slack -= add_mse_tilt(rules, n, round, masses, w.tilt_bound, w)
        if bound == INF:
            bound = w.tilt_mean[0]
            for k in range(1, n):
                bound = max(bound, w.tilt_mean[k])
            bound += slack
        w.passes += 1
        value = best_path(n, w.width, bound, masses, w)
        if value == -INF:
            break
        for k in range(n):
            p[k] = masses[k]
            lp[k] = log(max(masses[k], 1e-300))
        keep_if_better(judge(rules, memory, round, p, w), lp, 0.0, round, w)
        if w.best_missing <= 0.0:
            break
        bound = min(value + slack, bound - fall)
        fall *= 2.0
    release(w, start)


def mix_in(rules, memory, mix, masses, round, w):
    """Mix into masses that hold the largest share of the mix with which they still hold."""
    p, n = round.result, cell_count(round)
    start = mark(w)
    lp = take(w, n)
    share = 0.0
    step = 0.5
    for _ in range(NEAREST + 2):
        for k in range(n):
            p[k] = (share + step) * mix[k] + (1.0 - share - step) * masses[k]
            lp[k] = log(max(p[k], 1e-300))
        if judge(rules, memory, round, p, w) <= 0.0:
            share += step
            keep(lp, 0.0, round, w)
        step *= 0.5
    for k in range(n):
        p[k] = w.best_p[k]
    judge(rules, memory, round, p, w)
    release(w, start)


# --- entries for Python; `witness` and `free` are those of judging's entries


def best_path_arrays(points, fields, tilt_mean, tilt_bound, cumulated, pull, weight, width, bound, masses):
    """Find the best path under a bound, as masses; return V."""
    w, total, cells, flat = workspace(), len(points), len(masses), fields.ravel()
    start = mark(w)
    w.points, w.point_count, w.fields = readable_of(points), total, readable_of(flat)
    w.tilt_mean, w.tilt_bound = readable_of(tilt_mean), readable_of(tilt_bound)
    w.cumulated, w.steps = readable_of(cumulated), take_whole(w, cells * total)
    w.path_pull, w.path_weight = pull, weight
    found = best_path(cells, readable_of(width), bound, numbers_of(masses), w)
    release(w, start)
    return found


def put_best(missing, p, mix, n, w):
    """Set the best forecast so far, and the mix."""
    w.best_missing, w.best_p, w.log_mix = missing, take(w, n), take(w, n)
    copy(p, n, w.best_p)
    for k in range(n):
        w.log_mix[k] = log(mix[k])


def search_paths_arrays(rules, memory, round, witness, free, mix, thorough):
    """Search all forecasts on the grid; return by how much the best one fails, and the number of passes."""
    w, row = workspace(), readable_of(mix)
    start = open_workspace(rules, memory, round, witness, free, w)
    put_best(INF, round.result, round.result, cell_count(round), w)
    search_paths(rules, memory, row, thorough, round, w)
    release(w, start)
    return w.best_missing, w.passes
