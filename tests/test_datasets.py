"""The shipped series and their two naive experts."""

from pathlib import Path

import numpy as np
import pytest

from orcast import datasets
from orcast.evaluate.metrics import LEVELS, qce

FOLDER = Path(datasets.__file__).parent / "data"


@pytest.mark.parametrize(
    ("name", "size", "period"), [("humidity", 8706, 24), ("wind", 8400, 24), ("sunspots", 2820, 132)]
)
def test_load_series(name: str, size: int, period: int) -> None:
    series = datasets.load(name)
    assert (series.name, len(series), series.period) == (name, size, period)
    assert series.values.dtype == np.float64
    assert series.low <= series.values.min() < series.values.max() <= series.high
    assert series.source


def test_files_are_small_and_have_a_source() -> None:
    notes = (FOLDER / "SOURCES.md").read_text(encoding="utf-8")
    packed = list(FOLDER.glob("*.csv.gz"))
    assert len(packed) == 5
    for file in packed:
        assert file.stat().st_size < 60_000
        assert file.name in notes


def test_recursive_least_squares_solves_the_weighted_problem() -> None:
    """The recursion against ridge regression on all of the past with geometric weights, at one late step."""
    rng = np.random.default_rng(3)
    y = 5 + rng.normal(size=290).cumsum()
    mu, _ = datasets.recursive_least_squares(y, lags=3)
    z = (y - y[:200].mean()) / y[:200].std()
    t = 280
    rows = np.array([[*z[s - 3 : s], 1.0] for s in range(3, t)])
    weights = 0.999 ** np.arange(len(rows) - 1, -1, -1)
    gram = (rows * weights[:, None]).T @ rows + 0.999 ** len(rows) / 1000.0 * np.eye(4)
    solution = np.linalg.solve(gram, (rows * weights[:, None]).T @ z[3:t])
    expected = y[:200].mean() + y[:200].std() * (solution @ [*z[t - 3 : t], 1.0])
    assert mu[t] == pytest.approx(expected, rel=1e-9)


def test_residual_scale_is_the_root_mean_square_of_the_last_residuals() -> None:
    rng = np.random.default_rng(4)
    y, mu = rng.normal(size=60), rng.normal(size=60)
    mu[:7] = np.nan
    sd = datasets.residual_scale(y, mu, window=20)
    assert np.isnan(sd[:8]).all()
    for t in range(8, 60):
        last = (y - mu)[max(7, t - 20) : t]
        assert sd[t] == pytest.approx(np.sqrt(np.mean(last**2)), rel=1e-9)


@pytest.mark.parametrize("expert", list(datasets.EXPERTS))
def test_experts_do_not_look_ahead(expert: str) -> None:
    whole = datasets.load("humidity")
    changed = whole.values.copy()
    changed[1000:] = 100.0 - changed[1000:]
    other = datasets.Series("other", changed, whole.low, whole.high, whole.period, whole.unit, whole.source)
    for one, two in zip(datasets.EXPERTS[expert](whole), datasets.EXPERTS[expert](other), strict=True):
        np.testing.assert_array_equal(one[:1001], two[:1001])
        assert not np.array_equal(one[1001:], two[1001:], equal_nan=True)


@pytest.mark.parametrize(("expert", "error"), [("rls", 0.1541), ("naive", 0.0673)])
def test_stream_of_humidity(expert: str, error: float) -> None:
    s = datasets.stream(datasets.load("humidity"), expert)
    assert len(s) == s.mu.size == s.sd.size == s.y.size == 3000
    assert (s.sd > 0).all()
    q = s.quantile(LEVELS)
    assert q.shape == (3000, 99)
    assert (np.diff(q, axis=1) >= 0).all()
    assert q.min() >= s.low
    assert q.max() <= s.high
    assert qce(q, s.y, low=s.low, high=s.high) == pytest.approx(error, rel=0.02)


def test_constant_series() -> None:
    flat = datasets.Series("flat", np.full(300, 7.0), 0.0, 10.0, 24, "", "")
    for expert in datasets.EXPERTS:
        s = datasets.stream(flat, expert)
        np.testing.assert_allclose(s.mu[20:], 7.0, atol=1e-6)
        assert np.isfinite(s.quantile(LEVELS)).all()
