"""The publishers' own files, read as they are, and the real series that stand in for them."""

import gzip
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orcast.paper.experiments import data

BOOK, TABLE = "IntGenbyFuel2022.xlsx", "SN_m_tot_V2.0.csv"
WIND, SUNSPOTS = "wind_ercot_2022_hourly.csv", "sunspot_silso_v2_monthly.csv"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
needs_openpyxl = pytest.mark.skipif(find_spec("openpyxl") is None, reason="openpyxl is not installed")


# --- ERCOT's workbook ---


def local(moment: datetime) -> tuple[datetime, bool]:
    """Central time of a moment in 2022, and whether the clock has been there before."""
    summer = datetime(2022, 3, 13, 8, tzinfo=UTC) <= moment < datetime(2022, 11, 6, 7, tzinfo=UTC)
    again = datetime(2022, 11, 6, 7, tzinfo=UTC) <= moment < datetime(2022, 11, 6, 8, tzinfo=UTC)
    return (moment - timedelta(hours=5 if summer else 6)).replace(tzinfo=None), again


def quarter_hours() -> Iterator[tuple[date, tuple[int, bool], float]]:
    """Day, column and MWh of each quarter hour; those of the k-th hour sum to k + 1, in unequal parts."""
    start = datetime(2022, 1, 1, 6, tzinfo=UTC)
    for k in range(8760):
        here, again = local(start + timedelta(hours=k))
        for quarter, share in enumerate((0.125, 0.25, 0.5, 0.125)):
            yield here.date(), (60 * here.hour + 15 * (quarter + 1), again), (k + 1) * share


def label(minute: int, again: bool, kind: str) -> Any:
    hour, rest = divmod(minute % 1440, 60)
    if again:
        return f"{hour:02d}:{rest:02d} (DST)"
    return {"text": f"{hour}:{rest:02d}", "padded": f" {hour:02d}:{rest:02d} ", "time": time(hour, rest)}[kind]


REGULAR = [(minute, False) for minute in range(15, 1441, 15)]
AGAIN = [(minute, True) for minute in range(75, 121, 15)]


def columns(month: int) -> list[tuple[int, bool]]:
    return REGULAR + AGAIN if month == 11 else REGULAR


def header(month: int, kind: str = "text") -> list[Any]:
    return ["Date", "Fuel", "Settlement Type", "Total", *(label(*column, kind) for column in columns(month))]


Row = list[Any]


@cache
def wind_rows() -> dict[int, list[Row]]:
    days: dict[date, dict[tuple[int, bool], float]] = defaultdict(dict)
    for day, column, value in quarter_hours():
        days[day][column] = value
    rows = defaultdict(list)
    for day, cells in days.items():
        values = [cells.get(column) for column in columns(day.month)]
        rows[day.month].append([datetime(2022, day.month, day.day), "Wind", "FINAL", sum(cells.values()), *values])
    return rows


def write(path: Path, sheets: dict[str, list[Row]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


@pytest.mark.slow
@needs_openpyxl
def test_the_workbook_of_a_whole_year(tmp_path: Path) -> None:
    """With both days on which the clock changes, three ways to write a time, other fuels, rows of two settlements."""
    sheets: dict[str, list[Row]] = {"Summary": [["Energy by fuel"], ["Date", "Fuel"], ["Wind", 1.5]], "Disclaimer": []}
    for month, rows in wind_rows().items():
        kind = ("text", "padded", "time")[month % 3]
        sheet = [header(month, kind)]
        for row in rows:
            other = [row[0], "Gas-CC", "FINAL", 9.0, *[9.0] * len(columns(month))]
            initial = [row[0], "Wind", "INITIAL", 7.0, *[7.0] * len(columns(month))]
            if month == 2:
                row = [row[0], "Wind ", *row[2:]]
            if month == 5:
                row = [row[0].strftime("%m/%d/%Y"), *row[1:]]
            if month == 12:
                sheet += [initial, row] if row[0].day % 2 else [row, initial]
            else:
                sheet += [other, row]
        sheets[MONTHS[month - 1]] = sheet
    sheets["Apr"].insert(0, ["Interval generation by fuel", None])
    write(tmp_path / BOOK, sheets)
    assert data.available(tmp_path) == ("wind", "humidity")
    series = data.load("wind", tmp_path)
    np.testing.assert_allclose(series.values, np.arange(1.0, 8761.0), rtol=1e-12)
    assert series.source.startswith("ERCOT")
    assert data.best("wind", tmp_path).name == series.name == "wind"
    (tmp_path / WIND).write_text("hour,wind_mwh\n1,10.5\n")
    assert data.load("wind", tmp_path).values.tolist() == [10.5], "the CSV comes first"


def january(change: Callable[[list[Row]], None], month: int = 1) -> dict[str, list[Row]]:
    rows = [header(month), *(row.copy() for row in wind_rows()[month])]
    change(rows)
    return {MONTHS[month - 1]: rows}


def set_cell(row: int, column: int, value: Any) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        rows[row][column] = value

    return change


@needs_openpyxl
@pytest.mark.parametrize(
    ("sheets", "said"),
    [
        ({"Summary": [["Date", "Fuel"]]}, r"a sheet for each month in .*, got Summary$"),
        ({"Market": [header(1)]}, r"a sheet for each month"),
        (january(lambda rows: None), r"on the 365 days of 2022 in .*, got 31, none on 2022-02-01$"),
        (january(lambda rows: rows.pop(9)), r"got 30, none on 2022-01-09$"),
        (january(set_cell(0, 0, "Day")), r"columns Date, Fuel and the 96 quarter hours in Jan of .*, got"),
        (january(set_cell(0, 8, "1:20")), r"columns Date, Fuel and the 96"),
        (january(set_cell(3, 50, None)), r"every quarter hour of 2022-01-03 in Jan of"),
        (january(set_cell(3, 50, "n/a")), r"every quarter hour of 2022-01-03 in Jan of"),
        (january(set_cell(3, 0, "soon")), r"a date in every row of Jan of .*, got 'soon'$"),
        (january(set_cell(3, 0, datetime(2021, 1, 3))), r"days of 2022 in .*, got 2021-01-03$"),
        (january(set_cell(3, 0, datetime(2022, 1, 4))), r"one row of wind a day in .*, got two for 2022-01-04$"),
        (january(set_cell(13, 4 + 8, 5.0), 3), r"no wind from 2 to 3 on 2022-03-13 in Mar of .*, got some$"),
        (january(set_cell(6, 4 + 96, None), 11), r"every quarter hour of 2022-11-06"),
        ({"Nov": [row[:100] for row in [header(11), *wind_rows()[11]]]}, r"columns 01:15 \(DST\) to 02:00 \(DST\)"),
    ],
)
def test_a_wrong_workbook_is_refused(sheets: dict[str, list[Row]], said: str, tmp_path: Path) -> None:
    write(tmp_path / BOOK, sheets)
    with pytest.raises(ValueError, match=rf"^expected .*{said}"):
        data.load("wind", tmp_path)


@needs_openpyxl
def test_what_is_no_workbook_is_refused(tmp_path: Path) -> None:
    (tmp_path / BOOK).write_text("<html>please enable cookies</html>")
    with pytest.raises(ValueError, match=r"^expected an Excel workbook in .*, got something else$"):
        data.load("wind", tmp_path)
    with zipfile.ZipFile(tmp_path / BOOK, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(ValueError, match=r"^expected an Excel workbook in .*, got something else$"):
        data.load("wind", tmp_path)


def test_without_openpyxl_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / BOOK).write_text("")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        ImportError, match=r"^expected the extra orcast\[experiments\] for reading .*, got no openpyxl$"
    ):
        data.load("wind", tmp_path)


# --- SILSO's file ---

SILSO = """\
1749;01;1749.042;  96.7; -1.0;   -1;1
1749;02;1749.123; 104.3; -1.0;   -1;1
1749;03;1749.204;   0.0; -1.0;   -1;1
"""


def test_the_file_of_silso(tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text(SILSO + "1749;04;1749.288;  12.5; 7.1;  30;0\n\n")
    assert data.available(tmp_path) == ("sunspots", "humidity")
    series = data.load("sunspots", tmp_path)
    assert series.values.tolist() == [96.7, 104.3, 0.0, 12.5]
    assert "SILSO" in series.source
    assert data.best("sunspots", tmp_path).name == "sunspots"


def test_capitals_and_the_ends_do_not_matter(tmp_path: Path) -> None:
    missing = "1748;12;1748.958;  -1; -1.0;   -1;1\r\n", "1749;04;1749.288;  -1; -1.0;   -1;0\r\n"
    text = "\ufeff" + missing[0] + SILSO.replace("\n", "\r\n") + missing[1]
    (tmp_path / TABLE.lower()).write_text(text, encoding="utf-8", newline="")
    assert data.load("sunspots", tmp_path).values.tolist() == [96.7, 104.3, 0.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"values between 0 and 500 in .*, got others or none$"),
        ("<html>\n", r"a year, a month, a date and a mean between semicolons in .*, got '<html>'$"),
        (SILSO.replace(";", ","), r"between semicolons in .*, got '1749,01"),
        (SILSO.replace("104.3", "-1"), r"every month in .*, got 1749-03 after 1749-01$"),
        (SILSO + SILSO, r"every month in .*, got 1749-01 after 1749-03$"),
        (SILSO.replace("104.3", "many"), r"between semicolons in"),
        (SILSO.replace("104.3", "nan"), r"every month in"),
        (SILSO.replace("104.3", "1e9"), r"values between 0 and 500"),
    ],
)
def test_a_wrong_file_of_silso_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text(text)
    with pytest.raises(ValueError, match=rf"^expected .*{said}"):
        data.load("sunspots", tmp_path)


def test_bytes_are_refused_in_one_sentence(tmp_path: Path) -> None:
    for name, file in (("sunspots", TABLE), ("sunspots", SUNSPOTS)):
        (tmp_path / file).write_bytes(b"\xff\xfe\x00\x81")
        with pytest.raises(ValueError, match=rf"^expected text in {re.escape(file)}, got something else$"):
            data.load(name, tmp_path)


@pytest.mark.skipif("sunspots" not in data.available(), reason="needs sunspots in the data folder")
def test_both_files_of_sunspots_say_the_same(tmp_path: Path) -> None:
    values = data.load("sunspots").values
    rows = (f"{1749 + k // 12};{k % 12 + 1:02d};0.0;{v:6.1f}; -1.0;  -1;1\n" for k, v in enumerate(values))
    (tmp_path / TABLE).write_text("".join(rows))
    np.testing.assert_array_equal(data.load("sunspots", tmp_path).values, values)


# --- stand-ins ---


def test_stand_ins_are_there_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(data.VARIABLE, raising=False)
    for folder in (None, tmp_path):
        wind, sunspots = data.best("wind", folder), data.best("sunspots", folder)
        assert (wind.name, len(wind), wind.period) == ("wind-haute-borne", 8400, 24)
        assert (sunspots.name, len(sunspots), sunspots.period) == ("sunspots-zurich", 2820, 132)
    for series in (wind, sunspots):
        assert series.low <= series.values.min() < series.values.max() <= series.high
        assert re.search(r"La Haute Borne, 2014.*Licence Ouverte|Zurich.*1983.*MIT", series.source)
        assert series.name not in data.NAMES


def test_a_series_at_hand_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / WIND).write_text("hour,wind_mwh\n1,10.5\n2,20.25\n")
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert data.best("wind").name == "wind"
    assert data.best("sunspots").name == "sunspots-zurich"
    assert data.stand_in("wind").name == "wind-haute-borne"
    assert data.best("humidity").name == "humidity"


def test_no_stand_in_hides_an_error(tmp_path: Path) -> None:
    (tmp_path / WIND).write_text("hour,power\n1,10.5\n")
    with pytest.raises(ValueError, match=r"^expected a column wind_mwh in .*, got hour, power$"):
        data.best("wind", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^expected a folder, as argument or in ORCAST_DATA, got '.*nowhere'$"):
        data.best("wind", tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"^expected one of wind, sunspots, humidity, got 'rain'$"):
        data.best("rain")
    with pytest.raises(ValueError, match=r"^expected one of wind, sunspots, got 'humidity'$"):
        data.stand_in("humidity")


def test_the_wind_farm_has_whole_days() -> None:
    """24 rows are one day of 2014, so that the task of the day ahead keeps its hours."""
    packed = (Path(data.__file__).parent / "wind_haute_borne_2014_hourly.csv.gz").read_bytes()
    hours = [line.split(",")[0] for line in gzip.decompress(packed).decode("ascii").splitlines()[1:]]
    moments = np.array(hours, dtype="datetime64[h]").reshape(-1, 24)
    first = moments[:, 0].astype("datetime64[D]")
    assert len(first) == 350
    assert (np.diff(first) >= np.timedelta64(1, "D")).all()
    assert first.astype("datetime64[Y]").astype(str).tolist() == ["2014"] * 350
    np.testing.assert_array_equal(moments, first[:, None].astype("datetime64[h]") + np.arange(24))


def test_the_sunspots_of_zurich_are_where_they_belong() -> None:
    values = data.stand_in("sunspots").values
    assert values[:3].tolist() == [58.0, 62.6, 70.0]
    assert divmod(int(values.argmax()), 12) == (1957 - 1749, 9), "the highest month of the series is October 1957"
    assert values.max() == 253.8


@pytest.mark.skipif("sunspots" not in data.available(), reason="needs sunspots in the data folder")
def test_the_sunspots_of_zurich_are_those_of_version_one() -> None:
    """Version 2.0 drops the factor 0.6 that made later observers count like the first."""
    old, new = data.stand_in("sunspots").values, data.load("sunspots").values[:2820]
    assert np.corrcoef(old, new)[0, 1] > 0.98
    assert np.mean(np.abs(old - 0.6 * new) < 0.06) > 0.4
