"""Round on a finite space: the prior of the committee, the forecast that the ledger allows, and its outcome."""

import cython
import numpy as np

from orcast.constants import LOSS_DISCOUNT, OWN_EXPECTATION_WEIGHT
from orcast.kernels.finite_state import FiniteRound
from orcast.kernels.records import ENDS

# Number of rounds after which the temperature on two cells begins to grow.
SETTLING = 500.0
# On two cells regret counts in units of this part of the expert's usual loss.
REGRET_PART = 0.5
LEAST_UNIT = 1e-6
NAN = float("nan")


def place_experts(rules, state, experts, count, round, w):
    """Experts of a round (`count` is 0 if there are none), their prior, and the units of the regrets against them."""
    round.info.has_expert = 1.0 if count > 0 else 0.0
    for e in range(rules.rivals):
        round.units[e] = 0.0
    if count == 0:
        for i in range(rules.rivals * rules.cells):
            round.experts[i] = NAN
        for c in range(rules.cells):
            round.pool[c] = 1.0 / rules.cells
            round.prior[c] = round.pool[c]
        return
    copy(experts, rules.rivals * rules.cells, round.experts)
    committee(rules, state, round, w)
    if rules.regret:
        set_units(rules, state, round)


def set_units(rules, state, round):
    """Units of the regrets, from the expected and the usual Brier score of each expert."""
    for e in range(rules.rivals):
        x = cut(round.experts, e * rules.cells, rules.cells)
        if not isnan(x[0]):
            expected = 1.0
            for c in range(rules.cells):
                expected -= x[c] * x[c]
            rival = finite_rival_at(state.rivals, e)
            usual = OWN_EXPECTATION_WEIGHT * rules.brier * expected + rival.brier
            usual /= OWN_EXPECTATION_WEIGHT + rival.count
            round.units[e] = 1.0 / max(usual * REGRET_PART if rules.two_cells else usual, LEAST_UNIT)


def set_problem(rules, state, round, w):
    """Set the problem of the last layer in `w`; the caller releases its rows."""
    events, first = rules.events, rules.first
    cumulative, squares = take(w, rules.payoff_size), take(w, rules.payoff_size)
    combine(state, round.context, cumulative, squares, rules.payoff_size)
    w.cells, w.first, w.events = rules.cells, first, events
    w.nodes, w.drawn = rules.nodes, rules.drawn
    w.fixed, w.fixed_size = take(w, events), take(w, events)
    for j in range(events):
        w.fixed[j] = 0.0
        w.fixed_size[j] = 0.0
    at = rules.hats * events
    if rules.hats:
        w.vertices, w.cumulative, w.hat_factor = rules.hats, cut(cumulative, 0, at), squares[0]
    else:
        w.vertices, w.cumulative, w.hat_factor = 2, take(w, 2 * events), 0.0
        for i in range(2 * events):
            w.cumulative[i] = 0.0
    if rules.expert_hats:
        given = cut(cumulative, at, rules.expert_hats * events)
        for j in range(events):
            k, share = hat(round.pool[first + j], rules.expert_hats)
            w.fixed[j] = (1.0 - share) * given[k * events + j] + share * given[(k + 1) * events + j]
            w.fixed_size[j] = squares[at] * (share * share + (1.0 - share) * (1.0 - share))
        at += rules.expert_hats * events
    if rules.bias:
        w.fixed[0] += cumulative[at]
        w.fixed_size[0] += squares[at]
        at += 1
    w.rivals = rules.rivals if rules.regret else 0
    w.cumulative_regret = cut(cumulative, at, w.rivals)
    w.regret_factor = squares[at] if w.rivals > 0 else 0.0
    w.experts, w.units, w.brier = round.experts, round.units, rules.brier
    w.prior = round.prior


def predict(rules, state, experts, count, pending, reserved, round, w):
    """Fill a round: the prior, the forecast and its certificate. The state is only read."""
    round.info.pending = pending
    place_experts(rules, state, experts, count, round, w)
    kappa = rules.temperature
    if rules.two_cells and rules.member_count > 0 and round.info.has_expert > 0.0:
        # random fluctuations of the cumulative payoff grow with the root of the rounds
        settled = min(state.account.rounds, 1.0 / max(1.0 - rules.discount, 1e-12))
        kappa *= sqrt(1.0 + settled / SETTLING)
    square = squared_norm(state)
    free = available_slack(state, square, round.context, reserved)
    m = mark(w)
    set_problem(rules, state, round, w)
    used, linear, bound = solve(kappa, pending, free, state.account.budget, round.result, w)
    round.info.variance = variance_of(w, round.result)
    release(w, m)
    round.info.temperature = used
    write_certificate(state, square, free, linear, bound, round.certificate)


def excess(rules, round, e, y):
    """Brier score of the forecast, expected if it is drawn, minus an expert's, for an outcome in cell y."""
    x = cut(round.experts, e * rules.cells, rules.cells)
    ahead = squares_ahead(round.result, rules.cells, x) + round.info.variance
    return rules.brier * (ahead - 2.0 * (round.result[y] - x[y]))


def payoff(rules, round, y, out):
    """Payoff of an outcome in cell y, before contexts and weights."""
    p, events, first = round.result, rules.events, rules.first
    for i in range(rules.payoff_size):
        out[i] = 0.0
    at = rules.hats * events
    for j in range(events):
        error = p[first + j] - (1.0 if y == first + j else 0.0)
        if rules.drawn:
            k, share = between(rules.nodes, rules.hats, p[first + j])
            came = p[first + j] - error
            out[k * events + j] = (1.0 - share) * (rules.nodes[k] - came)
            out[(k + 1) * events + j] = share * (rules.nodes[k + 1] - came)
        elif rules.hats:
            k, share = hat(p[first + j], rules.hats)
            out[k * events + j] = (1.0 - share) * error
            out[(k + 1) * events + j] = share * error
        if rules.expert_hats:
            k, share = hat(round.pool[first + j], rules.expert_hats)
            out[at + k * events + j] = (1.0 - share) * error
            out[at + (k + 1) * events + j] = share * error
    at += rules.expert_hats * events
    if rules.bias:
        out[at] = p[1] - y
        at += 1
    if rules.regret:
        for e in range(rules.rivals):
            unit = round.units[e]
            if unit > 0.0:
                x = cut(round.experts, e * rules.cells, rules.cells)
                scale = regret_scale(p, rules.cells, x, unit, rules.brier, round.info.variance)
                out[at + e] = scale * excess(rules, round, e, y)


def publish(rules, round, out):
    """Fill the masses that are published: the forecast, or the nodes around it that its random draw picks.

    Each event gets the upper node with the share of its probability in the gap; by systematic sampling, since on even
    nodes that many labels must get the upper one that the masses add up to 1.
    """
    copy(round.result, rules.cells, out)
    draw = round.info.draw
    if draw == 0.0 or rules.drawn == 0:
        return
    before = 0.0
    for j in range(rules.events):
        k, share = between(rules.nodes, rules.hats, round.result[rules.first + j])
        after = before + share
        if j > 0 and j == rules.events - 1:
            after = floor(after + 0.5)
        up = whole_number(ceil(after - draw) - ceil(before - draw))
        out[rules.first + j] = rules.nodes[k + min(max(up, 0), 1)]
        before = after
    if rules.events < rules.cells:
        out[0] = 1.0 - out[1]


def count(rules, state, round, y, w):
    """Add the error of each published probability to the sum of its bin.

    With a draw the bins are the nodes, and the empirical minus the expected error of an event is a vector on its two
    nodes, (1 - share) or -share times their errors, so that its largest square is known before the draw.
    """
    m = mark(w)
    published = take(w, rules.cells)
    publish(rules, round, published)
    drawn = rules.drawn == 1 and round.info.draw > 0.0
    most = 0.0
    if rules.discount < 1.0:
        for i in range(rules.hats * rules.events):
            state.empirical[i] *= rules.discount
    for j in range(rules.events):
        at = published[rules.first + j]
        came = 1.0 if y == rules.first + j else 0.0
        if drawn:
            k, share = between(rules.nodes, rules.hats, round.result[rules.first + j])
            low, high = rules.nodes[k] - came, rules.nodes[k + 1] - came
            larger = max(share, 1.0 - share)
            most += larger * larger * (low * low + high * high)
            if at > 0.5 * (rules.nodes[k] + rules.nodes[k + 1]):
                k += 1
        else:
            k = whole_number(floor(at * rules.hats))
            k = min(k, rules.hats - 1)
        state.empirical[k * rules.events + j] += at - came
    release(w, m)
    counts = state.counts
    counts.spread = rules.discount * rules.discount * counts.spread + most
    counts.weight = rules.discount * counts.weight + 1.0
    counts.without = rules.discount * counts.without + (0.0 if drawn else 1.0)


def learn_rivals(rules, rivals, round, y):
    """Brier scores of the experts, and their differences from that of the forecast."""
    for e in range(rules.rivals):
        x = cut(round.experts, e * rules.cells, rules.cells)
        if not isnan(x[0]):
            loss = 1.0 - 2.0 * x[y]
            for c in range(rules.cells):
                loss += x[c] * x[c]
            rival = finite_rival_at(rivals, e)
            rival.brier = LOSS_DISCOUNT * rival.brier + rules.brier * loss
            rival.count = LOSS_DISCOUNT * rival.count + 1.0
            rival.excess += excess(rules, round, e, y)
            rival.rounds += 1.0


def update(rules, state, round, reserved, y, w):
    """Settle an outcome in cell y and update the committee."""
    m = mark(w)
    coordinates = take(w, rules.payoff_size)
    payoff(rules, round, y, coordinates)
    settle(state, round.context, reserved, coordinates, round.certificate)
    release(w, m)
    if rules.hats:
        count(rules, state, round, y, w)
    state.last[0] = y - round.result[1]
    if round.info.has_expert == 0.0:
        return
    learn_rivals(rules, state.rivals, round, y)
    update_members(rules, state, round, y, w)


def pit_among(masses, cells, y, out):
    """Ends of the PIT of an outcome in cell y (`kernels.monitor`); nan if the masses are missing."""
    whole = below = 0.0
    for c in range(cells):
        whole += masses[c]
        if c < y:
            below += masses[c]
    out[0] = out[1] = below / whole
    out[2] = out[3] = min((below + masses[y]) / whole, 1.0)


def write_pits(rules, round, y, out, w):
    """PITs of an outcome in cell y: of the published forecast, then of each expert."""
    m = mark(w)
    masses = take(w, rules.cells)
    publish(rules, round, masses)
    pit_among(masses, rules.cells, y, out)
    release(w, m)
    for e in range(rules.rivals):
        pit_among(cut(round.experts, e * rules.cells, rules.cells), rules.cells, y, cut(out, ENDS * (e + 1), ENDS))


# --- entry points


def predict_finite(state, experts, pending, reserved, context):
    """New round around the masses of all experts, the probability of an event, or None; without `context` it is 1."""
    rules, round, w = state.rules, FiniteRound(state.rules), workspace()
    count, masses = 0, round.experts
    if isinstance(experts, float):
        count = 1
        masses[1] = experts
        masses[0] = 1.0 - masses[1]
    elif experts is not None:
        count, masses = rules.rivals, readable_of(experts.reshape(-1))
    if context is not None:
        copy(readable_of(context), rules.groups, round.context)
    with cython.nogil:
        predict(rules, state, masses, count, pending, reserved, round, w)
    return round


def update_finite(state, round, reserved, y):
    """Settle an outcome in cell y and update the committee."""
    w = workspace()
    with cython.nogil:
        update(state.rules, state, round, reserved, y, w)


def published(round):
    """Masses that are published."""
    out = np.empty(round.rules.cells)
    publish(round.rules, round, numbers_of(out))
    return out


def pits_of(round, y):
    """PITs of an outcome in cell y, four ends each: of the published forecast of a round, and of each expert."""
    out = np.empty(ENDS * (round.rules.rivals + 1))
    write_pits(round.rules, round, y, numbers_of(out), workspace())
    return out


def payoff_finite(round, y):
    """Core payoff of an outcome in cell y."""
    out = np.empty(round.rules.payoff_size)
    payoff(round.rules, round, y, numbers_of(out))
    return out


def run(state, experts, contexts, outcomes, draws, result, round_log, pits):
    """Run many rounds, each outcome known before the next forecast; all arrays are flat, a row each round.

    `outcomes` are cells (int64), `draws` random numbers in (0, 1), or 0 for none. Fills `result`, the published masses
    of all cells, and `round_log`; and `pits`, unless it is empty.
    """
    rules, round, w, number = state.rules, FiniteRound(state.rules), workspace(), len(outcomes)
    masses, given, came, random = readable_of(experts), readable_of(contexts), whole_of(outcomes), readable_of(draws)
    found, logs, all_pits, pit_width = numbers_of(result), numbers_of(round_log), numbers_of(pits), len(pits) // number
    cells, width = rules.cells, rules.rivals * rules.cells
    with cython.nogil:
        for t in range(number):
            copy(cut(given, t * rules.groups, rules.groups), rules.groups, round.context)
            predict(rules, state, cut(masses, t * width, width), rules.rivals, 0.0, 0.0, round, w)
            round.info.draw = random[t]
            publish(rules, round, cut(found, t * cells, cells))
            log = as_log(cut(logs, t * ROUND_LOG_SIZE, ROUND_LOG_SIZE))
            log.holds = round.certificate.holds
            log.promised = round.certificate.promised
            log.excess = round.certificate.excess
            if pit_width > 0:
                write_pits(rules, round, came[t], cut(all_pits, t * pit_width, pit_width), w)
            update(rules, state, round, 0.0, came[t], w)
            log.miscalibration = miscalibration(state)
