"""Files as people have them: one command each gives a report."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from orcast import cli

Capture = pytest.CaptureFixture[str]
WEEKS = [str(day) for day in np.arange("2023-01-07", "2024-01-01", 7, dtype="datetime64[D]")]
LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)


def hub(folder: Path) -> tuple[Path, Path]:
    """A model output of a hub, pivoted, with states by number, and its target data with a revision."""
    rng = np.random.default_rng(0)
    seen = {(place, day): int(rng.poisson(60)) for place in ("01", "02") for day in WEEKS}
    output = ["reference_date,target,horizon,target_end_date,location," + ",".join(map(str, LEVELS))]
    for i, reference in enumerate(WEEKS[:-3]):
        for horizon in (0, 1, 2, 3):
            for place in ("01", "02"):
                about = f"{reference},wk inc flu hosp,{horizon},{WEEKS[i + horizon]},{place}"
                output.append(",".join([about, *(f"{60 + 10 * (level - 0.5):.2f}" for level in LEVELS)]))
    target = ["as_of,target,target_end_date,location,observation"]
    target += [f"2024-01-06,wk inc flu hosp,{day},{place},{y}" for (place, day), y in seen.items()]
    target += [f"2023-02-01,wk inc flu hosp,{WEEKS[0]},01,1"]
    paths = folder / "model-output.csv", folder / "time-series.csv"
    for path, lines in zip(paths, (output, target), strict=True):
        path.write_text("\n".join(lines) + "\n")
    return paths


def test_a_hub(tmp_path: Path, capsys: Capture) -> None:
    output, target = hub(tmp_path)
    page = tmp_path / "hub.html"
    assert cli.main(["recalibrate", str(output), "--target", str(target), "--low", "0", "--report", str(page)]) == 0
    told = capsys.readouterr().err
    assert "392 rows, 2 series" in told
    assert "The 95% interval covered" in told
    assert "The 95% interval covered" in page.read_text()
    made = pl.read_csv(tmp_path / "model-output.orcast.csv", schema_overrides={"location": pl.String})
    given = pl.read_csv(output, schema_overrides={"location": pl.String})
    assert made[given.columns].equals(given)
    assert made["orcast_0.5"].null_count() == 0
    # a forecast is about what was not known: the first outcomes reach those of the second week
    first = made.filter(pl.col("reference_date") == WEEKS[0])
    assert np.allclose(first["orcast_0.5"].to_numpy(), first["0.5"].to_numpy(), rtol=0.02)


def test_a_hub_without_its_outcomes_is_told_where_to_put_them(tmp_path: Path, capsys: Capture) -> None:
    output, target = hub(tmp_path)
    assert cli.main(["check", str(output)]) == 2
    assert "or target= with a table of outcomes" in capsys.readouterr().err
    assert cli.main(["check", str(output), "--target", str(target)]) == 0
    assert "The 95% interval covered" in capsys.readouterr().out


def test_columns_of_prophet_are_named(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(1)
    days = [str(day) for day in np.arange("2024-01-01", "2024-06-01", dtype="datetime64[D]")]
    centre = 10 + np.sin(np.arange(len(days)) / 7)
    table = {"ds": days, "yhat": centre, "yhat_lower": centre - 0.5, "yhat_upper": centre + 0.5, "trend": centre}
    table |= {"trend_lower": centre, "trend_upper": centre, "y": centre + rng.normal(size=len(days))}
    pl.DataFrame(table).write_csv(tmp_path / "prophet.csv")
    assert cli.main(["check", str(tmp_path / "prophet.csv")]) == 2
    assert "--model tree:0.05=lower,0.95=upper" in capsys.readouterr().err
    wider = "yhat:0.025=yhat_lower,0.5=yhat,0.975=yhat_upper"
    assert cli.main(["check", str(tmp_path / "prophet.csv"), "--model", wider]) == 0
    assert "The 95% interval covered" in capsys.readouterr().out


def test_an_ensemble(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(2)
    times = [str(hour) for hour in np.arange("2024-01-01T00", "2024-01-09T00", dtype="datetime64[h]")]
    members = {f"ens{i + 1}": rng.normal(5, 0.5, len(times)) for i in range(11)}
    pl.DataFrame({"valid_time": times, "obs": rng.normal(5, 1.0, len(times)), **members}).write_csv(tmp_path / "e.csv")
    page = tmp_path / "e.html"
    assert cli.main(["recalibrate", str(tmp_path / "e.csv"), "--report", str(page)]) == 0
    told = capsys.readouterr().err
    assert "members (ens1, ens2, ..., ens11)" in told
    assert "The 90.91% interval covered" in told
    assert "90.909" not in told + page.read_text()
    assert cli.main(["check", str(tmp_path / "e.csv"), "--model", "ens:ens1,ens2,ens3"]) == 0
    assert "members (ens1, ens2, ens3)" in capsys.readouterr().err
