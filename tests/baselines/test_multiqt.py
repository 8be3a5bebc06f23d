"""MultiQT on its authors' own cases."""

import ast
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from orcast.baselines import MultiLevelTracking

Vector = NDArray[np.float64]


def projected(values: Vector) -> Vector:
    means, sizes = [], []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    return np.repeat(means, sizes)


@pytest.mark.parametrize("late", [0, 3])
def test_multiqt_on_its_authors_example(late: int) -> None:
    """A noisy sine, and the mean so far as the forecast of every level; offsets start at 0, steps are at least 0.1."""
    levels, rounds = np.array([0.1, 0.25, 0.5, 0.75, 0.9]), 100
    noise = np.random.RandomState(0).randn(rounds)
    y = 5 + np.sin(np.linspace(0, 4 * np.pi, rounds)) + 0.5 * noise
    base = np.array([0.0, *(np.mean(y[:t]) for t in range(1, rounds))])
    tracking = MultiLevelTracking(-100, 100, levels=levels, least=0.1)
    played, offset = np.empty((rounds, 5)), np.zeros(5)
    for t in range(rounds):
        played[t] = projected(base[t] + offset)
        said = tracking.predict(oc.Normal(base[t], 0), id=t).quantile(levels)
        np.testing.assert_allclose(said, played[t], rtol=0, atol=1e-9)
        s = t - late
        if s >= 0:
            tracking.update(y[s], id=s)
            size = np.quantile(np.repeat(np.abs(y - base)[max(s - 49, 0) : s + 1], 5), 0.9)  # of every level
            offset = offset + max(0.1, 0.1 * size) * (levels - (y[s] <= played[s]))
    assert (np.diff(played, axis=1) == 0).any()


SHORT = Path(os.environ.get("ORCAST_YARDSTICK", "")) / "short"


@pytest.mark.skipif(not (SHORT / "short.py").is_file(), reason="needs the short series, in the folder ORCAST_YARDSTICK")
def test_multiqt_on_every_short_series() -> None:
    """Weekly deaths of the COVID-19 hub, 1 to 4 weeks ahead: as the yardstick's own loop."""
    tree = ast.parse((SHORT / "short.py").read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ("pava", "multiqt")]
    loop: dict[str, Any] = {"np": np}
    exec(compile(tree, "short.py", "exec"), loop)
    count = 0
    for path in sorted(SHORT.glob("*.npz")):
        data = np.load(path)
        levels = data["levels"]
        for i, horizon in enumerate(data["h"].tolist()):
            rows = slice(data["start"][i], data["start"][i + 1])
            y, given = data["y"][rows].astype(float), data["q"][rows].astype(float)
            tracking = MultiLevelTracking(-1e6, 1e6, levels=levels, least=0.1)
            played = np.empty_like(given)
            for t in range(len(y)):
                played[t] = tracking.predict(oc.Quantiles(levels, given[t]), id=t).quantile(levels)
                if t >= horizon - 1:
                    tracking.update(float(y[t - horizon + 1]), id=t - horizon + 1)
            np.testing.assert_allclose(played, loop["multiqt"](y, given, horizon, levels), rtol=0, atol=1e-9)
            count += 1
    assert count > 0
