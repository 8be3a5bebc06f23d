"""Compiled kernels of a round with a binary outcome: the committee's prior, the root under the promise, the books.

The core of the payoff is, in this order: hats of the forecast, hats of the expert's word, the bias, a rival's Brier
score.  A round is one row of numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from orcast import ledger as _ledger
from orcast.engine.kernels import binary as binary_kernels
from orcast.engine.kernels.binary import BinaryMemory, committee, log_odds, play, regret_scale, teach
from orcast.engine.kernels.last_layer import available_slack, combine, squared_norm, write_certificate
from orcast.engine.kernels.records import Array
from orcast.jit import kernel
from orcast.ledger import LedgerLayout
from orcast.payoffs.hat_kernels import hat

settle = kernel(_ledger.settle)
mean_size = kernel(_ledger.mean_size)

# Places in a round: the forecast, its temperature, the outcomes outstanding, the word of the pool, whether there was an
# expert, the prior log odds; then the note, the committee's record, the rivals' words, their units, the context.
PLAYED, TEMPERATURE, PENDING, WORD, HAS_EXPERT, PRIOR, CERTIFICATE_AT = 0, 1, 2, 3, 4, 5, 6
RECORD_AT = CERTIFICATE_AT + _ledger.CERTIFICATE_SIZE
RIVALS_AT = RECORD_AT + binary_kernels.RECORD_SIZE
# Columns of what is remembered of a rival: discounted log loss, Brier loss and its count, sum of the excess and rounds.
POOL, LOSS, COUNT, EXCESS, SEEN = 0, 1, 2, 3, 4
RIVAL_SIZE = 5
# The rate at which rivals are weighed, the most that one round can cost, and how far one may fall behind the best.
POOL_RATE, MOST_LOSS, MOST_BEHIND = 1.0, 8.0, 8.0
MISSING = -1.0


class BinaryRules(NamedTuple):
    """What does not change from round to round."""

    layout: LedgerLayout
    hats: int  # of the forecast; 0 if there are none
    given: int  # of the expert's word
    bias: int
    regret: int
    rivals: int
    groups: int  # of all parts together
    bound: float
    discount: float
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
def pool_probabilities(state, probabilities):
    """The experts' probabilities, averaged by how well each did; nan where one is missing."""
    best = np.inf
    for e in range(probabilities.shape[0]):
        if not np.isnan(probabilities[e]):
            best = min(best, state.rivals[e, POOL])
    total = 0.0
    mean = 0.0
    for e in range(probabilities.shape[0]):
        if not np.isnan(probabilities[e]):
            weight = math.exp(-POOL_RATE * (state.rivals[e, POOL] - best))
            total += weight
            mean += weight * probabilities[e]
    return mean / total


@kernel
def payoff_parts(rules, coordinate):
    """The core cut into its four kinds; an absent one has two zeros, or nothing."""
    nothing = np.zeros(2)
    at = rules.hats
    hats = coordinate[:at] if rules.hats else nothing
    given = coordinate[at : at + rules.given] if rules.given else nothing
    at += rules.given
    bias = coordinate[at] if rules.bias else 0.0
    at += rules.bias
    return hats, given, bias, coordinate[at:]


@kernel
def predict(rules, state, probabilities, pending, reserved, round):
    """Fill a round: the prior, the forecast to play and its certificate.  The state is only read."""
    rivals = rules.rivals
    round[PENDING] = pending
    round[HAS_EXPERT] = 1.0 if probabilities.shape[0] > 0 else 0.0
    xs = round[RIVALS_AT : RIVALS_AT + rivals]
    units = round[RIVALS_AT + rivals : RIVALS_AT + 2 * rivals]
    context = round[RIVALS_AT + 2 * rivals :]
    x = 0.5
    if probabilities.shape[0] > 0:
        x = probabilities[0] if rivals == 1 else pool_probabilities(state, probabilities)
    round[WORD] = x
    for e in range(rivals):
        units[e] = 0.0
        # without a regret nothing else tells that an expert is missing
        xs[e] = 0.5 if rules.regret else MISSING
        if probabilities.shape[0] > 0 and not np.isnan(probabilities[e]):
            xs[e] = probabilities[e]
            if rules.regret:
                usual = binary_kernels.OWN_EXPECTATION_WEIGHT * xs[e] * (1.0 - xs[e]) + state.rivals[e, LOSS]
                usual *= binary_kernels.REGRET_PART / (binary_kernels.OWN_EXPECTATION_WEIGHT + state.rivals[e, COUNT])
                units[e] = 1.0 / max(usual, 1e-6)
    if rules.learns and probabilities.shape[0] > 0:
        committee(state.committee, x, pending, round[RECORD_AT:RIVALS_AT])
        round[PRIOR] = round[RECORD_AT + binary_kernels.PRIOR]
        # what is owed by chance alone grows with the root of the rounds
        settled = min(state.account[_ledger.Account.ROUNDS], 1.0 / max(1.0 - rules.discount, 1e-12))
        kappa = rules.temperature * math.sqrt(1.0 + settled / binary_kernels.SETTLING)
    else:
        round[PRIOR] = log_odds(x, binary_kernels.MOST_PRIOR)
        kappa = rules.temperature
    size = rules.hats + rules.given + rules.bias + rules.regret * rivals
    owed = np.empty(size)
    squares = np.empty(size)
    combine(rules.layout, state.total, context, rules.discount, owed, squares)
    hats, given, bias, regret = payoff_parts(rules, owed)
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
    free = available_slack(
        rules.layout, state.account, state.groups, state.total, square, context, rules.discount, reserved
    )
    budget = state.account[_ledger.Account.BUDGET]
    p, used, linear, bound = play(
        hats, given, bias, owed_r, xs_r, cs, factors, round[PRIOR], x, kappa, pending, free, budget
    )
    round[PLAYED] = p
    round[TEMPERATURE] = used
    certificate = round[CERTIFICATE_AT:RECORD_AT]
    write_certificate(state.account, rules.discount, square, free, linear, bound, rules.bound, certificate)


@kernel
def payoff(rules, round, y, out):
    """The core payoff of an outcome."""
    p = round[PLAYED]
    for i in range(out.shape[0]):
        out[i] = 0.0
    if rules.hats:
        k, share = hat(p, rules.hats)
        out[k] = (1.0 - share) * (p - y)
        out[k + 1] = share * (p - y)
    at = rules.hats
    if rules.given:
        k, share = hat(round[WORD], rules.given)
        out[at + k] = (1.0 - share) * (p - y)
        out[at + k + 1] = share * (p - y)
    at += rules.given
    if rules.bias:
        out[at] = p - y
    at += rules.bias
    if rules.regret:
        for e in range(rules.rivals):
            x = round[RIVALS_AT + e]
            unit = round[RIVALS_AT + rules.rivals + e]
            if unit > 0.0:
                out[at + e] = regret_scale(p, x, unit) * ((p - y) ** 2 - (x - y) ** 2)


@kernel
def update(rules, state, round, reserved, y):
    """Book the outcome of a round and teach the committee."""
    rivals = rules.rivals
    coordinate = np.empty(rules.hats + rules.given + rules.bias + rules.regret * rivals)
    payoff(rules, round, y, coordinate)
    settle(
        rules.layout,
        state.account,
        state.groups,
        state.total,
        round[RIVALS_AT + 2 * rivals :],
        rules.discount,
        reserved,
        coordinate,
        round[CERTIFICATE_AT:RECORD_AT],
    )
    p = round[PLAYED]
    state.last[0] = y - p
    if round[HAS_EXPERT] == 0.0:
        return
    weight = 1.0 / math.sqrt(1.0 + round[PENDING])
    fade = 1.0 - (1.0 - binary_kernels.LOSS_DISCOUNT) * weight
    best = np.inf
    for e in range(rivals):
        best = min(best, state.rivals[e, POOL])
    for e in range(rivals):
        present = round[RIVALS_AT + rivals + e] > 0.0 if rules.regret else round[RIVALS_AT + e] != MISSING
        x = round[RIVALS_AT + e] if present else round[WORD]
        rival = state.rivals[e]
        own = min(-math.log(max(x if y > 0.5 else 1.0 - x, 1e-300)), MOST_LOSS)
        rival[POOL] = fade * min(rival[POOL], best + MOST_BEHIND) + weight * own
        if present:
            rival[LOSS] = binary_kernels.USUAL_DISCOUNT * rival[LOSS] + (x - y) ** 2
            rival[COUNT] = binary_kernels.USUAL_DISCOUNT * rival[COUNT] + 1.0
            rival[EXCESS] += (p - y) ** 2 - (x - y) ** 2
            rival[SEEN] += 1.0
    if rules.learns:
        teach(state.committee, round[RECORD_AT:RIVALS_AT], y, round[PENDING])


@kernel
def run(rules, state, probabilities, contexts, outcomes, round, played, round_log):
    """Many rounds in one go, each outcome known before the next forecast; writes down what came of each."""
    first = RIVALS_AT + 2 * rules.rivals
    for t in range(outcomes.shape[0]):
        round[first:] = contexts[t]
        predict(rules, state, probabilities[t], 0.0, 0.0, round)
        p = round[PLAYED]
        played[t] = p
        round_log[t, _ledger.RoundLog.MEAN] = p
        round_log[t, _ledger.RoundLog.SD] = math.sqrt(p * (1.0 - p))
        round_log[t, _ledger.RoundLog.HOLDS] = round[CERTIFICATE_AT + _ledger.CertificateField.HOLDS]
        round_log[t, _ledger.RoundLog.PROMISED] = round[CERTIFICATE_AT + _ledger.CertificateField.PROMISED]
        update(rules, state, round, 0.0, outcomes[t])
        round_log[t, _ledger.RoundLog.MISCALIBRATION] = mean_size(
            squared_norm(rules.layout.sides, state.total), state.account
        )
