"""States that earlier versions wrote are read, played on, and give the answers that these versions gave.

Each folder of `golden` is a set, written by one version of the format.  On another kind of processor, or with other
versions of numpy and the like, sums are rounded differently, so answers agree to a relative 1e-9; with
ORCAST_GOLDEN=exact they must agree to the last bit, as they do where a set was written (see its about.json).
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from golden.players import NEEDS, PLAYERS
from golden.write import ABOUT, copy

STORIES = sorted(path for path in Path(__file__).parents[1].glob("golden/v*/*.json") if path.name != ABOUT)
EXACT = os.environ.get("ORCAST_GOLDEN") == "exact"
TOLERANCE = 1e-9


@pytest.mark.parametrize("story", STORIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_state_goes_on_as_it_did(story: Path, tmp_path: Path) -> None:
    data = json.loads(story.read_text())
    for needed in (NEEDS.get(data["kind"]), data["options"].get("needs")):
        if needed is not None:
            pytest.importorskip(needed)
    for file in story.parent.glob(f"{story.stem}*"):
        if file != story and file.name.removeprefix(story.stem)[:1] in ("", "."):
            copy(file, tmp_path)
    path, kind = tmp_path / story.stem, PLAYERS[data["kind"]]
    player = kind.load(path, data["options"])
    try:
        for number, (step, want) in enumerate(zip(data["steps"], data["answers"], strict=True)):
            if number == len(data["steps"]) // 2:
                # once more by way of a file as it is written today
                player.save(path)
                player = kind.load(path, data["options"])
            agree(player.play(step), want, f"step {number}")
    finally:
        player.save(path)


def agree(got: Any, want: Any, where: str, scale: float = 0.0) -> None:
    """Equal, numbers within a tolerance of their own size or of the largest beside them."""
    if isinstance(want, dict) and isinstance(got, dict):
        assert list(got) == list(want), where
        scale = largest(want.values())
        for key in want:
            agree(got[key], want[key], f"{where}, {key}", scale)
    elif isinstance(want, list) and isinstance(got, list):
        assert len(got) == len(want), where
        scale = largest(want)
        for i, (mine, theirs) in enumerate(zip(got, want, strict=True)):
            agree(mine, theirs, f"{where}[{i}]", scale)
    elif isinstance(want, float) and isinstance(got, float) and not EXACT:
        assert math.isclose(got, want, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale), f"{where}: {got!r}, not {want!r}"
    else:
        assert type(got) is type(want), where
        assert got == want, where


def largest(values: Any) -> float:
    """The largest number among values, by size."""
    return max((abs(value) for value in values if isinstance(value, float)), default=0.0)


def test_each_set_is_whole() -> None:
    """No state without its story, no story without its state, but for forecasts, which have none."""
    for folder in {story.parent for story in STORIES}:
        names = {path.name.split(".")[0] for path in folder.iterdir() if path.name != ABOUT}
        stories = {story.stem for story in STORIES if story.parent == folder}
        states = {path.name.split(".")[0] for path in folder.iterdir() if path.suffix != ".json"}
        assert names == stories
        assert stories - states == {"forecasts"}
