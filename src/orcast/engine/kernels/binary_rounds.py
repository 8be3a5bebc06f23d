"""Compiled kernels of a round with a binary outcome: the committee's prior, the root under the promise, the ledger.

The core of the payoff is, in this order: hats of the forecast, hats of the expert, the bias, a rival's Brier score.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from orcast.constants import (
    BINARY_LOSS_DISCOUNT,
    LOG_LOSS_RATE,
    LOSS_DISCOUNT,
    MOST_LOG_BEHIND,
    MOST_LOG_LOSS,
    OWN_EXPECTATION_WEIGHT,
)
from orcast.engine.kernels.binary import (
    MOST_PRIOR,
    BinaryGame,
    BinaryInfo,
    committee,
    interpolate,
    log_odds,
    play,
    regret_scale,
    teach,
)
from orcast.engine.kernels.delays import delay_weight, delayed
from orcast.engine.kernels.records import Array
from orcast.jit import entry_kernel, kernel, kernel_part
from orcast.jit.ieee import exp, log, sqrt
from orcast.ledger import (
    Account,
    CertificateField,
    LedgerLayout,
    RoundLog,
    available_slack,
    combine,
    mean_size,
    settle,
    squared_norm,
    write_certificate,
)
from orcast.payoffs.hat_kernels import hat

# The temperature begins to grow after this many rounds.
SETTLING = 500.0
# Regret counts in units of this part of the expert's usual loss, or of the most that can come if that is larger.
REGRET_PART = 0.5
MISSING = -1.0


class BinaryRival(IntEnum):
    """What is remembered of an expert as a rival."""

    LOG_LOSS = 0  # discounted, for its weight in the pool
    BRIER = 1  # discounted sum
    COUNT = 2  # of these
    EXCESS = 3  # sum of the Brier score of what was played minus the rival's
    ROUNDS = 4  # in these


BINARY_RIVAL = len(BinaryRival)


class BinaryRules(NamedTuple):
    """What does not change from round to round."""

    layout: LedgerLayout
    hats: int  # of the forecast; 0 if there are none
    expert_hats: int
    bias: int
    regret: int
    rivals: int
    groups: int  # of all parts together
    bound: float
    discount: float
    temperature: float
    learns: int


class BinaryState(NamedTuple):
    """What is carried from round to round (see packing.binary_shapes)."""

    theta: Array  # coefficients of the committee
    spread: Array  # and their covariances
    loss: Array  # by horizon, of the learners, the expert and the mix of stage 1
    statistics: Array
    total: Array
    account: Array
    groups: Array
    rivals: Array
    last: Array  # the last error


class BinaryRound(NamedTuple):
    """What a forecast must remember until its outcome comes (see packing.binary_round_shapes)."""

    info: Array
    certificate: Array
    odds: Array  # what the committee records
    features: Array
    learners: Array  # log odds of each
    experts: Array  # probabilities
    units: Array  # of the regrets
    context: Array


@entry_kernel
def pool_probabilities(rivals, probabilities):
    """The experts' probabilities, averaged by how well each did; nan where one is missing."""
    best = np.inf
    for e in range(probabilities.shape[0]):
        if not np.isnan(probabilities[e]):
            best = min(best, rivals[e, BinaryRival.LOG_LOSS])
    total = 0.0
    mean = 0.0
    for e in range(probabilities.shape[0]):
        if not np.isnan(probabilities[e]):
            weight = exp(-LOG_LOSS_RATE * (rivals[e, BinaryRival.LOG_LOSS] - best))
            total += weight
            mean += weight * probabilities[e]
    return mean / total


@kernel_part
def payoff_size(rules):
    """Coordinates of the core payoff."""
    return rules.hats + rules.expert_hats + rules.bias + rules.regret * rules.rivals


@kernel_part
def place_experts(rules, rivals, probabilities, round):
    """The experts of a round and the units of the regrets against them."""
    xs, units = round.experts, round.units
    for e in range(rules.rivals):
        units[e] = 0.0
        # without a regret nothing else tells that an expert is missing
        xs[e] = 0.5 if rules.regret else MISSING
        if probabilities.shape[0] > 0 and not np.isnan(probabilities[e]):
            xs[e] = probabilities[e]
            if rules.regret:
                usual = OWN_EXPECTATION_WEIGHT * xs[e] * (1.0 - xs[e]) + rivals[e, BinaryRival.BRIER]
                usual *= REGRET_PART / (OWN_EXPECTATION_WEIGHT + rivals[e, BinaryRival.COUNT])
                units[e] = 1.0 / max(usual, 1e-6)


@kernel_part
def new_game(rules, total, round):
    """What the last layer plays on; an absent kind of payoff has two zeros, or nothing."""
    size = payoff_size(rules)
    owed = np.empty(size)
    squares = np.empty(size)
    combine(rules.layout, total, round.context, rules.discount, owed, squares)
    factors = np.zeros(4)
    nothing = np.zeros(2)
    at = rules.hats
    hats = nothing
    if rules.hats:
        hats = owed[:at]
        factors[0] = squares[0]
    expert_hats = nothing
    if rules.expert_hats:
        expert_hats = owed[at : at + rules.expert_hats]
        factors[1] = squares[at]
    at += rules.expert_hats
    bias = 0.0
    if rules.bias:
        bias = owed[at]
        factors[2] = squares[at]
    at += rules.bias
    rivals = 0
    if rules.regret:
        factors[3] = squares[at]
        rivals = rules.rivals
    x = round.info[BinaryInfo.POOL]
    return BinaryGame(
        hats,
        expert_hats,
        bias,
        owed[at : at + rivals],
        round.experts[:rivals],
        round.units[:rivals],
        factors,
        round.info[BinaryInfo.PRIOR],
        x,
        interpolate(expert_hats, x) + bias,
    )


@kernel
def predict(rules, state, probabilities, pending, reserved, round):
    """Fill a round: the prior, the forecast to play and its certificate.  The state is only read."""
    info, account = round.info, state.account
    has_expert = probabilities.shape[0] > 0
    x = 0.5
    if has_expert:
        x = probabilities[0] if rules.rivals == 1 else pool_probabilities(state.rivals, probabilities)
    info[BinaryInfo.PENDING] = pending
    info[BinaryInfo.HAS_EXPERT] = 1.0 if has_expert else 0.0
    info[BinaryInfo.POOL] = x
    place_experts(rules, state.rivals, probabilities, round)
    kappa = rules.temperature
    if rules.learns and has_expert:
        info[BinaryInfo.PRIOR] = committee(state, x, round)
        # what is owed by chance alone grows with the root of the rounds
        settled = min(account[Account.ROUNDS], 1.0 / max(1.0 - rules.discount, 1e-12))
        kappa = rules.temperature * sqrt(1.0 + settled / SETTLING)
    else:
        info[BinaryInfo.PRIOR] = log_odds(x, MOST_PRIOR)
    square = squared_norm(rules.layout.sides, state.total)
    free = available_slack(
        rules.layout, account, state.groups, state.total, square, round.context, rules.discount, reserved
    )
    game = new_game(rules, state.total, round)
    p, used, linear, bound = play(game, kappa, pending, free, account[Account.BUDGET])
    info[BinaryInfo.PLAYED] = p
    info[BinaryInfo.TEMPERATURE] = used
    write_certificate(account, rules.discount, square, free, linear, bound, rules.bound, round.certificate)


@kernel
def payoff(rules, round, y, out):
    """The payoff of an outcome, before contexts and weights."""
    p = round.info[BinaryInfo.PLAYED]
    for i in range(out.shape[0]):
        out[i] = 0.0
    if rules.hats:
        k, share = hat(p, rules.hats)
        out[k] = (1.0 - share) * (p - y)
        out[k + 1] = share * (p - y)
    at = rules.hats
    if rules.expert_hats:
        k, share = hat(round.info[BinaryInfo.POOL], rules.expert_hats)
        out[at + k] = (1.0 - share) * (p - y)
        out[at + k + 1] = share * (p - y)
    at += rules.expert_hats
    if rules.bias:
        out[at] = p - y
    at += rules.bias
    if rules.regret:
        for e in range(rules.rivals):
            x, unit = round.experts[e], round.units[e]
            if unit > 0.0:
                out[at + e] = regret_scale(p, x, unit) * ((p - y) * (p - y) - (x - y) * (x - y))


@kernel_part
def learn_rivals(rules, rivals, round, y):
    """The weight of each expert in the pool, and how each fares as a rival."""
    p = round.info[BinaryInfo.PLAYED]
    weight = delay_weight(round.info[BinaryInfo.PENDING])
    kept = delayed(BINARY_LOSS_DISCOUNT, weight)
    x = round.info[BinaryInfo.POOL]
    pooled = min(-log(max(x if y > 0.5 else 1.0 - x, 1e-300)), MOST_LOG_LOSS)
    best = np.inf
    for e in range(rules.rivals):
        best = min(best, rivals[e, BinaryRival.LOG_LOSS])
    for e in range(rules.rivals):
        present = round.units[e] > 0.0 if rules.regret else round.experts[e] != MISSING
        x = round.experts[e]
        rival = rivals[e]
        own = min(-log(max(x if y > 0.5 else 1.0 - x, 1e-300)), MOST_LOG_LOSS) if present else pooled
        behind = min(rival[BinaryRival.LOG_LOSS], best + MOST_LOG_BEHIND)
        rival[BinaryRival.LOG_LOSS] = kept * behind + weight * own
        if present:
            rival[BinaryRival.BRIER] = LOSS_DISCOUNT * rival[BinaryRival.BRIER] + (x - y) * (x - y)
            rival[BinaryRival.COUNT] = LOSS_DISCOUNT * rival[BinaryRival.COUNT] + 1.0
            rival[BinaryRival.EXCESS] += (p - y) * (p - y) - (x - y) * (x - y)
            rival[BinaryRival.ROUNDS] += 1.0


@kernel
def update(rules, state, round, reserved, y):
    """Settle the outcome of a round and teach the committee."""
    coordinates = np.empty(payoff_size(rules))
    payoff(rules, round, y, coordinates)
    settle(
        rules.layout,
        state.account,
        state.groups,
        state.total,
        round.context,
        rules.discount,
        reserved,
        coordinates,
        round.certificate,
    )
    state.last[0] = y - round.info[BinaryInfo.PLAYED]
    if round.info[BinaryInfo.HAS_EXPERT] == 0.0:
        return
    learn_rivals(rules, state.rivals, round, y)
    if rules.learns:
        teach(state, round, y)


@entry_kernel
def run(rules, state, probabilities, contexts, outcomes, round, played, round_log):
    """Many rounds in one go, each outcome known before the next forecast; writes down what came of each."""
    for t in range(outcomes.shape[0]):
        round.context[:] = contexts[t]
        predict(rules, state, probabilities[t], 0.0, 0.0, round)
        p = round.info[BinaryInfo.PLAYED]
        played[t] = p
        round_log[t, RoundLog.MEAN] = p
        round_log[t, RoundLog.SD] = sqrt(p * (1.0 - p))
        round_log[t, RoundLog.HOLDS] = round.certificate[CertificateField.HOLDS]
        round_log[t, RoundLog.PROMISED] = round.certificate[CertificateField.PROMISED]
        round_log[t, RoundLog.EXCESS] = round.certificate[CertificateField.EXCESS]
        update(rules, state, round, 0.0, outcomes[t])
        square = squared_norm(rules.layout.sides, state.total)
        round_log[t, RoundLog.MISCALIBRATION] = mean_size(square, state.account)
