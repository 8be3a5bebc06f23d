"""State of a recalibrator on an ordered space: its rules, its memory and its pending rounds.

Each object owns one row of numbers (`row`), which is what is saved. Compiled, the fields are pointers into the row and
structs (`state.pxd`); uncompiled, they are memoryviews and objects with the same names.
"""

import math

import numpy as np

from orcast.kernels import records


def places(shapes):
    """Start and shape of each array of a row, and the length of the row."""
    found, at = {}, 0
    for name, shape in shapes.items():
        found[name] = (at, shape)
        at += math.prod(shape)
    return found, at


def view(row, at, shape):
    """View of a part of a row as an array."""
    return row[at : at + math.prod(shape)].reshape(shape)


class Layout:
    """Positions of the parts of a payoff in the ledger, and their places in the core payoff."""

    def __init__(self, parts, places, scale, bounds, sides, general: float):
        self.part_table, self.place_list = np.reshape(parts, (-1, 6)), np.asarray(places)
        self.scales, self.bound_list, self.side_list = np.asarray(scale), np.asarray(bounds), np.asarray(sides)
        self.count, self.size, self.general = len(parts), len(sides), general
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
        return Layout, (*arrays, self.general)


class Rules:
    """Constants of a recalibrator on an ordered space.

    The core payoff has, in this order, a coordinate for each level, interval, witness (powers first), the CRPS of each
    expert and the squared error of each expert.
    """

    def __init__(self, layout: Layout, **options):
        self.layout, self.options = layout, options
        arrays = [np.ascontiguousarray(options[name], dtype=np.float64) for name in RULE_ARRAYS]
        self.row = np.concatenate([array.ravel() for array in arrays])
        self.whole = np.ascontiguousarray(options["intervals"], dtype=np.int64).ravel()
        ends = np.cumsum([0] + [array.size for array in arrays])
        row = numbers_of(self.row)
        self.grid = cut(row, ends[0], ends[1] - ends[0])
        self.scores = cut(row, ends[1], ends[2] - ends[1])
        self.jumps = cut(row, ends[2], ends[3] - ends[2])
        self.levels = cut(row, ends[3], ends[4] - ends[3])
        self.intervals = whole_of(self.whole)
        self.grid_count, self.jump_count, self.level_count = len(arrays[0]), len(arrays[2]), len(arrays[3])
        self.interval_count = len(self.whole) // 2
        self.low, self.high = options["low"], options["high"]
        self.cells, self.tail_cells, self.experts = options["cells"], options["tail_cells"], options["experts"]
        self.learns = options["learns"]
        self.group_at, self.group_count = options["group_at"], options["group_count"]
        self.orders, self.witnesses = options["orders"], options["witnesses"]
        self.crps, self.mse = options["crps"], options["mse"]
        self.bound, self.discount = options["bound"], options["discount"]
        self.temperature = options["temperature"]
        self.groups = layout.groups
        self.capacity = self.cells + self.jump_count
        self.rival_rows = 1 if self.experts == 1 else 1 + self.experts
        self.payoff_size = (
            self.level_count + self.interval_count + self.witnesses + (self.crps + self.mse) * self.experts
        )
        self.memory_places, self.memory_size = places(memory_shapes(self))
        self.round_places, self.round_size = places(round_shapes(self))
        self.certificate_at = self.round_places["certificate"][0]

    def replaced(self, **options):
        """Copy with other options."""
        return Rules(self.layout, **{**self.options, **options})

    def __reduce__(self):
        return restored_rules, (self.layout, self.options)


# Arrays among the options of the rules, in the order of their row.
RULE_ARRAYS = ("grid", "scores", "jumps", "levels")


def restored_rules(layout, options):
    """Rules from their options; for pickling."""
    return Rules(layout, **options)


def memory_shapes(rules):
    """Shapes of the arrays of a memory."""
    return {
        "total": (rules.layout.size,),
        "account": (len(records.ACCOUNT),),
        "groups": (rules.groups, len(records.GROUP_ACCOUNT)),
        "empirical": (rules.level_count,),
        "counts": (len(records.COUNTS),),
        "statistics": (len(records.STATISTICS),),
        "warm": (rules.cells,),
        "misses": (rules.grid_count + 1,),
        "by_group": (3 * rules.group_count + 2,),
        "rivals": (rules.experts, len(records.RIVAL)),
    }


def round_shapes(rules):
    """Shapes of the arrays of a round; its slots are whole numbers and lie apart."""
    capacity, levels = rules.capacity, rules.grid_count
    return {
        "cells": (CELL_ROWS, capacity),
        "info": (len(records.INFO),),
        "certificate": (len(records.CERTIFICATE),),
        "experts": (rules.rival_rows, levels),
        "before": (levels,),
        "rivals": (rules.experts, capacity),
        "crps_units": (rules.experts,),
        "mse_units": (rules.experts,),
        "context": (rules.groups,),
        "expected": (rules.witnesses,),
    }


class Memory:
    """Numbers that are carried from round to round; their count is constant."""

    def __init__(self, rules: Rules):
        self.rules = rules
        self.row = np.zeros(rules.memory_size)
        row = numbers_of(self.row)
        at = {name: place[0] for name, place in rules.memory_places.items()}
        size = {name: math.prod(place[1]) for name, place in rules.memory_places.items()}
        self.numbers = row
        self.total = cut(row, at["total"], size["total"])
        self.account = as_account(cut(row, at["account"], size["account"]))
        self.groups = as_group_accounts(cut(row, at["groups"], size["groups"]))
        self.empirical = cut(row, at["empirical"], size["empirical"])
        self.counts = as_counts(cut(row, at["counts"], size["counts"]))
        self.statistics = as_statistics(cut(row, at["statistics"], size["statistics"]))
        self.warm = cut(row, at["warm"], size["warm"])
        self.misses = cut(row, at["misses"], size["misses"])
        self.by_group = cut(row, at["by_group"], size["by_group"])
        self.rivals = as_rivals(cut(row, at["rivals"], size["rivals"]))

    def view(self, name):
        """Array of the memory, as a view of its row."""
        return view(self.row, *self.rules.memory_places[name])

    def read(self, record, name):
        """Number of a record of the memory, such as ("statistics", "last_error")."""
        return self.row.item(self.rules.memory_places[record][0] + FIELDS[record][name])

    def views(self):
        """All arrays of the memory by name."""
        return {name: view(self.row, *place) for name, place in self.rules.memory_places.items()}

    def __reduce__(self):
        return restored_memory, (self.rules, self.row)


def new_memory(rules):
    """Memory before any round, without its ledger."""
    memory = Memory(rules)
    memory.statistics.level_variance = 1.0
    return memory


def restored_memory(rules, row):
    """Memory from its row; for pickling."""
    memory = Memory(rules)
    memory.row[:] = row
    return memory


class Round:
    """Numbers of a forecast that its outcome will need; `memo` has those of the committee."""

    def __init__(self, rules: Rules):
        self.rules, self.features, self.cell_payoffs, self.memo = rules, None, None, None
        self.row, self.whole = np.zeros(rules.round_size), np.zeros(rules.cells, dtype=np.int64)
        attach(rules, self, numbers_of(self.row), whole_of(self.whole))

    def view(self, name):
        """Array of the round, as a view of its row."""
        return view(self.row, *self.rules.round_places[name])

    def read(self, record, name):
        """Number of a record of the round, such as ("info", "low")."""
        return self.row.item(self.rules.round_places[record][0] + FIELDS[record][name])

    def overdraft(self):
        """Slack that the round reserves."""
        return self.certificate.overdraft

    def holds(self):
        """True if the certificate holds."""
        return self.certificate.holds > 0.0

    def count(self):
        """Number of cells."""
        return int(self.info.cells)

    def draw(self):
        """Random number of the round; 0 for none."""
        return self.info.draw

    def set_draw(self, draw):
        """Give the round a random number in (0, 1)."""
        self.info.draw = draw

    @property
    def certificate_row(self):
        """Numbers of the certificate, as a view of the row."""
        return self.row[self.rules.certificate_at : self.rules.certificate_at + CERTIFICATE_SIZE]

    def cell_rows(self):
        """Left and right ends, prior, expert and forecast on the cells, as a view of the row."""
        return self.row[: 5 * self.rules.capacity].reshape(5, -1)[:, : int(self.info.cells)]

    def arrays(self):
        """Numbers of the round, without its features."""
        memo = {} if self.memo is None else {"memo": self.memo}
        return {"row": self.row, "slots": self.whole, **memo}

    def views(self):
        """All arrays of the round by name."""
        return {name: view(self.row, *place) for name, place in self.rules.round_places.items()}

    def copied(self):
        """Copy in arrays of its own, without features."""
        return restored_round(self.rules, self.row, self.whole, self.memo)

    def __reduce__(self):
        return restored_round, (self.rules, self.row, self.whole, self.memo)


def restored_round(rules, row, whole, memo):
    """Round from its numbers; for pickling and copies."""
    round = Round(rules)
    round.row[:], round.whole[:], round.memo = row, whole, memo
    return round


def attach(rules, round, row, slots):
    """Let the fields of a round lie in a row of numbers and its slots."""
    capacity, levels, experts = rules.capacity, rules.grid_count, rules.experts
    round.slots, round.numbers = slots, row
    round.left, round.right = cut(row, 0, capacity), cut(row, capacity, capacity)
    round.prior, round.expert = cut(row, 2 * capacity, capacity), cut(row, 3 * capacity, capacity)
    round.result, round.tilt = cut(row, 4 * capacity, capacity), cut(row, 5 * capacity, capacity)
    at = CELL_ROWS * capacity
    round.info = as_info(cut(row, at, INFO_SIZE))
    at += INFO_SIZE
    round.certificate = as_certificate(cut(row, at, CERTIFICATE_SIZE))
    at += CERTIFICATE_SIZE
    round.experts = cut(row, at, rules.rival_rows * levels)
    at += rules.rival_rows * levels
    round.before = cut(row, at, levels)
    at += levels
    round.rivals = cut(row, at, experts * capacity)
    at += experts * capacity
    round.crps_units, round.mse_units = cut(row, at, experts), cut(row, at + experts, experts)
    at += 2 * experts
    round.context = cut(row, at, rules.groups)
    at += rules.groups
    round.expected = cut(row, at, rules.witnesses)


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
