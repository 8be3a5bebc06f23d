"""Many arrays in one: an array handed to a kernel costs a fraction of a microsecond, so the hot path hands over few.

A tuple of arrays lies in one row of numbers, in the order of its fields; Python sees the fields as views, a kernel
cuts them out by the same sizes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.kernels import binary as binary_kernels
from orcast.engine.kernels import binary_rounds, records, tracker
from orcast.engine.kernels import groups as group_kernels
from orcast.engine.kernels.binary import BinaryMemory
from orcast.engine.kernels.binary_rounds import BinaryState
from orcast.engine.kernels.binary_rounds import predict as _predict_binary
from orcast.engine.kernels.binary_rounds import update as _update_binary
from orcast.engine.kernels.records import Memory, Round
from orcast.engine.kernels.rounds import predict as _predict
from orcast.engine.kernels.rounds import update as _update
from orcast.jit import kernel
from orcast.ledger import ACCOUNT_SIZE, CERTIFICATE_SIZE, GROUP_SIZE

Array = NDArray[np.float64]
Shapes = dict[str, tuple[int, ...]]


def views(shapes: Shapes, row: Array) -> dict[str, Any]:
    """The fields in a row of numbers."""
    found, at = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        found[name] = row[at : at + size].reshape(shape)
        at += size
    return found


def length(shapes: Shapes) -> int:
    """Numbers in a row."""
    return sum(map(math.prod, shapes.values()))


def memory_shapes(rules: Any) -> Shapes:
    """The fields of a memory on ordered spaces."""
    learners, members = len(rules.learners), len(rules.members)
    location, spread = tracker.N_LOCATION, tracker.N_SPREAD
    return {
        "total": (len(rules.layout.sides),),
        "account": (ACCOUNT_SIZE,),
        "groups": (rules.groups, GROUP_SIZE),
        "statistics": (tracker.STATISTICS_SIZE,),
        "location": (learners, location),
        "location_cov": (learners, location, location),
        "spread": (learners, 2),
        "fit": (learners, spread),
        "fit_cov": (learners, spread, spread),
        "track_loss": (records.HORIZONS, learners + 1),
        "shape": (members, 2, records.BASIS),
        "member_loss": (records.HORIZONS, members + 2),
        "warm": (rules.cells,),
        "pool": (rules.experts,),
        "rivals": (rules.experts, records.RIVAL_SIZE),
        "by_group": (rules.group_count, group_kernels.GROUP_SIZE),
        "group_loss": (2,),
    }


def round_shapes(rules: Any) -> Shapes:
    """The fields of a round on ordered spaces, but for its slots."""
    learners, members, capacity = len(rules.learners), len(rules.members), rules.cells + len(rules.jumps)
    return {
        "cells": (records.MEMBERS + members, capacity),
        "info": (records.INFO_SIZE,),
        "certificate": (CERTIFICATE_SIZE,),
        "tracker_record": (tracker.LEARNERS_AT + learners * tracker.PER_LEARNER,),
        "means": (members, records.BASIS),
        "experts": (1 if rules.experts == 1 else 1 + rules.experts, len(rules.grid)),
        "raw": (len(rules.grid),),
        "rivals": (rules.experts, capacity),
        "units": (2, rules.experts),
        "context": (rules.groups,),
        "expected": (rules.witnesses,),
    }


@kernel
def cut(row, at, size):
    """The next field, and where the one after it starts."""
    return row[at : at + size], at + size


@kernel
def memory_of(rules, row):
    """The memory in a row of numbers; see memory_shapes."""
    learners, members = rules.learners.shape[0], rules.members.shape[0]
    location, spread = tracker.N_LOCATION, tracker.N_SPREAD
    total, at = cut(row, 0, rules.layout.sides.shape[0])
    account, at = cut(row, at, ACCOUNT_SIZE)
    groups, at = cut(row, at, rules.groups * GROUP_SIZE)
    statistics, at = cut(row, at, tracker.STATISTICS_SIZE)
    where, at = cut(row, at, learners * location)
    where_cov, at = cut(row, at, learners * location * location)
    wide, at = cut(row, at, learners * 2)
    fit, at = cut(row, at, learners * spread)
    fit_cov, at = cut(row, at, learners * spread * spread)
    track_loss, at = cut(row, at, records.HORIZONS * (learners + 1))
    shape, at = cut(row, at, members * 2 * records.BASIS)
    member_loss, at = cut(row, at, records.HORIZONS * (members + 2))
    warm, at = cut(row, at, rules.cells)
    pool, at = cut(row, at, rules.experts)
    rivals, at = cut(row, at, rules.experts * records.RIVAL_SIZE)
    by_group, at = cut(row, at, rules.group_count * group_kernels.GROUP_SIZE)
    group_loss, at = cut(row, at, 2)
    return Memory(
        total,
        account,
        groups.reshape(rules.groups, GROUP_SIZE),
        statistics,
        where.reshape(learners, location),
        where_cov.reshape(learners, location, location),
        wide.reshape(learners, 2),
        fit.reshape(learners, spread),
        fit_cov.reshape(learners, spread, spread),
        track_loss.reshape(records.HORIZONS, learners + 1),
        shape.reshape(members, 2, records.BASIS),
        member_loss.reshape(records.HORIZONS, members + 2),
        warm,
        pool,
        rivals.reshape(rules.experts, records.RIVAL_SIZE),
        by_group.reshape(rules.group_count, group_kernels.GROUP_SIZE),
        group_loss,
    )


@kernel
def round_of(rules, row, slots):
    """The round in a row of numbers; see round_shapes."""
    learners, members = rules.learners.shape[0], rules.members.shape[0]
    capacity = rules.cells + rules.jumps.shape[0]
    rows = records.MEMBERS + members
    quoted = 1 if rules.experts == 1 else 1 + rules.experts
    levels = rules.grid.shape[0]
    cells, at = cut(row, 0, rows * capacity)
    info, at = cut(row, at, records.INFO_SIZE)
    certificate, at = cut(row, at, CERTIFICATE_SIZE)
    tracker_record, at = cut(row, at, tracker.LEARNERS_AT + learners * tracker.PER_LEARNER)
    means, at = cut(row, at, members * records.BASIS)
    experts, at = cut(row, at, quoted * levels)
    raw, at = cut(row, at, levels)
    rivals, at = cut(row, at, rules.experts * capacity)
    units, at = cut(row, at, 2 * rules.experts)
    context, at = cut(row, at, rules.groups)
    expected, at = cut(row, at, rules.witnesses)
    return Round(
        cells.reshape(rows, capacity),
        slots,
        info,
        certificate,
        tracker_record,
        means.reshape(members, records.BASIS),
        experts.reshape(quoted, levels),
        raw,
        rivals.reshape(rules.experts, capacity),
        units.reshape(2, rules.experts),
        context,
        expected,
    )


def binary_shapes(rules: Any) -> Shapes:
    """The fields of the state on binary outcomes."""
    return {
        "theta": (int(binary_kernels.THETA_AT[-1]),),
        "spread": (int(binary_kernels.SPREAD_AT[-1]),),
        "loss": (3, binary_kernels.COUNT + 2),
        "statistics": (binary_kernels.STATISTICS_SIZE,),
        "total": (len(rules.layout.sides),),
        "account": (ACCOUNT_SIZE,),
        "groups": (rules.groups, GROUP_SIZE),
        "rivals": (rules.rivals, binary_rounds.RIVAL_SIZE),
        "last": (1,),
    }


@kernel
def state_of(rules, row):
    """The state in a row of numbers; see binary_shapes."""
    theta, at = cut(row, 0, binary_kernels.THETA_AT[-1])
    spread, at = cut(row, at, binary_kernels.SPREAD_AT[-1])
    loss, at = cut(row, at, 3 * (binary_kernels.COUNT + 2))
    statistics, at = cut(row, at, binary_kernels.STATISTICS_SIZE)
    total, at = cut(row, at, rules.layout.sides.shape[0])
    account, at = cut(row, at, ACCOUNT_SIZE)
    groups, at = cut(row, at, rules.groups * GROUP_SIZE)
    rivals, at = cut(row, at, rules.rivals * binary_rounds.RIVAL_SIZE)
    last, at = cut(row, at, 1)
    return BinaryState(
        BinaryMemory(theta, spread, loss.reshape(3, binary_kernels.COUNT + 2), statistics),
        total,
        account,
        groups.reshape(rules.groups, GROUP_SIZE),
        rivals.reshape(rules.rivals, binary_rounds.RIVAL_SIZE),
        last,
    )


# --- the hot path


@kernel
def predict(rules, memory, experts, pending, reserved, row, slots):
    """A round on ordered spaces; see _rounds.predict."""
    _predict(rules, memory_of(rules, memory), experts, pending, reserved, round_of(rules, row, slots))


@kernel
def update(rules, memory, row, slots, reserved, y):
    """Its outcome; see _rounds.update."""
    _update(rules, memory_of(rules, memory), round_of(rules, row, slots), reserved, y, np.empty(0))


@kernel
def predict_binary(rules, state, probabilities, pending, reserved, row):
    """A round with a binary outcome; see _binary_rounds.predict."""
    _predict_binary(rules, state_of(rules, state), probabilities, pending, reserved, row)


@kernel
def update_binary(rules, state, row, reserved, y):
    """Its outcome; see _binary_rounds.update."""
    _update_binary(rules, state_of(rules, state), row, reserved, y)
