"""Compiled kernels of a round with a binary outcome: the committee's prior, the root under the promise, the books.

The core of the payoff is, in this order: hats of the forecast, hats of the expert's word, the bias, a rival's Brier
score.  A round is one row of numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from orcast import ledger as _ledger
from orcast.compiled import kernel
from orcast.ledger import Layout
from orcast.oracles import _binary
from orcast.oracles._binary import BinaryMemory, committee, log_odds, play, regret_scale, teach
from orcast.oracles._play import combine, note_certificate, room, squared_norm
from orcast.oracles._state import Array
from orcast.payoffs._hats import hat

settle = kernel(_ledger.settle)
mean_size = kernel(_ledger.mean_size)

# Places in a round: the forecast, its temperature, the outcomes outstanding, the word of the pool, whether there was an
# expert, the prior log odds; then the note, the committee's record, the rivals' words, their units, the context.
PLAYED, TEMPERATURE, PENDING, WORD, HAS_EXPERT, PRIOR, NOTE_AT = 0, 1, 2, 3, 4, 5, 6
RECORD_AT = NOTE_AT + _ledger.NOTE_SIZE
RIVALS_AT = RECORD_AT + _binary.RECORD_SIZE
# Columns of what is remembered of a rival: discounted log loss, Brier loss and its count, sum of the excess and rounds.
POOL, LOSS, COUNT, EXCESS, SEEN = 0, 1, 2, 3, 4
RIVAL_SIZE = 5
# The rate at which rivals are weighed, the most that one round can cost, and how far one may fall behind the best.
POOL_RATE, MOST_LOSS, MOST_BEHIND = 1.0, 8.0, 8.0
MISSING = -1.0


class BinaryRules(NamedTuple):
    """What does not change from round to round."""

    layout: Layout
    hats: int  # of the forecast; 0 if there are none
    given: int  # of the expert's word
    bias: int
    regret: int
    rivals: int
    groups: int  # of all parts together
    bound: float
    keep: float
    temperature: float
    learns: int


class BinaryState(NamedTuple):
    """What is carried from round to round."""

    committee: BinaryMemory
    total: Array
    account: Array
    groups: Array
    rivals: Array
    last: Array  # the last error


@kernel
def pool_words(state, words):
    """The experts' probabilities, averaged by how well each did; nan where one is missing."""
    best = np.inf
    for e in range(words.shape[0]):
        if not np.isnan(words[e]):
            best = min(best, state.rivals[e, POOL])
    total = 0.0
    mean = 0.0
    for e in range(words.shape[0]):
        if not np.isnan(words[e]):
            weight = math.exp(-POOL_RATE * (state.rivals[e, POOL] - best))
            total += weight
            mean += weight * words[e]
    return mean / total


@kernel
def core_parts(rules, core):
    """The core cut into its four kinds; an absent one has two zeros, or nothing."""
    nothing = np.zeros(2)
    at = rules.hats
    hats = core[:at] if rules.hats else nothing
    given = core[at : at + rules.given] if rules.given else nothing
    at += rules.given
    bias = core[at] if rules.bias else 0.0
    at += rules.bias
    return hats, given, bias, core[at:]


@kernel
def predict(rules, state, words, pending, reserved, rnd):
    """Fill a round: the prior, the forecast to play and its certificate.  The state is only read."""
    rivals = rules.rivals
    rnd[PENDING] = pending
    rnd[HAS_EXPERT] = 1.0 if words.shape[0] > 0 else 0.0
    xs = rnd[RIVALS_AT : RIVALS_AT + rivals]
    units = rnd[RIVALS_AT + rivals : RIVALS_AT + 2 * rivals]
    context = rnd[RIVALS_AT + 2 * rivals :]
    x = 0.5
    if words.shape[0] > 0:
        x = words[0] if rivals == 1 else pool_words(state, words)
    rnd[WORD] = x
    for e in range(rivals):
        units[e] = 0.0
        # without a regret nothing else tells that an expert is missing
        xs[e] = 0.5 if rules.regret else MISSING
        if words.shape[0] > 0 and not np.isnan(words[e]):
            xs[e] = words[e]
            if rules.regret:
                usual = _binary.OWN_WORD * xs[e] * (1.0 - xs[e]) + state.rivals[e, LOSS]
                usual *= _binary.REGRET_PART / (_binary.OWN_WORD + state.rivals[e, COUNT])
                units[e] = 1.0 / max(usual, 1e-6)
    if rules.learns and words.shape[0] > 0:
        committee(state.committee, x, pending, rnd[RECORD_AT:RIVALS_AT])
        rnd[PRIOR] = rnd[RECORD_AT + _binary.PRIOR]
        # what is owed by chance alone grows with the root of the rounds
        settled = min(state.account[_ledger.ROUNDS], 1.0 / max(1.0 - rules.keep, 1e-12))
        kappa = rules.temperature * math.sqrt(1.0 + settled / _binary.SETTLING)
    else:
        rnd[PRIOR] = log_odds(x, _binary.MOST_PRIOR)
        kappa = rules.temperature
    size = rules.hats + rules.given + rules.bias + rules.regret * rivals
    owed = np.empty(size)
    squares = np.empty(size)
    combine(rules.layout, state.total, context, rules.keep, owed, squares)
    hats, given, bias, regret = core_parts(rules, owed)
    factors = np.zeros(4)
    at = 0
    if rules.hats:
        factors[0] = squares[0]
    at = rules.hats
    if rules.given:
        factors[1] = squares[at]
    at += rules.given
    if rules.bias:
        factors[2] = squares[at]
    at += rules.bias
    if rules.regret:
        factors[3] = squares[at]
        owed_r, xs_r, cs = regret, xs, units
    else:
        owed_r, xs_r, cs = owed[:0], xs[:0], units[:0]
    square = squared_norm(rules.layout.sides, state.total)
    free = room(rules.layout, state.account, state.groups, state.total, square, context, rules.keep, reserved)
    budget = state.account[_ledger.BUDGET]
    p, used, linear, bound = play(
        hats, given, bias, owed_r, xs_r, cs, factors, rnd[PRIOR], x, kappa, pending, free, budget
    )
    rnd[PLAYED] = p
    rnd[TEMPERATURE] = used
    note = rnd[NOTE_AT:RECORD_AT]
    note_certificate(state.account, rules.keep, square, free, linear, bound, rules.bound, note)


@kernel
def payoff(rules, rnd, y, out):
    """The core payoff of an outcome."""
    p = rnd[PLAYED]
    for i in range(out.shape[0]):
        out[i] = 0.0
    if rules.hats:
        k, share = hat(p, rules.hats)
        out[k] = (1.0 - share) * (p - y)
        out[k + 1] = share * (p - y)
    at = rules.hats
    if rules.given:
        k, share = hat(rnd[WORD], rules.given)
        out[at + k] = (1.0 - share) * (p - y)
        out[at + k + 1] = share * (p - y)
    at += rules.given
    if rules.bias:
        out[at] = p - y
    at += rules.bias
    if rules.regret:
        for e in range(rules.rivals):
            x = rnd[RIVALS_AT + e]
            unit = rnd[RIVALS_AT + rules.rivals + e]
            if unit > 0.0:
                out[at + e] = regret_scale(p, x, unit) * ((p - y) ** 2 - (x - y) ** 2)


@kernel
def update(rules, state, rnd, reserved, y):
    """Book the outcome of a round and teach the committee."""
    rivals = rules.rivals
    core = np.empty(rules.hats + rules.given + rules.bias + rules.regret * rivals)
    payoff(rules, rnd, y, core)
    settle(
        rules.layout,
        state.account,
        state.groups,
        state.total,
        rnd[RIVALS_AT + 2 * rivals :],
        rules.keep,
        reserved,
        core,
        rnd[NOTE_AT:RECORD_AT],
    )
    p = rnd[PLAYED]
    state.last[0] = y - p
    if rnd[HAS_EXPERT] == 0.0:
        return
    weight = 1.0 / math.sqrt(1.0 + rnd[PENDING])
    fade = 1.0 - (1.0 - _binary.LOSS_KEEP) * weight
    best = np.inf
    for e in range(rivals):
        best = min(best, state.rivals[e, POOL])
    for e in range(rivals):
        present = rnd[RIVALS_AT + rivals + e] > 0.0 if rules.regret else rnd[RIVALS_AT + e] != MISSING
        x = rnd[RIVALS_AT + e] if present else rnd[WORD]
        rival = state.rivals[e]
        own = min(-math.log(max(x if y > 0.5 else 1.0 - x, 1e-300)), MOST_LOSS)
        rival[POOL] = fade * min(rival[POOL], best + MOST_BEHIND) + weight * own
        if present:
            rival[LOSS] = _binary.USUAL_KEEP * rival[LOSS] + (x - y) ** 2
            rival[COUNT] = _binary.USUAL_KEEP * rival[COUNT] + 1.0
            rival[EXCESS] += (p - y) ** 2 - (x - y) ** 2
            rival[SEEN] += 1.0
    if rules.learns:
        teach(state.committee, rnd[RECORD_AT:RIVALS_AT], y, rnd[PENDING])


@kernel
def run(rules, state, words, contexts, outcomes, rnd, played, tales):
    """Many rounds in one go, each outcome known before the next forecast; writes down what came of each."""
    first = RIVALS_AT + 2 * rules.rivals
    for t in range(outcomes.shape[0]):
        rnd[first:] = contexts[t]
        predict(rules, state, words[t], 0.0, 0.0, rnd)
        p = rnd[PLAYED]
        played[t] = p
        tales[t, _ledger.TOLD_MEAN] = p
        tales[t, _ledger.TOLD_SD] = math.sqrt(p * (1.0 - p))
        tales[t, _ledger.TOLD_HOLDS] = rnd[NOTE_AT + _ledger.HOLDS]
        tales[t, _ledger.TOLD_PROMISED] = rnd[NOTE_AT + _ledger.PROMISED]
        update(rules, state, rnd, 0.0, outcomes[t])
        tales[t, _ledger.TOLD_MISCALIBRATION] = mean_size(squared_norm(rules.layout.sides, state.total), state.account)
