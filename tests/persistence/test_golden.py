"""States that earlier versions wrote are read, played on, and give the answers that these versions gave.

Each folder of `golden` is a set, written by one version of the format.  On another kind of processor, or with other
versions of numpy and the like, sums are rounded differently, so answers agree to a relative 1e-9; with
ORCAST_GOLDEN=exact they must agree to the last bit, as they do where a set was written (see its about.json).

Since format 3 a committee on an ordered space has other learners, so that games of older sets go on with other answers:
of these, what is known before anything is played is compared as ever, and the answers in their form.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from golden.players import NEEDS, PLAYERS
from golden.write import ABOUT, copy
from orcast.engine.kernels.records import SeasonColumn
from orcast.persistence import files as storage

STORIES = sorted(path for path in Path(__file__).parents[1].glob("golden/v*/*.json") if path.name != ABOUT)
EXACT = os.environ.get("ORCAST_GOLDEN") == "exact"
TOLERANCE = 1e-9
# The kinds of spaces and of oracles whose games were redesigned in format 3, as states have them; and what says in a
# column of forecasts that outcomes are events or labels.
ORDERED, LEARNING = ("Interval", "HalfLine", "Line"), "Committee"
CHANCES = re.compile(r"\bp(_\w+)?\b")
# The level of a column.
LEVEL = re.compile(r"^(?:orcast_q)?(0\.\d+)$")
# A cell of a partition that begins after a state was read begins with the credit of today.
OF_TODAY = ("promised", "regret_bounds")


# each starts processes: of the older sets one is enough for the gate, their states being read by the same code
SLOW = {f"{old}-stream_{kind}" for old in ("v1", "v2") for kind in ("binary_by", "by", "labels_by", "options")}
SLOW |= {"v1-stream_mixed"}


def name_of(story: Path) -> str:
    return f"{story.parent.name}-{story.stem}"


@pytest.mark.parametrize(
    "story",
    [pytest.param(path, id=name_of(path), marks=pytest.mark.slow if name_of(path) in SLOW else ()) for path in STORIES],
)
def test_a_state_goes_on_as_it_did(story: Path, tmp_path: Path) -> None:
    data = json.loads(story.read_text())
    for needed in (NEEDS.get(data["kind"]), data["options"].get("needs")):
        if needed is not None:
            pytest.importorskip(needed)
    for file in story.parent.glob(f"{story.stem}*"):
        if file != story and file.name.removeprefix(story.stem)[:1] in ("", "."):
            copy(file, tmp_path)
    path, kind = tmp_path / story.stem, PLAYERS[data["kind"]]
    redesigned = is_redesigned(story, data)
    # what was added after certificates that did not hold was part of the promise before format 3
    added = data["options"].get("class") == "PartitionedRecalibrator" or story.stem.startswith("orca")
    but = OF_TODAY if added and story.parent.name != "v3" else ()
    player = kind.load(path, data["options"])
    try:
        for number, (step, want) in enumerate(zip(data["steps"], data["answers"], strict=True)):
            if number == len(data["steps"]) // 2:
                # once more by way of a file as it is written today
                player.save(path)
                player = kind.load(path, data["options"])
            got = player.play(step)
            if not redesigned or (number == 0 and "look" in step):
                agree(got, want, f"step {number}", but=but)
            else:
                agree_in_form(got, want, f"step {number}")
    finally:
        player.save(path)


def is_redesigned(story: Path, data: dict[str, Any]) -> bool:
    """Whether a committee plays on an ordered space in a set of before format 3."""
    if story.parent.name not in ("v1", "v2") or data["kind"] == "forecasts":
        return False
    if data["kind"] in ("nixtla", "panel", "spark"):
        columns = data["options"].get("columns") or " ".join(data["steps"][1]["frame"])
        return CHANCES.search(columns) is None
    files = [path for path in story.parent.rglob("*.orcast") if story.stem in (path.stem, path.parent.name)]
    kinds = {kind for path in files for kind in kinds_in(storage.read(path)[0])}
    return LEARNING in kinds and not kinds.isdisjoint(ORDERED)


def kinds_in(plain: Any) -> Iterator[str]:
    """The kinds of all that is said in a header."""
    if isinstance(plain, dict) and isinstance(plain.get("kind"), str):
        yield plain["kind"]
    if isinstance(plain, (dict, list)):
        for each in plain.values() if isinstance(plain, dict) else plain:
            yield from kinds_in(each)


def agree(got: Any, want: Any, where: str, scale: float = 0.0, but: Sequence[str] = ()) -> None:
    """Equal, numbers within a tolerance of their own size or of the largest beside them; but for some, by name."""
    if isinstance(want, dict) and isinstance(got, dict):
        assert list(got) == list(want), where
        scale = largest(want.values())
        for key in want:
            if key not in but:
                agree(got[key], want[key], f"{where}, {key}", scale, but)
    elif isinstance(want, list) and isinstance(got, list):
        assert len(got) == len(want), where
        scale = largest(want)
        for i, (mine, theirs) in enumerate(zip(got, want, strict=True)):
            agree(mine, theirs, f"{where}[{i}]", scale, but)
    elif isinstance(want, float) and isinstance(got, float) and not EXACT:
        assert math.isclose(got, want, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale), f"{where}: {got!r}, not {want!r}"
    else:
        assert type(got) is type(want), where
        assert got == want, where


def agree_in_form(got: Any, want: Any, where: str) -> None:
    """Alike but for numbers, which are finite where they were; quantiles are in order, and what held still does."""
    if isinstance(want, dict) and isinstance(got, dict):
        assert list(got) == list(want), where
        for key in want:
            agree_in_form(got[key], want[key], f"{where}, {key}")
        check_quantiles(got, where)
        if {"miscalibration", "promised", "rounds"} <= got.keys():
            assert got["miscalibration"] <= got["promised"], where
    elif isinstance(want, list) and isinstance(got, list):
        assert len(got) == len(want), where
        for i, (mine, theirs) in enumerate(zip(got, want, strict=True)):
            agree_in_form(mine, theirs, f"{where}[{i}]")
    else:
        assert type(got) is type(want), where
        assert isinstance(want, float) or got == want, where


def check_quantiles(answer: dict[str, Any], where: str) -> None:
    """The quantiles of a forecast, or of the rows of a frame, are in order."""
    rows = answer.get("rows", [])
    if isinstance(answer.get("quantiles"), list):
        rows = [*rows, answer["quantiles"]]
    levels = sorted(
        ((float(found[1]), key) for key in answer if (found := LEVEL.search(key))), key=lambda each: each[0]
    )
    columns = [answer[key] if isinstance(answer[key], list) else [answer[key]] for _, key in levels]
    rows = [*rows, *(row for row in zip(*columns, strict=True) if all(isinstance(value, float) for value in row))]
    for row in rows:
        assert all(a <= b for a, b in pairwise(row)), f"{where}: {row} are not in order"


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


def test_a_season_was_found() -> None:
    """That of the state which is there for it."""
    _, arrays = storage.read(Path(__file__).parents[1] / "golden" / "v3" / "season.orcast")
    assert arrays["memory/seasons"][SeasonColumn.FIRST] == 7.0
