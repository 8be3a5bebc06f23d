"""The experiments as a user runs them: the command, what it prints, the files it leaves, the page."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orcast import cli
from orcast.paper.experiments import adversarial
from orcast.paper.experiments.output import ResultTable
from orcast.paper.experiments.summary import summary
from result_pages import read, strangers

FILES = {
    "claims",
    *(f"recalibration_{name}" for name in ("chance", "learning", "learning_crps", "paper", "rates", "rule", "targets")),
    *("recalibration", "recalibration_time"),
    *("adversarial", "adversarial_natures", "adversarial_rule", "adversarial_targets"),
    *("windfarm", "windfarm_losses", "windfarm_own_regret", "windfarm_regret", "windfarm_rule", "windfarm_targets"),
}
FIGURES = {"recalibration_qce", "recalibration_crps", "recalibration_learning", "adversarial", "windfarm"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Everything, small, in a narrow window, with the series that come with the package."""
    for name in ("river", "sklearn"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    folder = tmp_path_factory.mktemp("made")
    clean = {name: value for name, value in os.environ.items() if name != "ORCAST_DATA"}
    command = [sys.executable, "-m", "orcast", "reproduce", "all", "--quick", "--out", "out", "--page", "page.md"]
    done = subprocess.run(
        command, cwd=folder, env={**clean, "COLUMNS": "80"}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.mark.slow
def test_every_table_and_figure_is_written(made: tuple[Path, str]) -> None:
    folder, _ = made
    assert {path.stem for path in (folder / "out").glob("*.csv")} == FILES
    for name in FILES:
        rows = read(folder / "out" / f"{name}.csv")
        assert len(rows) >= 2
        assert len({len(row) for row in rows}) == 1
    for name in FIGURES:
        assert (folder / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "out" / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_terminal_shows_the_tables_uncut_and_names_the_stand_ins(made: tuple[Path, str]) -> None:
    _, printed = made
    assert "…" not in printed
    assert printed.count("What was to be reached") == 2
    assert "The paper's claims, one by one" in printed
    assert "Stand-ins" in printed
    assert "It is a stand-in" in printed
    assert re.search(r"^\d+ s$", printed, re.MULTILINE)


@pytest.mark.slow
def test_the_page_shows_the_figures_that_were_written(made: tuple[Path, str]) -> None:
    folder, _ = made
    page = (folder / "page.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[\w+\]\(([^)]+)\)", page)
    assert {Path(picture).stem for picture in pictures} == FIGURES
    assert all((folder / picture).exists() for picture in pictures)


@pytest.mark.slow
def test_the_page_says_what_the_files_say(made: tuple[Path, str]) -> None:
    folder, _ = made
    page = (folder / "page.md").read_text(encoding="utf-8")
    assert strangers(page, folder / "out") == ([], [])
    assert summary(folder / "out") in page
    told = [row[3] for row in read(folder / "out" / "claims.csv")[1:]]
    assert f"{told.count('yes')} of {len(told) - told.count('not tested')} that were tested reproduce" in page


def test_a_single_experiment_leaves_its_own_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "river", "sklearn"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    monkeypatch.setattr(adversarial, "QUICK_ROUNDS", 12)
    monkeypatch.setattr(adversarial, "QUICK_RUNS", 1)
    options = ["reproduce", "adversarial", "--quick", "--out", str(tmp_path), "--page", str(tmp_path / "page.md")]
    assert cli.main(options) == 0
    assert {row[0] for row in read(tmp_path / "claims.csv")[1:]} == {"6.2"}
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert strangers(page, tmp_path) == ([], [])
    assert "In short" not in page


def test_no_word_of_a_table_is_cut_in_a_narrow_window() -> None:
    from rich.console import Console

    from orcast.cli.reproduce import print_table

    table = ResultTable("t", "Title", ("a name", "what it says"), [("x", 12345.678), ("extraordinarily", 0.00012345)])
    assert table.shown() == [["x", "12,346"], ["extraordinarily", "0.0001234"]]
    window = io.StringIO()
    print_table(Console(width=12, file=window), table)
    assert "extraordinarily" in window.getvalue()
    assert "0.0001234" in window.getvalue()
