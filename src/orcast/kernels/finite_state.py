"""State of a recalibrator on a finite space: its rules, its memory and its pending rounds.

Each object owns one row of numbers (`row`), which is what is saved; see `state`.
"""

import math
import threading

import cython
import numpy as np

from orcast.kernels import records
from orcast.kernels.state import Layout, places, view

# Sizes of the records of a round.
FINITE_INFO_SIZE, CERTIFICATE_SIZE = len(records.FINITE_INFO), len(records.CERTIFICATE)
FEATURES = len(records.CELL_FEATURES)
# Places of the numbers of the records that Python reads.
FINITE_FIELDS = {
    name: {field: i for i, field in enumerate(fields)}
    for name, fields in (("info", records.FINITE_INFO), ("certificate", records.CERTIFICATE))
}

THREAD = threading.local()


def numbers_in(memory):
    """Numbers that lie in a bytearray; without numpy, which would take longer than most rounds have time for."""
    if cython.compiled:
        return pointer_to(memory)
    return memoryview(memory).cast("d")


class FiniteRules:
    """Constants of a recalibrator on a finite space.

    The core payoff has, in this order: hats of the forecast and hats of the expert (for each vertex all events), the
    bias of the event 1, the Brier score of each expert.

    Options: `events` are the last ones of the cells; `hats` and `expert_hats` the vertices for each event (0: none);
    the Brier score is `brier` times |p - e_y|^2; `rivals` counts the experts; `two_cells` is 1 if the forecast is
    found as a root; `members` has a row of options for each member; `moved` is the number of members that move an
    expert along the axes of the space. Of each expert there are `rows` masses: its own, moved ones, members. `nodes`
    are the probabilities from which those of the events are drawn, empty if the forecast is not drawn.
    """

    def __init__(self, layout: Layout, **options):
        self.layout, self.options = layout, options
        self.cells, self.events = options["cells"], options["events"]
        self.hats, self.expert_hats = options["hats"], options["expert_hats"]
        self.bias, self.regret, self.brier = options["bias"], options["regret"], options["brier"]
        self.rivals, self.groups = options["rivals"], layout.groups
        self.bound, self.discount = options["bound"], options["discount"]
        self.temperature, self.two_cells, self.moved = options["temperature"], options["two_cells"], options["moved"]
        self.row = np.array(options["members"], dtype=np.float64).ravel()
        self.members = as_finite_members(numbers_of(self.row))
        self.member_count = len(options["members"])
        self.grid = np.array(options["nodes"], dtype=np.float64)
        self.nodes, self.drawn = numbers_of(self.grid), int(len(self.grid) > 0)
        self.rows = 1 + self.moved + self.member_count
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
    """Shapes of the arrays of a state."""
    members = rules.rivals * rules.member_count
    return {
        "total": (rules.layout.size,),
        "account": (len(records.ACCOUNT),),
        "groups": (rules.groups, len(records.GROUP_ACCOUNT)),
        "rivals": (rules.rivals, len(records.FINITE_RIVAL)),
        "last": (1,),
        "warm": (rules.cells * (1 - rules.two_cells),),
        "regret": (rules.rivals, rules.rows),
        "square": (rules.rivals, rules.rows),
        "theta": (members, FEATURES),
        "curvature": (members, FEATURES, FEATURES),
        "shift": (members, rules.cells),
        "shift_curvature": (members, rules.cells),
        "errors": (rules.rivals, 2, rules.cells),
        "outcomes": (3, rules.cells),
        "observed": (1,),
        "empirical": (rules.hats, rules.events),
        "counts": (len(records.COUNTS),),
    }


def finite_round_shapes(rules):
    """Shapes of the arrays of a round."""
    rivals, cells = rules.rivals, rules.cells
    return {
        "info": (FINITE_INFO_SIZE,),
        "certificate": (CERTIFICATE_SIZE,),
        "context": (rules.groups,),
        "experts": (rivals, cells),
        "units": (rivals,),
        "pool": (cells,),
        "prior": (cells,),
        "result": (cells,),
        "features": (rivals * min(rules.member_count, 1), cells, FEATURES),
        "members": (rivals, rules.rows, cells),
    }


class FiniteState:
    """Numbers that are carried from round to round; their count is constant.

    last: last error of the event 1; warm: last forecast against its prior in log masses, where the dense engine starts;
    regret, square: discounted sums of each row of masses of each expert. Of the members: theta (coefficients), shift
    and their curvatures. errors: last and mean error of each expert; outcomes: the mean, then the last and the one
    before minus the mean; observed: their number. empirical: sums of published probability minus outcome in each bin.
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
        self.rivals = as_finite_rivals(cut(row, at["rivals"], size["rivals"]))
        self.last = cut(row, at["last"], size["last"])
        self.warm = cut(row, at["warm"], size["warm"])
        self.regret = cut(row, at["regret"], size["regret"])
        self.square = cut(row, at["square"], size["square"])
        self.theta = cut(row, at["theta"], size["theta"])
        self.curvature = cut(row, at["curvature"], size["curvature"])
        self.shift = cut(row, at["shift"], size["shift"])
        self.shift_curvature = cut(row, at["shift_curvature"], size["shift_curvature"])
        self.errors = cut(row, at["errors"], size["errors"])
        self.outcomes = cut(row, at["outcomes"], size["outcomes"])
        self.observed = cut(row, at["observed"], size["observed"])
        self.empirical = cut(row, at["empirical"], size["empirical"])
        self.counts = as_counts(cut(row, at["counts"], size["counts"]))

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

    experts: masses, a row each, nan where missing; units: of the regrets; pool: mean of the experts; prior: mix of the
    members; played: the forecast; inputs (the array "features"): by expert and cell; members: masses of each expert, as
    it is, moved along the axes, and corrected.
    """

    def __init__(self, rules: FiniteRules):
        self.rules, self.memory, self.array = rules, bytearray(8 * rules.round_size), None
        self.attach()
        for i in range(rules.groups):
            self.context[i] = 1.0

    @property
    def row(self):
        """All numbers of the round as an array."""
        if self.array is None:
            self.array = np.frombuffer(self.memory)
        return self.array

    def attach(self):
        """Let the fields lie in the row."""
        rules = self.rules
        row = numbers_in(self.memory)
        cells, rivals, at = rules.cells, rules.rivals, FINITE_INFO_SIZE
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
        self.pool, self.prior = cut(row, at, cells), cut(row, at + cells, cells)
        self.result = cut(row, at + 2 * cells, cells)
        at += 3 * cells
        size = rivals * min(rules.member_count, 1) * cells * FEATURES
        self.inputs = cut(row, at, size)
        self.members = cut(row, at + size, rivals * rules.rows * cells)

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
        """True if the certificate holds."""
        return self.certificate.holds > 0.0

    def draw(self):
        """Random number in (0, 1) by which the forecast is drawn; 0 for none."""
        return self.info.draw

    def set_draw(self, draw):
        """Give the round a random number in (0, 1)."""
        self.info.draw = draw

    def probability(self, k):
        """Mass of cell k in the forecast."""
        return self.result[k]

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

    cumulative: sums on the hats of the forecast, `events` columns for each of the `vertices`, which are `nodes` if the
    forecast is `drawn`; first: cell of the first event; fixed: pull on each event that does not depend on p;
    fixed_size: factor of the squared error of each event, of the payoffs that do not depend on p; hat_factor: squared
    weight times the squared norm of the context, of the hats of the forecast; cumulative_regret: against each of the
    `rivals`; odds: log odds of the second cell in the prior. `w` is the scratch memory of the thread.
    """

    def __init__(self):
        self.w = workspace()


def finite_recal():
    """Problem of the running thread."""
    try:
        return THREAD.recal
    except AttributeError:
        THREAD.recal = FiniteGame()
        return THREAD.recal
