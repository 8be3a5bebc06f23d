"""Benchmarks: the command, streams and their scores, the attack on a guarantee, panels."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import orcast as oc
from orcast.metrics import LEVELS
from research import __main__ as research
from research.benchmarks import games, guarantee, streams
from research.benchmarks.command import YARDSTICK
from research.benchmarks.lines import Line, Remark


def section(title: str, *lines: Line | Remark) -> SimpleNamespace:
    return SimpleNamespace(TITLE=title, measure=lambda quick: iter(lines))


def test_command_prints_lines_and_writes_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speed = section("Speed", Remark("one call"), Line("a round", "times one call", 3.0, 4.0))
    monkeypatch.setitem(sys.modules, "research.benchmarks.speed", speed)
    monkeypatch.setitem(sys.modules, "research.benchmarks.memory", section("Memory", Line("a", "bytes", 9.0, 8.0)))
    out = tmp_path / "numbers.json"
    assert research.main(["bench", "speed", "--out", str(out), "--strict"]) == 0
    assert research.main(["bench", "memory", "--quick", "--out", str(out)]) == 0
    assert research.main(["bench", "memory", "--strict"]) == 1
    found = json.loads(out.read_text(encoding="utf-8"))
    assert list(found) == ["Speed", "Memory"], "other sections are kept"
    assert (found["Speed"][1]["value"], found["Memory"][0]["verdict"]) == (3.0, "MISSED")
    text = capsys.readouterr().out
    assert "a round" in text
    assert "0 targets ok, 1 MISSED" in text
    assert research.main(["bench", "sped"]) == 2


def test_yardstick_stream_with_late_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(40)
    q = np.tile(LEVELS, (40, 1))
    arrays = {"q": q, "y": y, "lo": 0.0, "hi": 1.0, "issue": np.arange(40), "reveal": np.arange(40) + 3}
    (tmp_path / "streams").mkdir()
    np.savez(tmp_path / "streams" / "late.npz", **arrays)
    case = streams.read_case(tmp_path / "streams" / "late.npz")
    assert case.reveal is not None
    assert case.reveal[:3].tolist() == [3, 4, 5]
    found, done = streams.run_case(case, case.reveal)
    recal = oc.Recalibrator(oc.Interval(0, 1))
    for t in range(40):
        if t >= 3:
            recal.update(y[t - 3], id=t - 3)
        np.testing.assert_array_equal(recal.predict(oc.Quantiles(LEVELS, q[t]), id=t).quantile(LEVELS), found[t])
    assert done.rounds == 40
    monkeypatch.setenv(YARDSTICK, str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"^expected a folder as --yardstick or in ORCAST_YARDSTICK, got "):
        streams.yardstick_folder()


@pytest.mark.parametrize("name", ["Interval, default, hard greedy", "Binary, default, greedy"])
def test_attack_measures_a_game(name: str) -> None:
    (game,) = [game for game in games.all_games() if game.name == name]
    outcome = guarantee.attempt(game, 30, 60.0)
    assert outcome.failure == ""
    assert (outcome.rounds, outcome.held, outcome.uncertified) == (30, 1.0, 0)
    assert 0.0 < outcome.ratio <= 1.0 + 1e-9
    assert next(line.value for line in guarantee._summaries([outcome]) if isinstance(line, Line)) == 1.0
