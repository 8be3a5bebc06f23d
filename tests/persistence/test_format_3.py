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
    root = rng.normal(0.0, 0.1, arrays["location_cov"].shape)
    return {
        **arrays,
        "statistics": arrays["statistics"][: format_3.STATISTICS],
        "location": rng.normal(0.0, 0.1, arrays["location"].shape),
        "location_cov": root @ root.swapaxes(1, 2),
    }


def test_what_is_looked_at_still_goes_on() -> None:
    engine = played().engine
    arrays = older({name: array.copy() for name, array in engine.arrays().items()})
    engine.restore(arrays)
    memory = engine.memory
    np.testing.assert_array_equal(memory.location[0, :5], arrays["location"][0, :5])
    np.testing.assert_array_equal(memory.location_cov[0, :5, :5], arrays["location_cov"][0, :5, :5])
    # an error, the last outcome and the seasons; the outcomes before it are new
    mine, theirs = [0, 1, 2, 5, 6], [0, 1, 4, 5, 6]
    for c in range(3, 6):
        np.testing.assert_array_equal(memory.location[c, mine], arrays["location"][c, theirs])
        expected = arrays["location_cov"][c][np.ix_(theirs, theirs)]
        np.testing.assert_array_equal(memory.location_cov[c][np.ix_(mine, mine)], expected)
        np.testing.assert_array_equal(memory.location[c, 3:5], 0.0)
        np.testing.assert_array_equal(memory.location_cov[c, 3:5, 3:5], LOCATION_START * np.eye(2))
    np.testing.assert_array_equal(memory.statistics[: format_3.STATISTICS], arrays["statistics"])
    np.testing.assert_array_equal(memory.statistics[Statistic.OUTCOME_2 :], memory.statistics[Statistic.LAST_OUTCOME])
    for name in set(arrays) - {"statistics", "location", "location_cov"}:
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


def test_other_shapes_are_refused() -> None:
    engine = played().engine
    arrays = older({name: array.copy() for name, array in engine.arrays().items()})
    with pytest.raises(ValueError, match="location has the shape"):
        engine.restore({**arrays, "location": np.zeros((6, 3))})
