"""Compiled kernels of a round on a finite space: the committee's prior, the forecast under the guarantee, the ledger.

The core of the payoff is, in this order: hats of the forecast and hats of the expert (for each vertex all events), the
bias of the event 1, the Brier score of each expert.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from orcast.constants import BINARY_LOSS_DISCOUNT, LOSS_DISCOUNT, OWN_EXPECTATION_WEIGHT
from orcast.engine.kernels.binary import MOST_PRIOR, committee, log_odds
from orcast.engine.kernels.binary import teach as teach_learners
from orcast.engine.kernels.delays import delay_weight
from orcast.engine.kernels.finite import learn_pool, mix_members, pool_masses, teach_members
from orcast.engine.kernels.finite_game import (
    FiniteGame,
    interpolate,
    play,
    regret_scale,
    sigmoid,
    squares_ahead,
)
from orcast.engine.kernels.records import Array
from orcast.jit import entry_kernel, kernel, kernel_part
from orcast.jit.ieee import sqrt
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

# The usual temperature on two cells, and after how many rounds it begins to grow there.
BINARY_TEMPERATURE, SETTLING = 6.0, 500.0
# On two cells regret counts in units of this part of the expert's usual loss, or of the most that can come.
REGRET_PART = 0.5
LEAST_UNIT = 1e-6


class FiniteInfo(IntEnum):
    """Numbers of a round."""

    PENDING = 0  # outcomes outstanding when the forecast was made
    TEMPERATURE = 1
    HAS_EXPERT = 2
    ODDS = 3  # log odds of the prior, on two cells


class FiniteRival(IntEnum):
    """What is remembered of an expert."""

    BRIER = 0  # discounted sum
    COUNT = 1  # of these
    EXCESS = 2  # sum of the Brier score of what was played minus the expert's
    ROUNDS = 3  # in these


FINITE_INFO, FINITE_RIVAL = len(FiniteInfo), len(FiniteRival)


class FiniteRules(NamedTuple):
    """What does not change from round to round."""

    layout: LedgerLayout
    cells: int
    events: int  # the last ones of the cells
    hats: int  # of the forecast, an event; 0 if there are none
    expert_hats: int
    bias: int
    regret: int
    brier: float  # the Brier score is this times |p - e_y|^2
    rivals: int
    groups: int  # of all parts together
    bound: float
    discount: float
    temperature: float
    learns: int
    logistic: int  # whether logistic learners correct the expert, as they do on two cells, or members
    members: Array  # options of the members, a row each
    moved: int  # learners that move the pool along the axes of the space


class FiniteState(NamedTuple):
    """What is carried from round to round (see packing.finite_shapes)."""

    total: Array
    account: Array
    groups: Array
    pool: Array  # discounted log loss of each expert
    rivals: Array
    last: Array  # the last error of the event 1
    warm: Array  # where the dense engine starts: the last forecast against its prior, in log masses
    # of the logistic learners
    theta: Array  # coefficients
    spread: Array  # and their covariances
    learner_loss: Array  # by horizon, of the learners, the expert and the mix of stage 1
    statistics: Array
    # of the members
    scale: Array
    scale_sum: Array
    shift: Array
    shift_sum: Array
    loss: Array  # of the members and the expert


class FiniteRound(NamedTuple):
    """What a forecast must remember until its outcome comes (see packing.finite_round_shapes)."""

    info: Array
    certificate: Array
    context: Array
    experts: Array  # masses, a row each, nan where missing
    units: Array  # of the regrets
    pool: Array
    base: Array  # what the members start from: the pool, moved along the axes if there are any
    prior: Array
    played: Array
    odds: Array  # what the logistic learners record
    features: Array
    learners: Array  # log odds of each
    members: Array  # masses of each member
    moved: Array  # the pool as the learners of the axes move it


@kernel_part
def payoff_size(rules):
    """Coordinates of the core payoff."""
    return (rules.hats + rules.expert_hats) * rules.events + rules.bias + rules.regret * rules.rivals


@kernel_part
def place_experts(rules, state, experts, round):
    """The experts of a round, their pool, and the units of the regrets against them."""
    round.info[FiniteInfo.HAS_EXPERT] = 1.0 if experts.shape[0] > 0 else 0.0
    round.units[:] = 0.0
    round.experts[:] = np.nan
    round.pool[:] = 1.0 / rules.cells
    round.base[:] = round.pool
    if experts.shape[0] == 0:
        return
    round.experts[:] = experts
    pool_masses(state.pool, experts, round.pool)
    round.base[:] = round.pool
    if not rules.regret:
        return
    for e in range(rules.rivals):
        if not np.isnan(experts[e, 0]):
            expected = 1.0
            for c in range(rules.cells):
                expected -= experts[e, c] * experts[e, c]
            rival = state.rivals[e]
            usual = OWN_EXPECTATION_WEIGHT * rules.brier * expected + rival[FiniteRival.BRIER]
            usual /= OWN_EXPECTATION_WEIGHT + rival[FiniteRival.COUNT]
            round.units[e] = 1.0 / max(usual * REGRET_PART if rules.logistic else usual, LEAST_UNIT)


@kernel_part
def set_prior(rules, state, pending, round):
    """What the committee expects; the state is only read."""
    learns = rules.learns and round.info[FiniteInfo.HAS_EXPERT] > 0.0
    if not rules.logistic:
        if round.info[FiniteInfo.HAS_EXPERT] > 0.0:
            mix_members(rules.members, state, round.base, pending, round.members, round.prior)
        else:
            round.prior[:] = round.pool
        return
    odds = committee(state, round.pool[1], pending, round) if learns else log_odds(round.pool[1], MOST_PRIOR)
    round.info[FiniteInfo.ODDS] = odds
    round.prior[1] = sigmoid(odds)
    round.prior[0] = 1.0 - round.prior[1]


@kernel_part
def new_game(rules, total, round):
    """What the last layer plays on; an absent kind of payoff has zeros, or nothing."""
    size = payoff_size(rules)
    owed = np.empty(size)
    squares = np.empty(size)
    combine(rules.layout, total, round.context, rules.discount, owed, squares)
    events = rules.events
    first = rules.cells - events
    fixed = np.zeros(events)
    fixed_size = np.zeros(events)
    hats = np.zeros((2, events))
    hat_factor = 0.0
    at = rules.hats * events
    if rules.hats:
        hats = owed[:at].reshape((rules.hats, events))
        hat_factor = squares[0]
    if rules.expert_hats:
        end = at + rules.expert_hats * events
        given = owed[at:end].reshape((rules.expert_hats, events))
        for j in range(events):
            x = round.pool[first + j]
            _, share = hat(x, rules.expert_hats)
            fixed[j] = interpolate(given, j, x)
            fixed_size[j] = squares[at] * (share * share + (1.0 - share) * (1.0 - share))
        at = end
    if rules.bias:
        fixed[0] += owed[at]
        fixed_size[0] += squares[at]
        at += 1
    rivals = rules.rivals if rules.regret else 0
    return FiniteGame(
        hats,
        first,
        fixed,
        fixed_size,
        hat_factor,
        owed[at : at + rivals],
        squares[at] if rivals > 0 else 0.0,
        round.experts[:rivals],
        round.units[:rivals],
        rules.brier,
        round.prior,
        round.info[FiniteInfo.ODDS],
    )


@kernel
def predict(rules, state, experts, pending, reserved, round):
    """Fill a round: the prior, the forecast and its certificate.  The state is only read."""
    info, account = round.info, state.account
    info[FiniteInfo.PENDING] = pending
    info[FiniteInfo.ODDS] = 0.0
    place_experts(rules, state, experts, round)
    set_prior(rules, state, pending, round)
    kappa = rules.temperature
    if rules.logistic and rules.learns and info[FiniteInfo.HAS_EXPERT] > 0.0:
        # what is owed by chance alone grows with the root of the rounds
        settled = min(account[Account.ROUNDS], 1.0 / max(1.0 - rules.discount, 1e-12))
        kappa *= sqrt(1.0 + settled / SETTLING)
    square = squared_norm(rules.layout.sides, state.total)
    free = available_slack(
        rules.layout, account, state.groups, state.total, square, round.context, rules.discount, reserved
    )
    game = new_game(rules, state.total, round)
    used, linear, bound = play(game, kappa, pending, free, account[Account.BUDGET], round.played)
    info[FiniteInfo.TEMPERATURE] = used
    write_certificate(account, rules.discount, square, free, linear, bound, rules.bound, round.certificate)


@kernel_part
def excess(rules, round, e, y):
    """The Brier score of what was played minus an expert's, for an outcome in cell y."""
    p, x = round.played, round.experts[e]
    return rules.brier * (squares_ahead(p, x) - 2.0 * (p[y] - x[y]))


@kernel
def payoff(rules, round, y, out):
    """The payoff of an outcome in cell y, before contexts and weights."""
    p, events = round.played, rules.events
    first = rules.cells - events
    out[:] = 0.0
    at = rules.hats * events
    for j in range(events):
        error = p[first + j] - (1.0 if y == first + j else 0.0)
        if rules.hats:
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
                out[at + e] = regret_scale(p, round.experts[e], unit, rules.brier) * excess(rules, round, e, y)


@kernel_part
def learn_rivals(rules, rivals, round, y):
    """How the experts fare, and how what was played compares."""
    for e in range(rules.rivals):
        x, rival = round.experts[e], rivals[e]
        if not np.isnan(x[0]):
            loss = 1.0 - 2.0 * x[y]
            for c in range(rules.cells):
                loss += x[c] * x[c]
            rival[FiniteRival.BRIER] = LOSS_DISCOUNT * rival[FiniteRival.BRIER] + rules.brier * loss
            rival[FiniteRival.COUNT] = LOSS_DISCOUNT * rival[FiniteRival.COUNT] + 1.0
            rival[FiniteRival.EXCESS] += excess(rules, round, e, y)
            rival[FiniteRival.ROUNDS] += 1.0


@kernel
def update(rules, state, round, reserved, y):
    """Settle an outcome in cell y and update the committee."""
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
    state.last[0] = y - round.played[1]
    if round.info[FiniteInfo.HAS_EXPERT] == 0.0:
        return
    pending = round.info[FiniteInfo.PENDING]
    weight = delay_weight(pending)
    discount = BINARY_LOSS_DISCOUNT if rules.logistic else LOSS_DISCOUNT
    learn_pool(state.pool, round.experts, round.pool, weight, discount, y)
    learn_rivals(rules, state.rivals, round, y)
    if not rules.logistic:
        teach_members(rules.members, state, round.base, round.members, weight, y)
    elif rules.learns:
        teach_learners(state, round, pending, float(y))


@entry_kernel
def run(rules, state, experts, contexts, outcomes, round, played, round_log):
    """Many rounds in one go, each outcome known before the next forecast; writes down what came of each."""
    for t in range(outcomes.shape[0]):
        round.context[:] = contexts[t]
        predict(rules, state, experts[t], 0.0, 0.0, round)
        played[t] = round.played
        round_log[t, RoundLog.HOLDS] = round.certificate[CertificateField.HOLDS]
        round_log[t, RoundLog.PROMISED] = round.certificate[CertificateField.PROMISED]
        round_log[t, RoundLog.EXCESS] = round.certificate[CertificateField.EXCESS]
        update(rules, state, round, 0.0, outcomes[t])
        square = squared_norm(rules.layout.sides, state.total)
        round_log[t, RoundLog.MISCALIBRATION] = mean_size(square, state.account)
