"""Games on ordered spaces from files of format 2: what goes on as it was, and what begins anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from orcast.engine import format_2
from orcast.engine.kernels.packing import fields
from orcast.engine.kernels.records import CellRow, RoundInfo, Statistic, TrackerRecord
from orcast.engine.kernels.tracker import LOCATION_START
from orcast.persistence import files as storage

# Of each learner of format 2: whether it knows the last errors, and its memory.
LIKE = [(True, 0.99), (True, 0.998), (False, 0.99), (False, 0.998)]
V2 = Path(__file__).parents[1] / "golden" / "v2"


def loaded(name: str) -> tuple[Any, dict[str, Any]]:
    """A game from a file of format 2, and the arrays that the file has."""
    _, arrays = storage.read(V2 / f"{name}.orcast")
    return oc.Recalibrator.load(V2 / f"{name}.orcast"), arrays


@pytest.mark.parametrize("name", ["interval", "experts", "by_values", "line"])
def test_the_ledger_and_what_is_known_go_on(name: str) -> None:
    game, arrays = loaded(name)
    memory = game.engine.memory
    for field in ("total", "account", "groups", "shape", "warm", "rivals", "by_group", "group_loss"):
        np.testing.assert_array_equal(getattr(memory, field), arrays[f"memory/{field}"])
    np.testing.assert_array_equal(memory.statistics[: format_2.STATISTICS], arrays["memory/statistics"])
    np.testing.assert_array_equal(memory.member_loss, arrays["memory/member_loss"][:, :-2])


def test_learners_go_on_from_those_that_were_like_them() -> None:
    game, arrays = loaded("interval")
    memory, learners = game.engine.memory, game.engine.rules.learners
    for new, old in enumerate(format_2.WHENCE):
        np.testing.assert_array_equal(memory.location[new, :5], arrays["memory/location"][old])
        np.testing.assert_array_equal(memory.fit[new], arrays["memory/fit"][old])
        np.testing.assert_array_equal(memory.spread[new], arrays["memory/spread"][old])
        # what knows only a bias, or forgets soon, stays what it was
        assert (learners[new, 0] > 1.0, learners[new, 1]) == LIKE[old]
    np.testing.assert_array_equal(memory.location[:, 5:], 0.0)
    np.testing.assert_array_equal(memory.location_cov[:, 5:, 5:], np.tile(LOCATION_START * np.eye(4), (6, 1, 1)))
    losses = arrays["memory/track_loss"]
    np.testing.assert_array_equal(memory.track_loss[:, :6], losses[:, 1:][:, format_2.WHENCE])
    trackers = len(game.engine.rules.quantile_trackers)
    np.testing.assert_array_equal(memory.track_loss[:, 6:], np.repeat(losses[:, :1], trackers, axis=1))


def test_evidence_begins_anew() -> None:
    memory = loaded("experts")[0].engine.memory
    for field in ("track_evidence", "level_evidence", "member_evidence", "offsets", "level_offsets", "surprises"):
        assert not getattr(memory, field).any()
    assert memory.expert_loss.shape[0] == 3
    assert not memory.expert_loss.any()


def test_how_far_the_expert_moves_is_not_zero_for_good() -> None:
    statistics = loaded("interval")[0].engine.memory.statistics
    assert statistics[Statistic.MOVE_MEAN] > 0.0
    assert statistics[Statistic.LAST_MEDIAN] == statistics[Statistic.LAST_OUTCOME] - statistics[Statistic.ERROR_1]
    assert statistics[Statistic.FARTHEST_ERROR] >= abs(statistics[Statistic.ERROR_1])


def test_pending_rounds_keep_what_was_played() -> None:
    game, arrays = loaded("interval")
    shapes = format_2.round_shapes(game.engine.rules)
    for number, entry in enumerate(game.rounds.pending.values()):
        old = dict(zip(shapes, fields(tuple(shapes.values()), arrays[f"pending/{number}/row"]), strict=True))
        round = entry.record.round
        # a round of a game without coins has none
        np.testing.assert_array_equal(round.info[: RoundInfo.COIN], old["info"])
        assert round.info[RoundInfo.COIN] == 0.0
        np.testing.assert_array_equal(round.certificate[: old["certificate"].size], old["certificate"])
        for field in ("means", "experts", "raw", "rivals", "units", "context", "expected"):
            np.testing.assert_array_equal(getattr(round, field), old[field])
        np.testing.assert_array_equal(round.cells[: CellRow.LEARNT], old["cells"][: CellRow.LEARNT])
        np.testing.assert_array_equal(round.cells[CellRow.MEMBERS :], old["cells"][CellRow.LEARNT :])
        np.testing.assert_array_equal(round.cells[CellRow.LEARNT], round.cells[CellRow.PRIOR])
        assert round.info[RoundInfo.HAS_EXPERT] == 1.0
        assert round.tracker_record[TrackerRecord.MEDIAN] == old["tracker_record"][9]
        assert round.tracker_record[TrackerRecord.USUAL_MOVE] == 1.0
        said = round.tracker_record[TrackerRecord.LEARNERS :].reshape(6, -1)
        np.testing.assert_array_equal(said, old["tracker_record"][10:].reshape(4, -1)[format_2.WHENCE])
        expert = np.clip(round.experts[0], 0.0, 100.0)
        np.testing.assert_array_equal(round.tracked, np.broadcast_to(expert, round.tracked.shape))


@pytest.mark.parametrize("field", ["statistics", "track_loss", "pool", "location_cov"])
def test_a_file_with_other_shapes_is_refused(field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header, arrays = storage.read(V2 / "interval.orcast")
    arrays[f"memory/{field}"] = np.ones(3)
    with monkeypatch.context() as before:
        before.setattr(storage, "VERSION", 2)
        storage.write(tmp_path / "state", header, arrays)
    with pytest.raises(ValueError, match=f"expected a state that this version can use.*{field} has the shape"):
        oc.Recalibrator.load(tmp_path / "state")
