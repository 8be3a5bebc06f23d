"""Games on ordered spaces as state files of formats 1 and 2 have them, and what becomes of their arrays.

The shapes depend on what is played, so they are converted where a game takes them over, whichever file they come from;
they are told from those of today by their names and lengths.  The ledger, the statistics, what is known of rivals and
groups, and the members' shapes go on as they are.  The learners of location and spread go on as those of today that
come next to them; all evidence begins anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine import format_3
from orcast.engine.kernels.events import unpack_row
from orcast.engine.kernels.packing import Shape
from orcast.engine.kernels.records import (
    BASIS,
    GROUP_COLUMNS,
    HORIZONS,
    INFO_SIZE,
    LEARNER_SIZE,
    RIVAL_SIZE,
    CellRow,
    Memory,
    RoundInfo,
    Rules,
    Statistic,
    TrackerRecord,
)
from orcast.engine.kernels.tracker import FARTHEST_KEPT
from orcast.ledger import ACCOUNT_SIZE, CERTIFICATE_SIZE, GROUP_SIZE

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]
Shapes = dict[str, Shape]

# Learners, their features of location and of spread, statistics, rows of cells before the members, and numbers of the
# tracker's record before the learners.
LEARNERS, LOCATION, SPREAD, STATISTICS, CELL_ROWS, RECORD = 4, 5, 5, 18, 6, 10
# Numbers of a round, and of its certificate.
INFO, CERTIFICATE = 11, 9
# The learner from which each of today's goes on.
WHENCE = [0, 2, 3, 1, 0, 1]
# Where the numbers of the tracker's record lie today.
PLACES = [*range(TrackerRecord.OUTCOME_2), *range(TrackerRecord.SCALE, TrackerRecord.USUAL_MOVE)]


def memory_shapes(rules: Rules) -> Shapes:
    """The shapes of a memory."""
    learners, members = LEARNERS if len(rules.learners) else 0, len(rules.members)
    return {
        "total": (rules.layout.sides.size,),
        "account": (ACCOUNT_SIZE,),
        "groups": (rules.groups, GROUP_SIZE),
        "statistics": (STATISTICS,),
        "location": (learners, LOCATION),
        "location_cov": (learners, LOCATION, LOCATION),
        "spread": (learners, 2),
        "fit": (learners, SPREAD),
        "fit_cov": (learners, SPREAD, SPREAD),
        "track_loss": (HORIZONS, learners + 1),  # the expert first
        "shape": (members, 2, BASIS),
        "member_loss": (HORIZONS, members + 2),  # the corrected expert and the expert last
        "warm": (rules.cells,),
        "pool": (rules.experts,),  # a loss of each expert
        "rivals": (rules.experts, RIVAL_SIZE),
        "by_group": (rules.group_count, GROUP_COLUMNS),
        "group_loss": (2,),
    }


def round_shapes(rules: Rules) -> Shapes:
    """The shapes of a round, in the order of its row; its slots lie apart."""
    learners, members, levels = LEARNERS if len(rules.learners) else 0, len(rules.members), rules.grid.size
    capacity = rules.cells + rules.jumps.size
    return {
        "cells": (CELL_ROWS + members, capacity),
        "info": (INFO,),
        "certificate": (CERTIFICATE,),
        "tracker_record": (RECORD + learners * LEARNER_SIZE,),
        "means": (members, BASIS),
        "experts": (1 if rules.experts == 1 else 1 + rules.experts, levels),
        "raw": (levels,),
        "rivals": (rules.experts, capacity),
        "units": (2, rules.experts),
        "context": (rules.groups,),
        "expected": (rules.witnesses,),
    }


def unpacked(engine: Any, row: Array) -> dict[str, NDArray[Any]]:
    """The arrays of an engine's memory in a row of numbers, of today's format or an older one."""
    kinds = {name: (array.dtype, array.shape) for name, array in engine.arrays().items()}
    found = _ordered_part(engine)
    if found is not None and row.size != _size(kinds):
        folder, rules = found
        number = np.dtype(np.float64)
        later = {
            **kinds,
            **{f"{folder}{name}": (number, shape) for name, shape in format_3.memory_shapes(rules).items()},
        }
        if row.size == _size(later):
            return unpack_row(row, later)
        rest = {name: kind for name, kind in kinds.items() if not name.startswith(folder) and name != "counted"}
        older = {f"{folder}{name}": (number, shape) for name, shape in memory_shapes(rules).items()}
        kinds = {**older, **rest}
    return unpack_row(row, kinds)


def _size(kinds: Mapping[str, tuple[Any, Any]]) -> int:
    return sum(math.prod(shape) for _, shape in kinds.values())


def _ordered_part(engine: Any) -> tuple[str, Rules] | None:
    """Where the memory of an ordered space lies among the arrays of an engine, and its rules; None if there is none."""
    prior = getattr(engine, "prior", None)
    within = getattr(getattr(prior, "around", prior), "engine", None)
    for folder, each in (("", engine), ("prior/", within)):
        rules = getattr(each, "rules", None)
        if isinstance(rules, Rules):
            return folder, rules
    return None


def _check_shapes(arrays: Arrays, shapes: Shapes) -> None:
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, not {shape}")


def padded(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Numbers and then zeros."""
    return np.concatenate((array, np.zeros(size - array.size)))


def certificate_of(certificate: NDArray[Any]) -> NDArray[Any]:
    """A certificate of today from one of this format, whose bound has in it what it could be exceeded by."""
    return padded(certificate, CERTIFICATE_SIZE) if certificate.shape == (CERTIFICATE,) else certificate


def binary_row_of(row: NDArray[Any], size: int, certificate: slice) -> NDArray[Any]:
    """The row of a pending round with a binary outcome of today, of so many numbers, from one of this format."""
    missing = CERTIFICATE_SIZE - CERTIFICATE
    if row.shape != (size - missing,):
        return row
    return np.insert(row, [certificate.stop - missing] * missing, 0.0)


def memory_of(rules: Rules, arrays: Arrays, blank: Memory) -> dict[str, NDArray[Any]]:
    """A memory of today from one of this format; `blank` is an empty one, which is filled."""
    _check_shapes(arrays, memory_shapes(rules))
    for name in ("total", "account", "groups", "shape", "warm", "rivals", "by_group", "group_loss"):
        getattr(blank, name)[...] = arrays[name]
    blank.member_loss[...] = arrays["member_loss"][:, : len(rules.members)]
    _fill_statistics(blank.statistics, arrays["statistics"])
    if len(rules.learners):
        for name in ("spread", "fit", "fit_cov"):
            getattr(blank, name)[...] = arrays[name][WHENCE]
        # the first features are the same
        blank.location[:, :LOCATION] = arrays["location"][WHENCE]
        blank.location_cov[:, :LOCATION, :LOCATION] = arrays["location_cov"][WHENCE]
        expert, learners = arrays["track_loss"][:, :1], arrays["track_loss"][:, 1:]
        blank.track_loss[:, : len(WHENCE)] = learners[:, WHENCE]
        # without an offset, a quantile tracker would have said what the expert did
        blank.track_loss[:, len(WHENCE) :] = expert
    return blank._asdict()


def _fill_statistics(mine: Array, theirs: Array) -> None:
    """Statistics; of those that are new, what the last errors tell: a mean move of zero would stay so for good."""
    mine[:STATISTICS] = theirs
    format_3.fill_outcomes(mine)
    errors = np.abs(theirs[Statistic.ERROR_1 : Statistic.ERROR_3 + 1])
    mine[Statistic.FARTHEST_ERROR] = (errors * FARTHEST_KEPT ** np.arange(errors.size)).max()
    mine[Statistic.LAST_MEDIAN] = theirs[Statistic.LAST_OUTCOME] - theirs[Statistic.ERROR_1]
    mine[Statistic.MOVE_MEAN] = math.sqrt(theirs[Statistic.MEDIAN_VARIANCE])


def round_of(rules: Rules, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """A pending round of today from one of this format: what is new in it says what the expert does."""
    _check_shapes(arrays, round_shapes(rules))
    cells, record, experts = arrays["cells"], arrays["tracker_record"], arrays["experts"].copy()
    today = np.zeros(TrackerRecord.LEARNERS)
    today[PLACES], today[TrackerRecord.USUAL_MOVE] = record[:RECORD], 1.0
    parts = record[RECORD:].reshape(-1, LEARNER_SIZE)
    if len(rules.learners):
        parts = parts[WHENCE]
    if not arrays["info"][RoundInfo.HAS_EXPERT]:
        experts[1:, 0] = np.nan
    return {
        **arrays,
        "cells": np.insert(cells, CellRow.LEARNT, cells[CellRow.PRIOR], axis=0),
        "info": padded(arrays["info"], INFO_SIZE),
        "certificate": certificate_of(arrays["certificate"]),
        "tracker_record": np.concatenate((today, parts.ravel())),
        "tracked": np.tile(np.clip(experts[0], rules.low, rules.high), (len(rules.quantile_trackers) + 3, 1)),
        "experts": experts,
    }
