"""`oc.monitor`: the series of a frame that are in alarm, in the words of their kind of forecast."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from orcast.cli import main
from orcast.evaluate import plots, report
from orcast.evaluate.monitoring import alarms
from orcast.evaluate.verdicts import USE, decide, verdict


def test_monitor_names_the_broken_series_the_worst_first() -> None:
    y = np.random.default_rng(0).normal(size=(20, 100))
    y[[3, 17], -30:] += [[2.0], [3.0]]
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(20), 100), "ds": list(range(100)) * 20, "y": y.ravel()})
    found = oc.monitor(frame.assign(mean=0.0, sd=1.0))
    assert found["series"][found["alarm"]].tolist() == ["17", "3"]
    assert all(abs(int(since) - 70) <= 15 for since in found["since"][:2])


def test_alarms_of_labels_speak_of_labels() -> None:
    y = np.random.default_rng(0).choice(list("abc"), 200)
    (found,) = oc.monitor(pd.DataFrame({"y": y, "p_a": 0.7, "p_b": 0.2, "p_c": 0.1})).to_dict("records")
    assert found["kind"] == "later labels forecast too seldom"
    assert found["text"].startswith("later labels forecast too seldom since round ")


def late_frame(seed: int, *, steps: int = 1) -> pd.DataFrame:
    """20 calibrated series of 250 rows, whose errors are means over some steps."""
    noise = np.random.default_rng(seed).normal(size=(20, 250 + steps))
    y = np.stack([noise[:, k : k + 250] for k in range(steps)]).sum(axis=0) / np.sqrt(steps)
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(20), 250), "ds": list(range(250)) * 20, "y": y.ravel()})
    return frame.assign(mean=0.0, sd=1.0)


def test_outcomes_that_come_late_leave_no_all_clear() -> None:
    frame = late_frame(0)
    frame.loc[frame["unique_id"] == 7, "y"] *= 1.4
    (prompt,), (late,) = oc.check(frame), oc.check(frame, lag=15)
    assert "(7)" in verdict(prompt)[0]
    assert "1 of 20 series are far off (the 90% interval covers 71% of 7), and alarms have no power" in verdict(late)[0]
    assert any("15 rows late, so the 250 rows of a series count as about 17" in text for text in verdict(late))
    with pytest.warns(UserWarning, match="15 rows late"):
        assert not oc.monitor(frame, lag=15)["alarm"].any()


@pytest.mark.parametrize("steps", [1, 15])
def test_calibrated_series_are_not_far_off(steps: int) -> None:
    decided = [decide(oc.check(late_frame(seed, steps=steps), lag=15)[0]) for seed in range(20)]
    assert sum(action == USE for action, _ in decided) >= 19, decided


@pytest.mark.parametrize("read", [oc.check, oc.monitor])
def test_series_that_nothing_tells_apart_are_refused(read: object) -> None:
    with pytest.raises(ValueError, match=r"expected one row for each time and cutoff, got rows 0 and 250"):
        read(late_frame(0).rename(columns={"unique_id": "shop"}))


@pytest.mark.parametrize("columns", [{"y": np.nan}, {"sd": 0.0}])
def test_tables_without_a_row_to_watch_have_no_alarms(columns: dict[str, float], tmp_path: Path) -> None:
    frame = late_frame(0).assign(**columns)
    assert oc.monitor(frame).empty
    frame.to_csv(tmp_path / "rows.csv")
    assert main(["watch", str(tmp_path / "rows.csv"), "--once", "--series", "unique_id"]) == 0


def test_the_picture_ends_at_the_evidence_of_the_alarms() -> None:
    frame = late_frame(0)
    frame["h"] = frame["ds"] % 3 + 1
    frame["cutoff"] = frame["ds"] - frame["h"]
    (evaluation,) = oc.check(frame[frame["unique_id"] < 4], lag=4)
    worst, picture = alarms(evaluation)[0], plots.evidence(evaluation)
    assert len(worst.monitors) == 3
    assert worst.path[-1] == pytest.approx(worst.evidence)
    assert picture.marks[0].y[-1] == pytest.approx(np.log10(worst.evidence))
    assert picture.marks[-1].label == "alarm at the last row: 1.9 (evidence 80)"


def test_several_alarms_are_a_list_in_the_report() -> None:
    frame = late_frame(0)
    frame.loc[frame["unique_id"] > 17, "y"] += 2.0
    (evaluation,) = oc.check(frame)
    assert "Alarms on 2 of 20 series (expected share of false ones: at most 5%): 1" in " ".join(verdict(evaluation))
    assert "at most 5%): <ul><li>1" in report.html([evaluation])


def test_a_broken_base_forecast_is_named_beside_recalibrated_ones(tmp_path: Path) -> None:
    """The command exits with 1 although the recalibrated forecasts are calibrated."""
    rng = np.random.default_rng(0)
    y = rng.normal(0.0, 2.0, 300)
    narrow, right = np.tile([-1.645, 0.0, 1.645], (300, 1)), np.tile([-3.29, 0.0, 3.29], (300, 1))
    names = [*(f"q{level}" for level in (0.05, 0.5, 0.95)), *(f"orcast_q{level}" for level in (0.05, 0.5, 0.95))]
    frame = pd.DataFrame(np.hstack((narrow, right)), columns=names).assign(ds=range(300), y=y)
    (evaluation,) = oc.check(frame)
    (text,) = [each for each in verdict(evaluation) if each.startswith("Alarm")]
    assert text.startswith("Alarm: base forecast: 90% interval covers")
    assert "recalibrated:" not in text
    frame.to_csv(tmp_path / "both.csv", index=False)
    assert main(["check", str(tmp_path / "both.csv"), "--fail", "--quiet"]) == 1


def test_a_change_to_calibrated_forecasts_has_no_size() -> None:
    rng = np.random.default_rng(3)
    monitor = oc.Monitor()
    for y in np.append(rng.normal(1.5, 1.0, 300), rng.normal(size=300)):
        monitor.update(oc.Normal(0.0, 1.0), y)
    assert monitor.changed is not None
    assert monitor.changed.text().endswith(": now about calibrated")


@pytest.mark.parametrize("forecast", [0.7, {"a": 0.5, "b": 0.5}])
def test_events_and_labels_name_the_space_that_they_need(forecast: object) -> None:
    with pytest.raises(TypeError, match=r"events and labels need Monitor\(space="):
        oc.Monitor().update(forecast, "a")
