"""The series and the two ordinary experts; what needs the data folder is skipped without it."""

import time
from pathlib import Path

import numpy as np
import pytest

from orcast.metrics import LEVELS, qce, worst_rolling_qce
from orcast.paper.experiments import data, experts


def needs(name: str) -> pytest.MarkDecorator:
    there = name in data.available()
    return pytest.mark.skipif(not there, reason=f"{name} is not in the folder that {data.VARIABLE} names")


# --- series ---


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in data.NAMES])
def test_series_are_whole(name: str) -> None:
    series = data.load(name)
    assert series.values.dtype == np.float64
    assert len(series) == {"wind": 8760, "sunspots": 3316, "humidity": 8706}[name]
    assert series.low <= series.values.min() < series.values.max() <= series.high
    assert series.source


def test_packaged_series_is_small_and_has_its_source() -> None:
    folder = Path(data.__file__).parent
    packed = list(folder.glob("*.csv.gz"))
    assert packed
    notes = (folder / "SOURCES.md").read_text(encoding="utf-8")
    for file in packed:
        assert file.stat().st_size < 60_000
        assert file.name in notes


def test_packaged_series_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(data.VARIABLE, raising=False)
    assert data.available() == ("humidity",)
    assert len(data.load("humidity")) > 1500
    with pytest.raises(FileNotFoundError, match=r"^expected a folder with wind.*, got neither"):
        data.load("wind")


def test_folder_may_be_an_argument_or_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wind_ercot_2022_hourly.csv").write_text("hour,wind_mwh\n1,10.5\n2,20.25\n")
    assert data.load("wind", tmp_path).values.tolist() == [10.5, 20.25]
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert data.load("wind").values.tolist() == [10.5, 20.25]
    assert data.available() == ("wind", "humidity")
    with pytest.raises(FileNotFoundError, match=r"^expected sunspot.* in the data folder, got "):
        data.load("sunspots")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hour,power\n1,2\n",
        "hour,wind_mwh\n",
        "hour,wind_mwh\n1,none\n",
        "hour,wind_mwh\n1,-5\n",
        "hour,wind_mwh\n1,nan\n",
        "hour,wind_mwh\n1\n",
    ],
)
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "wind_ercot_2022_hourly.csv").write_text(text)
    with pytest.raises(ValueError, match=r"^expected .*, got "):
        data.load("wind", tmp_path)


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="expected one of wind, sunspots, humidity, got 'rain'"):
        data.load("rain")
    with pytest.raises(ValueError, match="expected one of rls, naive, got 'oracle'"):
        experts.stream(data.load("humidity"), "oracle")


# --- experts ---


def test_recursive_least_squares_solves_the_weighted_problem() -> None:
    """The recursion against ridge regression on all of the past with geometric weights, at one late step."""
    rng = np.random.default_rng(3)
    y = 5 + rng.normal(size=90).cumsum()
    mu, _ = experts.recursive_least_squares(y, lags=3, forgetting=0.98, prior=10.0, standardise=20)
    z = (y - y[:20].mean()) / y[:20].std()
    t = 80
    rows = np.array([[*z[s - 3 : s], 1.0] for s in range(3, t)])
    weights = 0.98 ** np.arange(len(rows) - 1, -1, -1)
    gram = (rows * weights[:, None]).T @ rows + 0.98 ** len(rows) / 10.0 * np.eye(4)
    solution = np.linalg.solve(gram, (rows * weights[:, None]).T @ z[3:t])
    expected = y[:20].mean() + y[:20].std() * (solution @ [*z[t - 3 : t], 1.0])
    assert mu[t] == pytest.approx(expected, rel=1e-9)


def test_residual_scale_is_the_root_mean_square_of_the_last_ones() -> None:
    rng = np.random.default_rng(4)
    y, mu = rng.normal(size=60), rng.normal(size=60)
    mu[:7] = np.nan
    sd = experts.residual_scale(y, mu, window=20)
    assert np.isnan(sd[:8]).all()
    for t in range(8, 60):
        last = (y - mu)[max(7, t - 20) : t]
        assert sd[t] == pytest.approx(np.sqrt(np.mean(last**2)), rel=1e-9)


@pytest.mark.parametrize("expert", list(experts.EXPERTS))
def test_experts_do_not_look_ahead(expert: str) -> None:
    whole = data.load("humidity")
    changed = whole.values.copy()
    changed[1000:] = 100.0 - changed[1000:]
    other = data.RealSeries("other", changed, whole.low, whole.high, whole.period, whole.unit, whole.source)
    for one, two in zip(experts.EXPERTS[expert](whole), experts.EXPERTS[expert](other), strict=True):
        np.testing.assert_array_equal(one[:1001], two[:1001])
        assert not np.array_equal(one[1001:], two[1001:], equal_nan=True)


def test_a_constant_series_is_harmless() -> None:
    flat = data.RealSeries("flat", np.full(300, 7.0), 0.0, 10.0, 24, "", "")
    for expert in experts.EXPERTS:
        s = experts.stream(flat, expert)
        np.testing.assert_allclose(s.mu[20:], 7.0, atol=1e-6)
        assert np.isfinite(s.quantile(LEVELS)).all()


@pytest.mark.parametrize("expert", list(experts.EXPERTS))
def test_stream_of_the_packaged_series(expert: str) -> None:
    start = time.process_time()
    s = experts.stream(data.load("humidity"), expert)
    assert time.process_time() - start < 10  # a loose guard: it takes a fraction of a second
    assert len(s) == s.mu.size == s.sd.size == s.y.size == 3000
    assert np.isfinite(s.mu).all()
    assert (s.sd > 0).all()
    q = s.quantile(LEVELS)
    assert q.shape == (3000, 99)
    assert (np.diff(q, axis=1) >= 0).all()
    assert q.min() >= s.low
    assert q.max() <= s.high


def test_a_short_series_is_refused() -> None:
    short = data.RealSeries("short", np.arange(200.0), 0.0, 200.0, 24, "", "")
    with pytest.raises(ValueError, match=r"^expected a series longer than 224 steps.*, got 200"):
        experts.stream(short, "naive")


@needs("wind")
@needs("sunspots")
def test_streams_of_the_table() -> None:
    """The experts are as (un)calibrated as they were when the targets of the benchmark were set."""
    streams = experts.table_streams()
    assert [s.name for s in streams] == ["wind/rls", "wind/naive", "sunspots/rls", "sunspots/naive"]
    assert [len(s) for s in streams] == [3000, 3000, 3092, 3092]
    for s, error, worst in zip(streams, [0.1504, 0.0177, 0.1886, 0.1373], [1.052, 1.774, 2.638, 4.965], strict=True):
        q = s.quantile(LEVELS)
        assert qce(q, s.y, low=s.low, high=s.high) == pytest.approx(error, abs=1e-3)
        assert worst_rolling_qce(q, s.y, low=s.low, high=s.high) == pytest.approx(worst, abs=1e-2)
