"""Series from a data folder: CSV files, the publishers' own files, and the shipped stand-ins."""

from pathlib import Path

import pytest

from orcast.datasets import EXPERTS, stream
from orcast.evaluate.metrics import LEVELS, qce
from research.experiments import data

WIND, SUNSPOTS = "wind_ercot_2022_hourly.csv", "sunspot_silso_v2_monthly.csv"
needs_folder = pytest.mark.skipif(
    not {"wind", "sunspots"} <= set(data.available()), reason=f"{data.VARIABLE} names no folder with wind and sunspots"
)


def test_without_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(data.VARIABLE, raising=False)
    assert data.available() == ("humidity",)
    for folder in (None, tmp_path):
        assert [data.best(name, folder).name for name in data.NAMES] == [
            "wind-haute-borne",
            "sunspots-zurich",
            "humidity",
        ]
    with pytest.raises(FileNotFoundError, match=r"^expected a folder with wind.*, got neither"):
        data.load("wind")


def test_folder_as_argument_or_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / WIND).write_text("hour,wind_mwh\n1,10.5\n2,20.25\n")
    assert data.load("wind", tmp_path).values.tolist() == [10.5, 20.25]
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert data.load("wind").values.tolist() == [10.5, 20.25]
    assert data.available() == ("wind", "humidity")
    assert [data.best(name).name for name in data.NAMES] == ["wind", "sunspots-zurich", "humidity"]
    with pytest.raises(FileNotFoundError, match=r"^expected sunspot.* in the data folder, got "):
        data.load("sunspots")


@needs_folder
def test_streams_of_the_folder() -> None:
    """The base forecasts have the calibration that the yardstick's targets were set for."""
    streams = [stream(data.load(name), expert) for name in ("wind", "sunspots") for expert in EXPERTS]
    assert [s.name for s in streams] == ["wind/rls", "wind/naive", "sunspots/rls", "sunspots/naive"]
    assert [len(s) for s in streams] == [3000, 3000, 3092, 3092]
    for s, error, worst in zip(streams, [0.1504, 0.0177, 0.1886, 0.1373], [1.052, 1.774, 2.638, 4.965], strict=True):
        q = s.quantile(LEVELS)
        assert qce(q, s.y, low=s.low, high=s.high) == pytest.approx(error, abs=1e-3)
        assert qce(q, s.y, low=s.low, high=s.high, window=200) == pytest.approx(worst, abs=1e-2)
