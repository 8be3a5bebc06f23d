"""State of a recalibrator on an ordered space: its rules, its memory and its pending rounds.

Each object owns one row of numbers (`row`), which is what is saved. Compiled, the fields are pointers into the row and
structs (`state.pxd`); uncompiled, they are memoryviews and objects with the same names.
"""

import math

import cython
import numpy as np

from orcast.kernels import records


def places(shapes):
    """Start and shape of each array of a row, and the length of the row."""
    found, at = {}, 0
    for name, shape in shapes.items():
        found[name] = (at, shape)
        at += math.prod(shape)
    return found, at


class Table:
    """Named arrays in a row of numbers: `places` has the start and shape of each."""

    def view(self, name):
        """Array, as a view of the row."""
        at, shape = self.places[name]
        return self.row[at : at + math.prod(shape)].reshape(shape)

    def views(self):
        """All arrays by name."""
        return {name: self.view(name) for name in self.places}

    def read(self, record, name):
        """Number of a record, such as ("statistics", "last_error")."""
        return self.row.item(self.places[record][0] + FIELDS[record][name])


class Layout:
    """Positions of the parts of a payoff in the ledger, their places in the core payoff, bounds and discount."""

    def __init__(self, parts, places, scale, bounds, sides, general: float, discount: float):
        self.part_table, self.place_list = np.reshape(parts, (-1, 6)), np.asarray(places)
        self.scales, self.bound_list, self.side_list = np.asarray(scale), np.asarray(bounds), np.asarray(sides)
        self.count, self.size, self.general, self.discount = len(parts), len(sides), general, discount
        self.groups = int(np.sum(np.reshape(parts, (-1, 6))[:, 2]))
        self.whole = np.concatenate((np.ravel(parts), places)).astype(np.int64)
        self.row = np.concatenate((scale, bounds, sides)).astype(np.float64)
        whole, row = whole_of(self.whole), numbers_of(self.row)
        self.parts = as_parts(cut_whole(whole, 0, 6 * self.count))
        self.places = cut_whole(whole, 6 * self.count, len(places))
        self.scale = cut(row, 0, self.count)
        self.bounds = cut(row, self.count, self.count)
        self.sides = cut(row, 2 * self.count, self.size)

    def __reduce__(self):
        arrays = self.part_table, self.place_list, self.scales, self.bound_list, self.side_list
        return Layout, (*arrays, self.general, self.discount)


class LedgerState(Table):
    """Sum of the payoffs and its accounts, at the start of a row; `shapes` are those of the arrays after them."""

    def __init__(self, layout: Layout, shapes=None):
        self.layout = layout
        own = {
            "total": (layout.size,),
            "account": (len(records.ACCOUNT),),
            "groups": (layout.groups, len(records.GROUP_ACCOUNT)),
        }
        self.places, size = places({**own, **(shapes or {})})
        self.row = np.zeros(size)
        self.numbers = numbers_of(self.row)
        self.total = self.part("total")
        self.account = as_account(self.part("account"))
        self.groups = as_group_accounts(self.part("groups"))

    def part(self, name):
        """Numbers of an array."""
        at, shape = self.places[name]
        return cut(self.numbers, at, math.prod(shape))

    def __reduce__(self):
        return restored_state, (type(self), self.layout, self.row)


class Rules:
    """Constants of a recalibrator on an ordered space.

    The core payoff has, in this order, a coordinate for each level, interval and power, the CRPS of each expert and the
    squared error of each expert.
    """

    def __init__(self, layout: Layout, **options):
        self.layout, self.options = layout, options
        arrays = [np.ascontiguousarray(options[name], dtype=np.float64) for name in RULE_ARRAYS]
        self.row = np.concatenate([array.ravel() for array in arrays])
        self.whole = np.ascontiguousarray(options["intervals"], dtype=np.int64).ravel()
        ends = np.cumsum([0] + [array.size for array in arrays])
        row = numbers_of(self.row)
        self.grid = cut(row, ends[0], ends[1] - ends[0])
        self.jumps = cut(row, ends[1], ends[2] - ends[1])
        self.levels = cut(row, ends[2], ends[3] - ends[2])
        self.intervals = whole_of(self.whole)
        self.grid_count, self.jump_count, self.level_count = len(arrays[0]), len(arrays[1]), len(arrays[2])
        self.interval_count = len(self.whole) // 2
        self.low, self.high = options["low"], options["high"]
        self.open_low, self.open_high = self.low == -math.inf, self.high == math.inf
        self.cells, self.tail_cells, self.experts = options["cells"], options["tail_cells"], options["experts"]
        self.learns = options["learns"]
        self.group_at, self.group_count = options["group_at"], options["group_count"]
        self.orders, self.crps, self.mse = options["orders"], options["crps"], options["mse"]
        self.temperature = options["temperature"]
        self.groups, self.discount = layout.groups, layout.discount
        self.capacity = self.cells + self.jump_count
        self.rival_rows = 1 if self.experts == 1 else 1 + self.experts
        self.payoff_size = self.level_count + self.interval_count + self.orders + (self.crps + self.mse) * self.experts
        self.round_places, self.round_size = places(round_shapes(self))

    def __reduce__(self):
        return restored_rules, (type(self), self.layout, self.options)


# Arrays among the options of the rules, in the order of their row.
RULE_ARRAYS = ("grid", "jumps", "levels")


def restored_rules(kind, layout, options):
    """Rules from their options; for pickling."""
    return kind(layout, **options)


def restored_state(kind, constants, row):
    """State from its rules, or the layout of a ledger alone, and its row; for pickling."""
    state = kind(constants)
    state.row[:] = row
    return state


def memory_shapes(rules):
    """Shapes of the arrays of a memory after its ledger."""
    return {
        "empirical": (rules.level_count,),
        "counts": (len(records.COUNTS),),
        "statistics": (len(records.STATISTICS),),
        "warm": (rules.capacity,),
        "misses": (rules.grid_count + 1,),
        "by_group": (3 * rules.group_count + 2,),
        "rivals": (rules.experts, len(records.RIVAL)),
    }


def record_shapes(rules):
    """Shapes of the arrays that all rounds start with."""
    return {"info": (INFO_SIZE,), "certificate": (CERTIFICATE_SIZE,), "context": (rules.groups,)}


def round_shapes(rules):
    """Shapes of the arrays of a round."""
    capacity, levels = rules.capacity, rules.grid_count
    return {
        **record_shapes(rules),
        "cells": (CELL_ROWS, capacity),
        "experts": (rules.rival_rows, levels),
        "before": (levels,),
        "rivals": (rules.experts, capacity),
        "crps_units": (rules.experts,),
        "mse_units": (rules.experts,),
        "expected": (rules.orders,),
    }


class Memory(LedgerState):
    """Numbers that are carried from round to round; their count is constant."""

    def __init__(self, rules: Rules):
        LedgerState.__init__(self, rules.layout, memory_shapes(rules))
        self.rules = rules
        self.empirical, self.counts = self.part("empirical"), as_counts(self.part("counts"))
        self.statistics = as_statistics(self.part("statistics"))
        self.warm, self.misses, self.by_group = self.part("warm"), self.part("misses"), self.part("by_group")
        self.rivals = as_rivals(self.part("rivals"))
        self.statistics.level_variance = 1.0

    def __reduce__(self):
        return restored_state, (Memory, self.rules, self.row)


class Record(Table):
    """Numbers of a round, in a bytearray: numpy would take longer than most rounds have time for."""

    @property
    def row(self):
        """All numbers of the round as an array."""
        if self.array is None:
            self.array = np.frombuffer(self.memory)
        return self.array

    def overdraft(self):
        """Slack that the round reserves."""
        return self.certificate.overdraft

    def arrays(self):
        """Numbers of the round."""
        memo = {} if self.memo is None else {"memo": self.memo}
        return {"row": self.row, **memo}

    def copied(self):
        """Copy in arrays of its own."""
        return restored_round(type(self), self.rules, self.row, self.memo)

    def __reduce__(self):
        return restored_round, (type(self), self.rules, self.row, self.memo)

    def draw(self):
        """Random number of the round; 0 for none."""
        return self.info.draw

    def set_draw(self, draw):
        """Give the round a random number in (0, 1)."""
        self.info.draw = draw

    @property
    def certificate_row(self):
        """Numbers of the certificate, as a view of the row."""
        return self.row[INFO_SIZE : INFO_SIZE + CERTIFICATE_SIZE]


def numbers_in(memory):
    """Numbers that lie in a bytearray."""
    if cython.compiled:
        return pointer_to(memory)
    return memoryview(memory).cast("d")


def attach_record(record, row, groups):
    """Let the fields that all rounds have lie in a row; return where it goes on."""
    record.numbers = row
    record.info = as_info(cut(row, 0, INFO_SIZE))
    record.certificate = as_certificate(cut(row, INFO_SIZE, CERTIFICATE_SIZE))
    record.context = cut(row, INFO_SIZE + CERTIFICATE_SIZE, groups)
    return INFO_SIZE + CERTIFICATE_SIZE + groups


class Round(Record):
    """Numbers of a forecast that its outcome will need; `memo` has those of the committee."""

    def __init__(self, rules: Rules):
        self.rules, self.memo = rules, None
        self.places, self.memory, self.array = rules.round_places, bytearray(8 * rules.round_size), None
        attach(rules, self, numbers_in(self.memory))

    def count(self):
        """Number of cells."""
        return int(self.info.cells)

    def cell_rows(self):
        """Left and right ends, prior, expert and forecast on the cells, as a view of the row."""
        return self.view("cells")[:5, : int(self.info.cells)]


def restored_round(kind, rules, row, memo=None):
    """Round from its numbers; for pickling and copies."""
    round = kind(rules)
    round.row[:], round.memo = row, memo
    return round


def attach(rules, round, row):
    """Let the fields of a round lie in a row of numbers."""
    capacity, levels, experts = rules.capacity, rules.grid_count, rules.experts
    at = attach_record(round, row, rules.groups)
    round.cells = cut(row, at, CELL_ROWS * capacity)
    at += CELL_ROWS * capacity
    round.left, round.right = cut(round.cells, 0, capacity), cut(round.cells, capacity, capacity)
    round.prior, round.expert = cut(round.cells, 2 * capacity, capacity), cut(round.cells, 3 * capacity, capacity)
    round.result, round.tilt = cut(round.cells, 4 * capacity, capacity), cut(round.cells, 5 * capacity, capacity)
    round.experts = cut(row, at, rules.rival_rows * levels)
    at += rules.rival_rows * levels
    round.before = cut(row, at, levels)
    at += levels
    round.rivals = cut(row, at, experts * capacity)
    at += experts * capacity
    round.crps_units, round.mse_units = cut(row, at, experts), cut(row, at + experts, experts)
    round.expected = cut(row, at + 2 * experts, rules.orders)


# Sizes of the records of a round.
INFO_SIZE, CERTIFICATE_SIZE = len(records.INFO), len(records.CERTIFICATE)
ROUND_LOG_SIZE = len(records.ROUND_LOG)
# Places of the numbers of the records that Python reads.
FIELDS = {
    name: {field: i for i, field in enumerate(fields)}
    for name, fields in (
        ("account", records.ACCOUNT),
        ("certificate", records.CERTIFICATE),
        ("counts", records.COUNTS),
        ("info", records.INFO),
        ("statistics", records.STATISTICS),
    )
}
