"""State of a recalibrator on a finite space: its rules, its memory and its pending rounds.

Each object owns one row of numbers (`row`), which is what is saved; see `state`.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

import math
import threading

import numpy as np

from orcast.kernels import records
from orcast.kernels.state import Layout, places, view

if not cython.compiled:
    from orcast.kernels.pure import (
        as_account,
        as_binary_features,
        as_binary_odds,
        as_binary_statistics,
        as_certificate,
        as_finite_info,
        as_finite_members,
        as_finite_rivals,
        as_group_accounts,
    )
    from orcast.kernels.rows import cut, numbers_of
    from orcast.kernels.state import HORIZONS

# --- logistic learners on two cells

# Knots of the hat functions of the expert's log odds; features, and their prior variances.
KNOTS = (-4.0, -2.4, -1.1, 0.0, 1.1, 2.4, 4.0)
HATS = len(records.BINARY_FEATURES)
FEATURES = HATS + len(KNOTS)
VARIANCES = (0.3, 0.1, 0.05, 0.9, 1.8, 1.8, 0.9, 0.9, 0.3, 0.9, 2.0, *(5 * (0.3,)), 2.0)


def features_named(*names):
    """Positions of features."""
    return tuple(records.BINARY_FEATURES.index(name) for name in names)


PLATT = features_named("one", "log_odds")
ERRORS = features_named("error", "fast", "slow")
STATE = (*PLATT, *ERRORS, *features_named("outcome", "mean"))
LONG_STATE = (*STATE, *features_named("change", "before"))
# Stage of each learner, time constant of its drift in outcomes (0: none), features.
LEARNER_TABLE = (
    (1, 0, PLATT),
    (1, 1000, PLATT),
    (1, 0, (*PLATT, *features_named("skew"))),
    (1, 3000, tuple(range(HATS, FEATURES))),
    (2, 30, features_named("one")),
    (2, 200, PLATT),
    (2, 2000, (*features_named("one"), *ERRORS)),
    (2, 20000, STATE),
    (2, 20000, LONG_STATE),
    (2, 500, LONG_STATE),
)
LEARNERS = len(LEARNER_TABLE)
FIRST_STAGE = sum(stage == 1 for stage, _, _ in LEARNER_TABLE)
# Features of each learner, and the largest number of them.
USED = tuple(len(used) for _, _, used in LEARNER_TABLE)
MOST_USED = max(USED)
COEFFICIENTS, COVARIANCES = sum(USED), sum(count * count for count in USED)
# Losses of the expert and of the mix of stage 1 come after those of the learners.
LOSSES = LEARNERS + 2

# Sizes of the records of a round.
FINITE_INFO_SIZE, CERTIFICATE_SIZE = len(records.FINITE_INFO), len(records.CERTIFICATE)
ODDS_SIZE = len(records.BINARY_ODDS)
# Places of the numbers of the records that Python reads.
FINITE_FIELDS = {
    name: {field: i for i, field in enumerate(fields)}
    for name, fields in (("info", records.FINITE_INFO), ("certificate", records.CERTIFICATE))
}

THREAD = threading.local()


class FiniteRules:
    """Constants of a recalibrator on a finite space.

    The core payoff has, in this order: hats of the forecast and hats of the expert (for each vertex all events), the
    bias of the event 1, the Brier score of each expert.

    Options: `events` are the last ones of the cells; `hats` and `expert_hats` the vertices for each event (0: none);
    the Brier score is `brier` times |p - e_y|^2; `rivals` counts the experts; `logistic` is 1 if logistic learners
    correct the expert, as on two cells, else members do; `members` has a row of options for each member; `moved` is
    the number of learners that move the pool along the axes of the space.
    """

    def __init__(self, layout: Layout, **options):
        self.layout, self.options = layout, options
        self.cells, self.events = options["cells"], options["events"]
        self.hats, self.expert_hats = options["hats"], options["expert_hats"]
        self.bias, self.regret, self.brier = options["bias"], options["regret"], options["brier"]
        self.rivals, self.groups = options["rivals"], layout.groups
        self.bound, self.discount = options["bound"], options["discount"]
        self.temperature, self.learns = options["temperature"], options["learns"]
        self.logistic, self.moved = options["logistic"], options["moved"]
        self.row = np.array(options["members"], dtype=np.float64).ravel()
        self.members = as_finite_members(numbers_of(self.row))
        self.member_count = 0 if self.logistic else len(options["members"])
        self.first = self.cells - self.events
        self.payoff_size = (self.hats + self.expert_hats) * self.events + self.bias + self.regret * self.rivals
        self.state_places, self.state_size = places(finite_state_shapes(self))
        self.round_places, self.round_size = places(finite_round_shapes(self))

    def __reduce__(self):
        return restored_finite_rules, (self.layout, self.options)


def restored_finite_rules(layout, options):
    """Rules from their options; for pickling."""
    return FiniteRules(layout, **options)


def finite_state_shapes(rules):
    """Shapes of the arrays of a state, which has logistic learners or members."""
    logistic, members = rules.logistic, rules.member_count
    return {
        "total": (rules.layout.size,),
        "account": (len(records.ACCOUNT),),
        "groups": (rules.groups, len(records.GROUP_ACCOUNT)),
        "pool": (rules.rivals,),
        "rivals": (rules.rivals, len(records.FINITE_RIVAL)),
        "last": (1,),
        "warm": (rules.cells * (1 - logistic),),
        "theta": (logistic * COEFFICIENTS,),
        "spread": (logistic * COVARIANCES,),
        "learner_loss": (logistic * HORIZONS, LOSSES),
        "statistics": (logistic * len(records.BINARY_STATISTICS),),
        "scale": (members,),
        "scale_sum": (members,),
        "shift": (members, rules.cells),
        "shift_sum": (members, rules.cells),
        "loss": ((members + 1) * (1 - logistic),),
    }


def finite_round_shapes(rules):
    """Shapes of the arrays of a round."""
    logistic, cells = rules.logistic, rules.cells
    return {
        "info": (FINITE_INFO_SIZE,),
        "certificate": (CERTIFICATE_SIZE,),
        "context": (rules.groups,),
        "experts": (rules.rivals, cells),
        "units": (rules.rivals,),
        "pool": (cells,),
        "base": (cells,),
        "prior": (cells,),
        "played": (cells,),
        "odds": (logistic * ODDS_SIZE,),
        "features": (logistic * FEATURES,),
        "learners": (logistic * LEARNERS,),
        "members": (rules.member_count, cells),
        "moved": (rules.moved, cells),
    }


class FiniteState:
    """Numbers that are carried from round to round; their count is constant.

    pool: discounted log loss of each expert; last: last error of the event 1; warm: last forecast against its prior in
    log masses, where the dense engine starts. Of the logistic learners: theta (coefficients), spread (covariances),
    learner_loss (by horizon; the learners, the expert, the mix of stage 1), statistics. Of the members: scale, shift,
    sums of their curvatures, and loss (the members and the expert).
    """

    def __init__(self, rules: FiniteRules):
        self.rules = rules
        self.row = np.zeros(rules.state_size)
        row = numbers_of(self.row)
        at = {name: place[0] for name, place in rules.state_places.items()}
        size = {name: math.prod(place[1]) for name, place in rules.state_places.items()}
        self.numbers = row
        self.total = cut(row, at["total"], size["total"])
        self.account = as_account(cut(row, at["account"], size["account"]))
        self.groups = as_group_accounts(cut(row, at["groups"], size["groups"]))
        self.pool = cut(row, at["pool"], size["pool"])
        self.rivals = as_finite_rivals(cut(row, at["rivals"], size["rivals"]))
        self.last = cut(row, at["last"], size["last"])
        self.warm = cut(row, at["warm"], size["warm"])
        self.theta = cut(row, at["theta"], size["theta"])
        self.spread = cut(row, at["spread"], size["spread"])
        self.learner_loss = cut(row, at["learner_loss"], size["learner_loss"])
        self.statistics = as_binary_statistics(cut(row, at["statistics"], size["statistics"]))
        self.scale = cut(row, at["scale"], size["scale"])
        self.scale_sum = cut(row, at["scale_sum"], size["scale_sum"])
        self.shift = cut(row, at["shift"], size["shift"])
        self.shift_sum = cut(row, at["shift_sum"], size["shift_sum"])
        self.loss = cut(row, at["loss"], size["loss"])

    def view(self, name):
        """Array of the state, as a view of its row."""
        return view(self.row, *self.rules.state_places[name])

    def views(self):
        """All arrays of the state by name."""
        return {name: view(self.row, *place) for name, place in self.rules.state_places.items()}

    def __reduce__(self):
        return restored_finite_state, (self.rules, self.row)


def restored_finite_state(rules, row):
    """State from its row; for pickling."""
    state = FiniteState(rules)
    state.row[:] = row
    return state


class FiniteRound:
    """Numbers of a forecast that its outcome will need; a new round has contexts of 1.

    experts: masses, a row each, nan where missing; units: of the regrets; pool: mean of the experts; base: where the
    members start, the pool moved along the axes if there are any; played: the forecast; odds, features, learners: of
    the logistic learners; members: masses of each; moved: the pool as each learner of the axes moves it.
    """

    def __init__(self, rules: FiniteRules):
        self.rules, self.row = rules, np.zeros(rules.round_size)
        self.attach()
        for i in range(rules.groups):
            self.context[i] = 1.0

    def attach(self):
        """Let the fields lie in the row."""
        rules = self.rules
        row = numbers_of(self.row)
        cells, rivals, logistic, at = rules.cells, rules.rivals, rules.logistic, FINITE_INFO_SIZE
        self.numbers = row
        self.info = as_finite_info(cut(row, 0, FINITE_INFO_SIZE))
        self.certificate = as_certificate(cut(row, at, CERTIFICATE_SIZE))
        at += CERTIFICATE_SIZE
        self.context = cut(row, at, rules.groups)
        at += rules.groups
        self.experts = cut(row, at, rivals * cells)
        at += rivals * cells
        self.units = cut(row, at, rivals)
        at += rivals
        self.pool, self.base = cut(row, at, cells), cut(row, at + cells, cells)
        self.prior, self.played = cut(row, at + 2 * cells, cells), cut(row, at + 3 * cells, cells)
        at += 4 * cells
        self.odds = as_binary_odds(cut(row, at, logistic * ODDS_SIZE))
        at += logistic * ODDS_SIZE
        self.learner_features = cut(row, at, logistic * FEATURES)
        self.named = as_binary_features(cut(row, at, logistic * FEATURES))
        at += logistic * FEATURES
        self.learners = cut(row, at, logistic * LEARNERS)
        at += logistic * LEARNERS
        self.members = cut(row, at, rules.member_count * cells)
        at += rules.member_count * cells
        self.moved = cut(row, at, rules.moved * cells)

    def view(self, name):
        """Array of the round, as a view of its row."""
        return view(self.row, *self.rules.round_places[name])

    def views(self):
        """All arrays of the round by name."""
        return {name: view(self.row, *place) for name, place in self.rules.round_places.items()}

    def read(self, record, name):
        """Number of a record of the round, such as ("info", "temperature")."""
        return self.row.item(self.rules.round_places[record][0] + FINITE_FIELDS[record][name])

    def overdraft(self):
        """Slack that the round reserves."""
        return self.certificate.overdraft

    def holds(self):
        """Whether the certificate holds."""
        return self.certificate.holds > 0.0

    def probability(self, k):
        """Mass of cell k in the forecast."""
        return self.played[k]

    @property
    def certificate_row(self):
        """Numbers of the certificate, as a view of the row."""
        return self.row[FINITE_INFO_SIZE : FINITE_INFO_SIZE + CERTIFICATE_SIZE]

    def arrays(self):
        """Numbers of the round."""
        return {"row": self.row}

    def copied(self):
        """Copy with a row of its own."""
        return restored_finite_round(self.rules, self.row)

    def __reduce__(self):
        return restored_finite_round, (self.rules, self.row)


def restored_finite_round(rules, row):
    """Round from its numbers; for pickling and copies."""
    round = FiniteRound(rules)
    round.row[:] = row
    return round


class FiniteGame:
    """Problem of the last layer: cumulative payoffs, the experts and the prior; its rows are scratch memory.

    owed: cumulative payoff on the hats of the forecast, `events` columns for each of the `vertices`; first: cell of the
    first event; fixed: pull on each event that does not depend on p; fixed_size: factor of the squared error of each
    event, of the payoffs that do not depend on p; hat_factor: squared weight times the squared norm of the context, of
    the hats of the forecast; owed_regret: cumulative regret against each of the `rivals`; odds: log odds of the second
    cell in the prior.
    """


def finite_game():
    """Problem of the running thread."""
    try:
        return THREAD.game
    except AttributeError:
        THREAD.game = FiniteGame()
        return THREAD.game
