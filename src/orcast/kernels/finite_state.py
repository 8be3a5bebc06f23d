"""State of a recalibrator on a finite space: its rules, its memory and its pending rounds.

Each object owns one row of numbers (`row`), which is what is saved; see `state`.
"""

import numpy as np

from orcast.kernels import records
from orcast.kernels.state import Layout, LedgerState, Record, places, record_shapes, restored_rules, restored_state

FEATURES = len(records.CELL_FEATURES)


class FiniteRules:
    """Constants of a recalibrator on a finite space.

    The core payoff has, in this order: hats of the forecast and hats of the expert (for each vertex all events), the
    bias of the event 1, the Brier score of each expert.

    Options: `events` are the last ones of the cells; `hats` and `expert_hats` the vertices for each event (0: none);
    the Brier score is `brier` times |p - e_y|^2; `rivals` counts the experts; `two_cells` is 1 for an event and its
    complement; `members` has a row of options for each member; `moved` is the number of members that move an
    expert along the axes of the space. Of each expert there are `rows` masses: its own, moved ones, members. `nodes`
    are the probabilities from which those of the events are drawn, empty if the forecast is not drawn.
    """

    def __init__(self, layout: Layout, **options):
        self.layout, self.options = layout, options
        self.cells, self.events = options["cells"], options["events"]
        self.hats, self.expert_hats = options["hats"], options["expert_hats"]
        self.bias, self.regret, self.brier = options["bias"], options["regret"], options["brier"]
        self.rivals, self.groups, self.discount = options["rivals"], layout.groups, layout.discount
        self.temperature, self.two_cells, self.moved = options["temperature"], options["two_cells"], options["moved"]
        self.row = np.array(options["members"], dtype=np.float64).ravel()
        self.members = as_finite_members(numbers_of(self.row))
        self.member_count = len(options["members"])
        self.grid = np.array(options["nodes"], dtype=np.float64)
        self.nodes, self.drawn = numbers_of(self.grid), int(len(self.grid) > 0)
        self.rows = 1 + self.moved + self.member_count
        self.first = self.cells - self.events
        self.payoff_size = (self.hats + self.expert_hats) * self.events + self.bias + self.regret * self.rivals
        self.round_places, self.round_size = places(finite_round_shapes(self))

    def __reduce__(self):
        return restored_rules, (type(self), self.layout, self.options)


def finite_state_shapes(rules):
    """Shapes of the arrays of a state after its ledger."""
    members = rules.rivals * rules.member_count
    return {
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
        **record_shapes(rules),
        "experts": (rivals, cells),
        "units": (rivals,),
        "pool": (cells,),
        "prior": (cells,),
        "result": (cells,),
        "features": (rivals * min(rules.member_count, 1), cells, FEATURES),
        "members": (rivals, rules.rows, cells),
    }


class FiniteState(LedgerState):
    """Numbers that are carried from round to round; their count is constant.

    last: last error of the event 1; warm: last forecast against its prior in log masses, where the dense engine starts;
    regret, square: discounted sums of each row of masses of each expert. Of the members: theta (coefficients), shift
    and their curvatures. errors: last and mean error of each expert; outcomes: the mean, then the last and the one
    before minus the mean; observed: their number. empirical: sums of published probability minus outcome in each bin.
    """

    def __init__(self, rules: FiniteRules):
        LedgerState.__init__(self, rules.layout, finite_state_shapes(rules))
        self.rules = rules
        self.rivals, self.counts = as_finite_rivals(self.part("rivals")), as_counts(self.part("counts"))
        self.last, self.warm, self.empirical = self.part("last"), self.part("warm"), self.part("empirical")
        self.regret, self.square = self.part("regret"), self.part("square")
        self.theta, self.curvature = self.part("theta"), self.part("curvature")
        self.shift, self.shift_curvature = self.part("shift"), self.part("shift_curvature")
        self.errors, self.outcomes, self.observed = self.part("errors"), self.part("outcomes"), self.part("observed")

    def __reduce__(self):
        return restored_state, (FiniteState, self.rules, self.row)


class FiniteRound(Record):
    """Numbers of a forecast that its outcome will need; a new round has contexts of 1.

    experts: masses, a row each, nan where missing; units: of the regrets; pool: mean of the experts; prior: mix of the
    members; played: the forecast; inputs (the array "features"): by expert and cell; members: masses of each expert, as
    it is, moved along the axes, and corrected.
    """

    def __init__(self, rules: FiniteRules):
        self.rules, self.places = rules, rules.round_places
        self.memory, self.array, self.memo = bytearray(8 * rules.round_size), None, None
        self.attach()
        for i in range(rules.groups):
            self.context[i] = 1.0

    def attach(self):
        """Let the fields lie in the row."""
        rules, row = self.rules, numbers_in(self.memory)
        cells, rivals = rules.cells, rules.rivals
        at = attach_record(self, row, rules.groups)
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

    def probability(self, k):
        """Mass of cell k in the forecast."""
        return self.result[k]
