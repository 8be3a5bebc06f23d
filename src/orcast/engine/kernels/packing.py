"""Many arrays in one: an array handed to a kernel costs a fraction of a microsecond, so the hot path hands over few.

A tuple of arrays lies in one row of numbers, in the order of its fields.  The shapes below are the only place that says
how; Python and kernels cut the fields out of a row by them.
"""

# mypy: disable-error-code="arg-type"
# (shapes are said in the tuple that later holds the arrays)

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.kernels.binary import (
    BINARY_STATISTICS,
    COEFFICIENTS,
    COUNT,
    COVARIANCES,
    FEATURES,
    LOSSES,
    RECORDED_ODDS,
)
from orcast.engine.kernels.correction import pool_part as _pool_part
from orcast.engine.kernels.counts import COUNT_COLUMNS
from orcast.engine.kernels.finite_rounds import FINITE_INFO, FINITE_RIVAL, FiniteRound, FiniteState
from orcast.engine.kernels.finite_rounds import predict as _predict_finite
from orcast.engine.kernels.finite_rounds import update as _update_finite
from orcast.engine.kernels.records import (
    BASIS,
    CELL_ROWS,
    EVIDENCE_SIZE,
    EXPERT_LOSSES,
    GROUP_COLUMNS,
    HORIZONS,
    INFO_SIZE,
    LEARNER_SIZE,
    LOCATION_FEATURES,
    LONGEST_SEASON,
    RIVAL_SIZE,
    SEASON_SIZE,
    SPREAD_FEATURES,
    STATISTICS_SIZE,
    TRACKER_UNIT_SIZE,
    Memory,
    PoolColumn,
    Round,
    TrackerRecord,
)
from orcast.engine.kernels.rounds import predict as _predict
from orcast.engine.kernels.rounds import update as _update
from orcast.jit import compiled_only, entry_kernel, kernel, kernel_part
from orcast.ledger import ACCOUNT_SIZE, CERTIFICATE_SIZE, GROUP_SIZE

Array = NDArray[np.float64]
Shape = tuple[int, ...]


@kernel_part
def memory_shapes(rules):
    """The shapes of a memory on ordered spaces."""
    learners, members = rules.learners.shape[0], rules.members.shape[0]
    trackers, levels = rules.quantile_trackers.shape[0], rules.grid.shape[0]
    several = 0 if rules.experts == 1 else rules.experts
    return Memory(
        total=(rules.layout.sides.shape[0],),
        account=(ACCOUNT_SIZE,),
        groups=(rules.groups, GROUP_SIZE),
        counted=(rules.levels.shape[0] + COUNT_COLUMNS,),
        statistics=(STATISTICS_SIZE,),
        location=(learners, LOCATION_FEATURES),
        location_cov=(learners, LOCATION_FEATURES, LOCATION_FEATURES),
        spread=(learners, 2),
        fit=(learners, SPREAD_FEATURES),
        fit_cov=(learners, SPREAD_FEATURES, SPREAD_FEATURES),
        surprises=(LONGEST_SEASON,),
        autocorrelation=(LONGEST_SEASON,),
        seasons=(SEASON_SIZE,),
        offsets=(trackers, levels),
        pool_seen=(PoolColumn.SUMS + rules.pooled * levels,),
        tracker_unit=(TRACKER_UNIT_SIZE,),
        track_loss=(HORIZONS, learners + trackers),
        track_evidence=(HORIZONS, EVIDENCE_SIZE),
        level_offsets=(levels,),
        level_evidence=(HORIZONS, EVIDENCE_SIZE),
        level_ledger=(2, levels + 1),
        expert_ledger=(2, levels + 1),
        shape=(members, 2, BASIS),
        member_loss=(HORIZONS, members),
        member_evidence=(HORIZONS, EVIDENCE_SIZE),
        warm=(rules.cells,),
        expert_loss=(several, rules.grid.shape[0], EXPERT_LOSSES),
        rivals=(rules.experts, RIVAL_SIZE),
        by_group=(rules.group_count, GROUP_COLUMNS),
        group_loss=(2,),
    )


@kernel_part
def round_shapes(rules):
    """The shapes of a round on ordered spaces; its slots are integers and lie apart."""
    members, capacity, levels = rules.members.shape[0], rules.cells + rules.jumps.shape[0], rules.grid.shape[0]
    return Round(
        slots=(rules.cells,),
        cells=(CELL_ROWS + members, capacity),
        info=(INFO_SIZE,),
        certificate=(CERTIFICATE_SIZE,),
        tracker_record=(TrackerRecord.LEARNERS + rules.learners.shape[0] * LEARNER_SIZE,),
        tracked=(rules.quantile_trackers.shape[0] + 3, levels),
        means=(members, BASIS),
        experts=(1 if rules.experts == 1 else 1 + rules.experts, levels),
        raw=(levels,),
        rivals=(rules.experts, capacity),
        units=(2, rules.experts),
        context=(rules.groups,),
        expected=(rules.witnesses,),
    )


@kernel_part
def finite_shapes(rules):
    """The shapes of the state on finite spaces, which has logistic learners or members."""
    logistic = rules.logistic
    members = rules.members.shape[0] * (1 - logistic)
    return FiniteState(
        total=(rules.layout.sides.shape[0],),
        account=(ACCOUNT_SIZE,),
        groups=(rules.groups, GROUP_SIZE),
        pool=(rules.rivals,),
        rivals=(rules.rivals, FINITE_RIVAL),
        last=(1,),
        warm=(rules.cells * (1 - logistic),),
        theta=(logistic * COEFFICIENTS,),
        spread=(logistic * COVARIANCES,),
        learner_loss=(logistic * HORIZONS, LOSSES),
        statistics=(logistic * BINARY_STATISTICS,),
        scale=(members,),
        scale_sum=(members,),
        shift=(members, rules.cells),
        shift_sum=(members, rules.cells),
        loss=((members + 1) * (1 - logistic),),
    )


@kernel_part
def finite_round_shapes(rules):
    """The shapes of a round on finite spaces."""
    logistic = rules.logistic
    return FiniteRound(
        info=(FINITE_INFO,),
        certificate=(CERTIFICATE_SIZE,),
        context=(rules.groups,),
        experts=(rules.rivals, rules.cells),
        units=(rules.rivals,),
        pool=(rules.cells,),
        base=(rules.cells,),
        prior=(rules.cells,),
        played=(rules.cells,),
        odds=(logistic * RECORDED_ODDS,),
        features=(logistic * FEATURES,),
        learners=(logistic * COUNT,),
        members=(rules.members.shape[0] * (1 - logistic), rules.cells),
        moved=(rules.moved, rules.cells),
    )


def length(shapes: tuple[Shape, ...]) -> int:
    """Numbers in a row."""
    return sum(map(math.prod, shapes))


def slices(shapes: tuple[Shape, ...]) -> tuple[slice, ...]:
    """Where the arrays of these shapes lie in a row of numbers."""
    ends = [0, *accumulate(map(math.prod, shapes))]
    return tuple(slice(a, b) for a, b in pairwise(ends))


def fields(shapes: tuple[Shape, ...], row: Array) -> tuple[Array, ...]:
    """The arrays of these shapes in a row of numbers, as views; also inside kernels."""
    return tuple(row[part].reshape(shape) for part, shape in zip(slices(shapes), shapes, strict=True))


@compiled_only(fields)
def _fields(shapes: Any, row: Any) -> Any:
    """The loop above, unrolled: in a kernel each array of a tuple has a type of its own."""
    lines, names = ["def fields(shapes, row):", "    at = 0"], []
    for i, shape in enumerate(shapes.types):
        sizes = [f"shapes[{i}][{axis}]" for axis in range(len(shape))]
        reshaped = f".reshape(({', '.join(sizes)}))" if len(sizes) > 1 else ""
        lines.append(f"    end = at + {' * '.join(sizes)}")
        lines.append(f"    field_{i} = row[at:end]{reshaped}")
        lines.append("    at = end")
        names.append(f"field_{i}")
    lines.append(f"    return ({', '.join(names)},)")
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    return scope["fields"]


@kernel
def memory_of(rules, row):
    """The memory in a row of numbers."""
    return Memory(*fields(memory_shapes(rules), row))


@kernel
def round_of(rules, row, slots):
    """The round in a row of numbers."""
    return Round(slots, *fields(round_shapes(rules)[1:], row))


@kernel
def finite_state_of(rules, row):
    """The state on a finite space in a row of numbers."""
    return FiniteState(*fields(finite_shapes(rules), row))


@kernel
def finite_round_of(rules, row):
    """The round on a finite space in a row of numbers."""
    return FiniteRound(*fields(finite_round_shapes(rules), row))


# --- the hot path


@entry_kernel
def predict(rules, memory, experts, signal, pending, reserved, row, slots):
    """A round on ordered spaces; see rounds.predict."""
    _predict(rules, memory_of(rules, memory), experts, signal, pending, reserved, round_of(rules, row, slots))


@entry_kernel
def update(rules, memory, row, slots, signal, reserved, y):
    """Its outcome; see rounds.update."""
    _update(rules, memory_of(rules, memory), round_of(rules, row, slots), signal, reserved, y, np.empty(0))


@entry_kernel
def pool_part(rules, memory, row, slots, signal, y, out):
    """What a game tells its pool of an outcome; see correction.pool_part."""
    return _pool_part(rules, memory_of(rules, memory), round_of(rules, row, slots), signal, y, out)


@entry_kernel
def predict_finite(rules, state, experts, pending, reserved, row):
    """A round on a finite space; see finite_rounds.predict."""
    _predict_finite(rules, finite_state_of(rules, state), experts, pending, reserved, finite_round_of(rules, row))


@entry_kernel
def update_finite(rules, state, row, reserved, y):
    """Its outcome; see finite_rounds.update."""
    _update_finite(rules, finite_state_of(rules, state), finite_round_of(rules, row), reserved, y)
