"""Games on ordered spaces from the first files of format 3: what is looked at still goes on, the rest begins anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import orcast as oc
from orcast.engine import format_2, format_3
from orcast.engine.kernels.packing import length, round_shapes, slices
from orcast.engine.kernels.records import Round, Statistic, TrackerRecord
from orcast.engine.kernels.tracker import LOCATION_START
from orcast.panel import pools
from orcast.pool import ARRAYS

ROUNDS = 30


def played() -> Any:
    """A game with a past and a pending round."""
    rng = np.random.default_rng(0)
    recal = oc.Recalibrator(oc.Interval(0, 100), seasons=7)
    for t, y in enumerate(50.0 + rng.normal(0.0, 5.0, ROUNDS)):
        recal.predict(oc.Normal(50.0 + t % 3, 4.0), id=t)
        recal.update(float(y), id=t)
    recal.predict(oc.Normal(51.0, 4.0), id=ROUNDS)
    return recal


def older(arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a memory as they were: three errors, one outcome, two seasons."""
    rng = np.random.default_rng(1)
    learners, features = len(arrays["location"]), len(format_3.FEATURES)
    root = rng.normal(0.0, 0.1, (learners, features, features))
    return {
        **arrays,
        "statistics": arrays["statistics"][: format_3.STATISTICS],
        "location": rng.normal(0.0, 0.1, (learners, features)),
        "location_cov": root @ root.swapaxes(1, 2),
    }


def test_what_is_looked_at_still_goes_on() -> None:
    engine = played().engine
    arrays = older({name: array.copy() for name, array in engine.arrays().items()})
    engine.restore(arrays)
    memory, known, new = engine.memory, [0, 1, 2, 3, 4, 7, 8], [5, 6]
    np.testing.assert_array_equal(memory.location[:, known], arrays["location"])
    np.testing.assert_array_equal(memory.location[:, new], 0.0)
    for mine, theirs in zip(memory.location_cov, arrays["location_cov"], strict=True):
        np.testing.assert_array_equal(mine[np.ix_(known, known)], theirs)
        np.testing.assert_array_equal(mine[np.ix_(new, new)], LOCATION_START * np.eye(2))
        np.testing.assert_array_equal(mine[np.ix_(known, new)], 0.0)
    np.testing.assert_array_equal(memory.statistics[: format_3.STATISTICS], arrays["statistics"])
    np.testing.assert_array_equal(memory.statistics[Statistic.OUTCOME_2 :], memory.statistics[Statistic.LAST_OUTCOME])
    for name in set(arrays) - set(format_3.memory_shapes(engine.rules)):
        np.testing.assert_array_equal(getattr(memory, name), arrays[name])


def test_a_memory_in_one_row_is_read() -> None:
    engine = played().engine
    arrays = older({name: array.copy() for name, array in engine.arrays().items()})
    row = np.concatenate([array.ravel() for array in arrays.values()])
    found = format_2.unpacked(engine, row)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_a_pending_round_keeps_what_was_said() -> None:
    recal = played()
    engine, record = recal.engine, recal.rounds.pending[ROUNDS].record
    _, *shapes = round_shapes(engine.rules)
    lies: Any = Round(None, *slices(tuple(shapes)))  # type: ignore[arg-type]
    new = lies.tracker_record.start + TrackerRecord.OUTCOME_2
    row = np.delete(record.row, [new, new + 1])
    assert row.size == length(tuple(format_3.round_shapes(engine.rules).values()))
    found = engine.restored_record({"slots": record.slots, "row": row}, None)
    expected = record.row.copy()
    expected[new : new + 2] = 0.0
    np.testing.assert_array_equal(found.row, expected)


def test_shapes_of_no_format_are_refused() -> None:
    engine = played().engine
    arrays = older({name: array.copy() for name, array in engine.arrays().items()})
    with pytest.raises(ValueError, match="location has the shape"):
        engine.restore({**arrays, "location": arrays["location"][:, 1:]})


def test_pools_know_spreads_from_their_ledgers() -> None:
    rng = np.random.default_rng(0)
    state = pools.with_streams(pools.new_pool(np.int64), [("a", 1), ("a", 2), ("b", 1)])
    state.memory.ledger[...] = rng.normal(size=state.memory.ledger.shape) ** 2
    state.memory.unit[...] = 5.0
    state.memory.members[...], state.clock = 1.0, 3
    plain, arrays = pools.pool_to_plain(state)
    del arrays["spreads"]
    found = pools.pool_from_plain(plain, arrays).memory.spreads
    np.testing.assert_array_equal(found[:, 0], [2.0, 1.0])
    assert (found[:, 3] != 0.0).all()


def test_a_pool_of_a_service_goes_on() -> None:
    pool = oc.Pool()
    games = [oc.Recalibrator(oc.Line(), pool=pool) for _ in range(2)]
    for y in (0.5, 1.0, 2.0):
        for game in games:
            game.predict(oc.Normal(0.0, 1.0))
            game.update(y)
    arrays = pool.arrays()
    older = {name: array for name, array in arrays.items() if name != "spreads"} | {"signal": arrays["signal"][:-1]}
    found = oc.Pool.from_arrays(older)
    np.testing.assert_array_equal(found.signal[:-1], pool.signal[:-1])
    assert found.signal[-1] == 0.0
    assert set(ARRAYS) <= set(found.arrays())
