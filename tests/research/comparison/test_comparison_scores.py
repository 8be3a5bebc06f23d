"""Scores against plain definitions, and ranks by hand."""

import math

import numpy as np
import pytest
from small_streams import LEVELS, events, one_step, panel

from research.comparison import scores
from research.comparison.runner import Run
from research.comparison.scores import joint_ranks, score


def as_issued(stream, shift: float = 0.0, wide: float = 1.0) -> Run:
    middle = stream.base[:, 3:4]
    return Run(middle + wide * (stream.base - middle) + shift, stream.y, 2e-6)


def test_base_forecast_has_a_loss_of_one() -> None:
    for stream in (one_step(), panel(), events()):
        found = score(stream, Run(stream.base, stream.y, 0.0), 0.0)
        assert found.loss == pytest.approx(1.0)
        assert found.worst == pytest.approx(1.0)
        assert found.better == 0.0


def test_columns_against_plain_loops() -> None:
    stream = one_step(250)
    run = as_issued(stream, 0.4, 1.3)
    found = score(stream, run, 0.01)

    def loss(q: np.ndarray) -> float:
        return float(
            np.mean([[max(a * (y - v), (a - 1) * (y - v)) for a, v in zip(LEVELS, row, strict=True)]
                     for row, y in zip(q, stream.y, strict=True)])
        )  # fmt: skip

    assert found.loss == pytest.approx(loss(run.issued) / loss(stream.base))
    shares = [sum(y <= v for y, v in zip(stream.y, column, strict=True)) / 250 for column in run.issued.T]
    assert found.gap == pytest.approx(np.mean([abs(s - a) for s, a in zip(shares, LEVELS, strict=True)]))
    assert found.qce == pytest.approx(sum((s - a) ** 2 for s, a in zip(shares, LEVELS, strict=True)))
    assert found.cover50 == pytest.approx(shares[4] - shares[2])
    assert found.cover90 == pytest.approx(shares[5] - shares[1])
    assert found.cover98 == pytest.approx(shares[6] - shares[0])
    assert found.width90 == pytest.approx(1.3)
    assert found.microseconds == pytest.approx(2.0)
    assert found.chance == 0.01
    windows = [
        sum((np.mean(stream.y[s : s + 200] <= column[s : s + 200]) - a) ** 2
            for a, column in zip(LEVELS, run.issued.T, strict=True))
        for s in range(51)
    ]  # fmt: skip
    assert found.rolling == pytest.approx(max(windows))


def test_ties_favour_the_forecast() -> None:
    q, y = np.zeros((10, 2)), np.zeros(10)
    assert scores.gap(q, y, np.array([0.2, 0.7])) == 0.0
    assert scores.gap(q, y + 1.0, np.array([0.2, 0.7])) == pytest.approx(0.45)


def test_loss_of_a_panel_is_a_geometric_mean_over_groups() -> None:
    stream = panel()
    run = as_issued(stream, 0.3)
    found = score(stream, run, 0.0)
    ratios = []
    for g in stream.groups():
        e = stream.y[g][:, None]
        losses = [np.maximum(LEVELS * (e - q), (LEVELS - 1) * (e - q)).mean() for q in (run.issued[g], stream.base[g])]
        ratios.append(losses[0] / losses[1])
    assert len(ratios) == 6
    assert found.loss == pytest.approx(math.prod(ratios) ** (1 / 6))
    assert found.worst == pytest.approx(max(ratios))
    assert found.better == pytest.approx(sum(r < 1 for r in ratios) / 6)
    assert math.isnan(found.rolling)  # no group is that long


def test_events_have_brier_and_calibration_errors() -> None:
    stream = events(260)
    p = np.full(260, 0.55)
    found = score(stream, Run(p, stream.y, 0.0), 0.0)
    assert found.loss == pytest.approx(np.mean((p - stream.y) ** 2) / np.mean((stream.base - stream.y) ** 2))
    assert found.gap == pytest.approx(abs(stream.y.mean() - 0.55))
    windows = [abs(stream.y[s : s + 200].mean() - 0.55) for s in range(61)]
    assert found.rolling == pytest.approx(max(windows))
    assert math.isnan(found.qce)
    assert math.isnan(found.cover90)


def test_chance_falls_with_length_and_rises_with_overlap() -> None:
    short, long, late = (
        scores.chance_gap(one_step(50)),
        scores.chance_gap(one_step(800)),
        scores.chance_gap(one_step(50, 5)),
    )
    assert long < short < late
    # the mean of |frequency - level| of T independent outcomes is about sqrt(2 a (1 - a) / (pi T))
    about = np.sqrt(2 * LEVELS * (1 - LEVELS) / (np.pi * 800)).mean()
    assert long == pytest.approx(about, rel=0.3)
    assert 0.0 < scores.chance_gap(events()) < 0.3


def test_joint_ranks_by_hand() -> None:
    found = joint_ranks({
        "s": {"a": (0.1, 1.0), "b": (0.2, 0.9), "c": (0.3, 1.1)},
        "t": {"a": (0.1, 0.8), "b": (0.1, 0.9)},
    })  # fmt: skip
    assert found["a"].mean == ((1 + 2) / 2 + (1.5 + 1) / 2) / 2
    assert found["b"].mean == ((2 + 1) / 2 + (1.5 + 2) / 2) / 2
    assert found["c"].mean == 3.0
    assert (found["a"].streams, found["c"].streams) == (2, 1)
    for rank in found.values():
        assert rank.low <= rank.mean <= rank.high
    assert (found["a"].low, found["a"].high) == (1.25, 1.5)
