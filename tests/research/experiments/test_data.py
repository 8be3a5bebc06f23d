"""Series from a data folder: CSV files, the publishers' own files, and the shipped stand-ins."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orcast.metrics import LEVELS, qce, worst_rolling_qce
from research.experiments import data

BOOK, TABLE = "IntGenbyFuel2022.xlsx", "SN_m_tot_V2.0.csv"
WIND, SUNSPOTS = "wind_ercot_2022_hourly.csv", "sunspot_silso_v2_monthly.csv"
SILSO = """\
1749;01;1749.042;  96.7; -1.0;   -1;1
1749;02;1749.123; 104.3; -1.0;   -1;1
1749;03;1749.204;   0.0; -1.0;   -1;1
"""
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


@pytest.mark.parametrize(
    "rows", ["", "hour,power\n1,2", "hour,wind_mwh", "hour,wind_mwh\n1,none", "hour,wind_mwh\n1,-5"]
)
def test_damaged_csv_is_refused(rows: str, tmp_path: Path) -> None:
    (tmp_path / WIND).write_text(rows)
    for read in (data.load, data.best):
        with pytest.raises(ValueError, match=r"^expected .*, got "):
            read("wind", tmp_path)


def test_unknown_names_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^expected a folder, as argument or in ORCAST_DATA, got '.*nowhere'$"):
        data.best("wind", tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"^expected one of wind, sunspots, humidity, got 'rain'$"):
        data.best("rain")
    with pytest.raises(ValueError, match=r"^expected one of wind, sunspots, got 'humidity'$"):
        data.stand_in("humidity")


def test_silso_file(tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text(SILSO + "1749;04;1749.288;  12.5; 7.1;  30;0\n\n")
    series = data.load("sunspots", tmp_path)
    assert series.values.tolist() == [96.7, 104.3, 0.0, 12.5]
    assert "SILSO" in series.source
    missing = "1749;04;1749.288;  -1; -1.0;   -1;0\r\n"
    (tmp_path / TABLE).write_text("\ufeff" + SILSO.replace("\n", "\r\n") + missing, encoding="utf-8", newline="")
    assert data.load("sunspots", tmp_path).values.tolist() == [96.7, 104.3, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"values between 0 and 500 in .*, got others or none$"),
        ("<html>\n", r"year;month;date;mean in .*, got '<html>'$"),
        (SILSO.replace("104.3", "-1"), r"every month in .*, got a gap after 1749-01$"),
        (SILSO + SILSO, r"every month in .*, got a gap after 1749-03$"),
        (SILSO.replace("104.3", "1e9"), r"values between 0 and 500"),
    ],
)
def test_damaged_silso_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text(text)
    with pytest.raises(ValueError, match=rf"^expected .*{message}"):
        data.load("sunspots", tmp_path)


def test_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / SUNSPOTS).write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(ValueError, match=rf"^expected text in {SUNSPOTS}, got something else$"):
        data.load("sunspots", tmp_path)


def year() -> dict[int, list[dict[str, Any]]]:
    """Rows of 2022 by month in ERCOT's layout; the quarter hours of the k-th hour sum to k + 1."""
    rows: dict[Any, dict[str, Any]] = defaultdict(dict)
    start = datetime(2022, 1, 1, 6, tzinfo=UTC)
    for k in range(8760):
        moment = start + timedelta(hours=k)
        summer = datetime(2022, 3, 13, 8, tzinfo=UTC) <= moment < datetime(2022, 11, 6, 7, tzinfo=UTC)
        again = datetime(2022, 11, 6, 7, tzinfo=UTC) <= moment < datetime(2022, 11, 6, 8, tzinfo=UTC)
        here = (moment - timedelta(hours=5 if summer else 6)).replace(tzinfo=None)
        for quarter, share in enumerate((0.125, 0.25, 0.5, 0.125)):
            hour, minute = divmod((60 * here.hour + 15 * (quarter + 1)) % 1440, 60)
            rows[here.date()][f"{hour}:{minute:02d}{' (DST)' * again}"] = (k + 1) * share
    months = defaultdict(list)
    for day, cells in rows.items():
        head = {"Date": datetime(day.year, day.month, day.day), "Settlement Type": "FINAL"}
        months[day.month] += [
            {**head, "Fuel": "Gas", "0:15": 9.0},
            {**head, "Fuel": "Wind", "Settlement Type": "INITIAL", **dict.fromkeys(cells, 7.0)},
            {**head, "Fuel": "Wind ", **cells},
        ]
    return months


@pytest.mark.slow
def test_ercot_workbook(tmp_path: Path) -> None:
    """A whole year with both changes of the clock, other fuels and rows of two settlements."""
    pytest.importorskip("openpyxl")
    pandas = pytest.importorskip("pandas")
    months = year()
    for count in (12, 11):
        with pandas.ExcelWriter(tmp_path / BOOK) as book:
            pandas.DataFrame({"Energy by fuel": [1.5]}).to_excel(book, sheet_name="Summary", index=False)
            for month in range(1, count + 1):
                pandas.DataFrame(months[month]).to_excel(book, sheet_name=f"month {month}", index=False)
        if count == 12:
            np.testing.assert_allclose(data.load("wind", tmp_path).values, np.arange(1.0, 8761.0), rtol=1e-12)
        else:
            with pytest.raises(ValueError, match=r"^expected 35,040 quarter hours .*, got 32,064 on 334$"):
                data.load("wind", tmp_path)
    (tmp_path / BOOK).write_text("<html>please enable cookies</html>")
    with pytest.raises(ValueError, match=r"^expected an Excel workbook in .*, got something else$"):
        data.load("wind", tmp_path)


@needs_folder
def test_streams_of_the_folder() -> None:
    """The base forecasts have the calibration that the yardstick's targets were set for."""
    streams = list(data.table_streams())
    assert [s.name for s in streams] == ["wind/rls", "wind/naive", "sunspots/rls", "sunspots/naive"]
    assert [len(s) for s in streams] == [3000, 3000, 3092, 3092]
    for s, error, worst in zip(streams, [0.1504, 0.0177, 0.1886, 0.1373], [1.052, 1.774, 2.638, 4.965], strict=True):
        q = s.quantile(LEVELS)
        assert qce(q, s.y, low=s.low, high=s.high) == pytest.approx(error, abs=1e-3)
        assert worst_rolling_qce(q, s.y, low=s.low, high=s.high) == pytest.approx(worst, abs=1e-2)


@needs_folder
def test_stand_in_of_sunspots_is_version_one() -> None:
    """Version 2.0 drops the factor 0.6 that made later observers count like the first."""
    old, new = data.stand_in("sunspots").values, data.load("sunspots").values[:2820]
    assert np.corrcoef(old, new)[0, 1] > 0.98
    assert np.mean(np.abs(old - 0.6 * new) < 0.06) > 0.4
