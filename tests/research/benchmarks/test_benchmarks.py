"""Benchmarks: the command, stored and made-up streams."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

import orcast as oc
from research import __main__ as research
from research.benchmarks import made, monitor, quality, yardstick
from research.benchmarks.command import YARDSTICK
from research.benchmarks.lines import Line, Remark


def section(title: str, *lines: Line | Remark) -> SimpleNamespace:
    return SimpleNamespace(TITLE=title, measure=lambda quick: iter(lines))


def test_command_prints_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    speed = section("Speed", Remark("one call"), Line("a round", "times one call", 3.0, 4.0))
    monkeypatch.setitem(sys.modules, "research.benchmarks.speed", speed)
    monkeypatch.setitem(sys.modules, "research.benchmarks.frames", section("Frames", Line("a", "bytes", 9.0, 8.0)))
    assert research.main(["bench", "speed", "--strict"]) == 0
    assert research.main(["bench", "frames", "--quick"]) == 0
    assert research.main(["bench", "frames", "--strict"]) == 1
    text = capsys.readouterr().out
    assert "a round" in text
    assert "0 targets ok, 1 MISSED" in text
    assert research.main(["bench", "sped"]) == 2


def test_yardstick_folder_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(YARDSTICK, str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"^expected a folder as --yardstick or in ORCAST_YARDSTICK, got "):
        yardstick.folder()


def test_quality_measures_each_kind_of_stored_stream(tmp_path: Path) -> None:
    """Files in the format of the yardstick become streams whose rows are scored by horizon."""
    rng, levels = np.random.default_rng(0), np.array([0.05, 0.5, 0.95])
    y = np.cumsum(rng.standard_normal(44))
    q = y[:40, None, None] + np.arange(1, 4)[:, None] ** 0.5 * norm.ppf(levels)
    np.savez(tmp_path / "walk.npz", Q=q, Y=np.stack([y[h : h + 40] for h in (1, 2, 3)], axis=1), levels=levels)
    stream = yardstick.multi(tmp_path / "walk.npz")
    assert (stream.rows, len(stream.groups())) == (120, 3)
    last = quality.reference(stream, 1)
    at = np.flatnonzero(np.asarray(stream.horizon) == 2)[30]
    known = y[4:31] - y[2:29]  # two-step changes, from the second known outcome to the 30th
    np.testing.assert_allclose(last[at], y[30] + np.quantile(known, levels, method="hazen"))
    found = quality.Compared([stream], {"orcast": [last], "base forecast": [stream.base]})
    line = found.line("a", "b", quality.by_horizon(2), 9.0)
    rows = np.asarray(stream.horizon) == 2
    assert line.value == pytest.approx(
        oc.metrics.pinball(last[rows], stream.y[rows], levels).mean()
        / oc.metrics.pinball(stream.base[rows], stream.y[rows], levels).mean()
    )
    assert "base forecast 1.000" in line.note


def test_made_up_streams_have_the_properties_of_their_docstrings() -> None:
    panels = [made.strong_panel(seed) for seed in range(6)]
    holds = np.mean([quality.cover90(panel, panel.base) for panel in panels])
    assert abs(holds - (2 * norm.cdf(0.9 * norm.ppf(0.95)) - 1)) < 0.03, "calibrated, but 10% too narrow"
    np.testing.assert_array_equal(panels[0].base, made.strong_panel(0).base)
    pair, load = made.pair(0), made.load(0, 1000)
    assert quality.loss(pair, pair.experts["noisy"]) < quality.loss(pair, pair.experts["biased"])
    assert (load.known - load.issued == 24).all()
    assert quality.loss(load, quality._yesterday(load, 1)) < quality.loss(load, load.base)


def test_detectors_beside_find_a_wider_spread_and_no_change_of_a_calibrated_stream() -> None:
    calm, reference = np.random.default_rng(7).standard_normal((2, 1_200))
    wide = np.concatenate((calm[:600], 4.0 * calm[600:]))
    found = monitor.others([calm, wide], reference)
    assert {at.tolist()[0] for at in found.values()} == {monitor.NONE}
    assert 600 < found["River ADWIN"][1] < 700
    assert 600 < found["MAPIE RiskMonitoring"][1] < 1_200
    assert 600 < found["online-cp Shiryaev-Roberts"][1] < 700
    assert 600 < monitor.change(norm.cdf(wide), 0) < 620
    assert monitor.alarm(norm.cdf(calm)) == monitor.NONE


@pytest.mark.parametrize("kind", list(monitor.SCENARIOS))
def test_friedman_streams_drift_after_the_stable_rounds(kind: str) -> None:
    calm, drifting = (monitor.friedman(kind, 3, stable, 400)[1] for stable in (10_000, 200))
    np.testing.assert_array_equal(calm[:200], drifting[:200])
    assert (calm[200:600] != drifting[200:]).any()
