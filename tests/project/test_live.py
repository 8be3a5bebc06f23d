"""The live page of the documentation: its runs, with the kernels as Python as in a browser, and its files."""

import html
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ROUNDS = 150

RUNS = f"""
import json, sys
sys.path.insert(0, {str(DOCS / "live")!r})
import live
from orcast.kernels import rows
runs = {{name: json.loads(live.Demo(name, 12.0, 1).play({ROUNDS})) for name in live.SITUATIONS}}
runs["steered"] = []
demo = live.Demo("drift", 12.0, 1)
for drift in (12.0, -12.0):
    demo.drift = drift
    runs["steered"] += json.loads(demo.play({ROUNDS}))
print(json.dumps({{"runs": runs, "kernels": rows.__file__}}))
"""


@pytest.fixture(scope="module")
def result() -> dict[str, list[dict[str, Any]]]:
    """Rounds of each situation, with the kernels as Python."""
    environment = os.environ | {"ORCAST_KERNELS": "python"}
    done = subprocess.run([sys.executable, "-c", RUNS], env=environment, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["kernels"].endswith(".py")
    return told["runs"]


@pytest.fixture(scope="module")
def live() -> ModuleType:
    spec = importlib.util.spec_from_file_location("live", DOCS / "live" / "live.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_promise_is_kept_whatever_the_visitor_does(result: dict[str, list[dict[str, Any]]]) -> None:
    for rows in result.values():
        assert [row["round"] for row in rows] == list(range(1, len(rows) + 1))
        assert all(row["holds"] and row["worst_next"] <= row["allowed"] for row in rows)
        assert all(row["miscalibration"] <= row["promised"] for row in rows)
        assert all(0.0 <= row["y"] <= 100.0 and row["after"] == sorted(row["after"]) for row in rows)


def test_coverage_is_what_the_rounds_show(result: dict[str, list[dict[str, Any]]]) -> None:
    for rows in result.values():
        for side in ("before", "after"):
            hits = [row[side][0] <= row["y"] <= row[side][-1] for row in rows]
            assert rows[-1][f"covered_{side}"]["all"] == pytest.approx(sum(hits) / len(hits))
            assert rows[-1][f"covered_{side}"]["recent"] == pytest.approx(sum(hits[-100:]) / 100)


def test_each_situation_shows_what_the_page_says(result: dict[str, list[dict[str, Any]]]) -> None:
    covered = {
        name: tuple(rows[-1][f"covered_{side}"]["recent"] for side in ("before", "after"))
        for name, rows in result.items()
    }
    assert min(covered["calm"]) > 0.85
    for name in ("drift", "steered"):
        assert covered[name][0] < 0.5
        assert covered[name][1] > 0.8
    assert covered["adversary"][0] == 0.0
    assert covered["adversary"][1] > 0.8
    errors = [row["y"] - row["before"][2] for row in result["steered"]]
    assert sum(errors[100:150]) / 50 > 8.0
    assert sum(errors[250:300]) / 50 < -8.0
    nearest = {name: max(row["miscalibration"] / row["promised"] for row in rows[20:]) for name, rows in result.items()}
    assert nearest["adversary"] > max(0.4, nearest["calm"])


def example() -> str:
    found = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_cell_holds_the_example_of_the_readme_and_runs_it(
    live: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", (DOCS / "live.md").read_text("utf-8"), re.DOTALL)
    assert cell is not None
    assert html.unescape(cell[1]) == example()
    monkeypatch.chdir(tmp_path)
    assert live.run(example()).startswith("2 rounds: miscalibration ")
    assert (tmp_path / "wind.orcast").exists()


@pytest.mark.parametrize("name", ["live.md", "live/live.js", "live/worker.js", "live/live.css", "live/live.py"])
def test_the_page_names_no_other_host(name: str) -> None:
    addresses = re.findall(r"(?:https?:)?//[\w-]+\.[\w./-]+", (DOCS / name).read_text(encoding="utf-8"))
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody fetches
