"""The experiments as a user runs them: the command, what it prints, the files it leaves, the page in the docs."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orcast.paper.experiments.output import ResultTable

DOCS = Path(__file__).parents[2] / "docs"
FILES = {
    "recalibration": {"recalibration", "recalibration_paper", "recalibration_rates", "recalibration_targets"},
    "adversarial": {"adversarial", "adversarial_natures", "adversarial_targets"},
    "windfarm": {"windfarm", "windfarm_losses", "windfarm_regret", "windfarm_own_regret", "windfarm_targets"},
}
FIGURES = {"recalibration_qce", "recalibration_crps", "adversarial", "windfarm"}


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


def read(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_every_table_and_figure_is_written(made: tuple[Path, str]) -> None:
    folder, _ = made
    for name in set.union(*FILES.values()):
        rows = read(folder / "out" / f"{name}.csv")
        assert len(rows) >= 2
        assert len({len(row) for row in rows}) == 1
    for name in FIGURES:
        assert (folder / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "out" / f"{name}.svg").read_text(encoding="utf-8")


def test_the_terminal_shows_the_tables_uncut_and_names_the_stand_ins(made: tuple[Path, str]) -> None:
    _, printed = made
    assert "…" not in printed
    assert printed.count("What was to be reached") == 2
    assert "Stand-ins" in printed
    assert "It is a stand-in" in printed
    assert re.search(r"^\d+ s$", printed, re.MULTILINE)


def test_the_page_shows_the_figures_that_were_written(made: tuple[Path, str]) -> None:
    folder, _ = made
    page = (folder / "page.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[\w+\]\(([^)]+)\)", page)
    assert {Path(picture).stem for picture in pictures} == FIGURES
    assert all((folder / picture).exists() for picture in pictures)


def tables(page: str) -> list[tuple[list[str], list[list[str]]]]:
    """Header and rows of each table of a page."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE):
        lines = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in block.splitlines()]
        found.append((lines[0], lines[2:]))
    return found


@pytest.mark.parametrize("experiment", FILES)
def test_the_docs_say_what_was_printed(experiment: str) -> None:
    """Each number of a table in docs/experiments.md is the rounded one of the CSV file beside it."""
    page = (DOCS / "experiments.md").read_text(encoding="utf-8").split("<!-- produced -->")[1]
    shown = tables(page)
    for name in FILES[experiment]:
        header, *rows = read(DOCS / "experiments" / f"{name}.csv")
        # the tables of one lambda each have the same header, so that they are told apart by their numbers
        alike = [body for head, body in shown if head == header and len(body) == len(rows)]
        assert any(all(map(same, a, b)) for body in alike for a, b in [(sum(body, []), sum(rows, []))]), name  # noqa: RUF017


def same(shown: str, full: str) -> bool:
    if shown.strip() == full.strip():
        return True
    text = shown.replace(",", "").rstrip("%")
    try:
        value = float(full) * (100.0 if shown.endswith("%") else 1.0)
        decimals = len(text.split(".")[1]) if "." in text and "e" not in text else 0
        return abs(float(text) - value) <= 0.51 * 10.0**-decimals
    except ValueError:
        return False


def test_a_number_in_the_docs_that_was_not_printed_would_be_seen() -> None:
    assert same("0.0036", "0.0035999")
    assert same("88.3%", "0.883")
    assert same("11,539", "11539.16")
    assert not same("0.0036", "0.0037")
    assert not same("88.3%", "0.893")


def test_no_word_of_a_table_is_cut_in_a_narrow_window() -> None:
    from rich.console import Console

    from orcast.cli.reproduce import _print_table

    table = ResultTable("t", "Title", ("a name", "what it says"), [("x", 12345.678), ("extraordinarily", 0.00012345)])
    assert table.shown() == [["x", "12,346"], ["extraordinarily", "0.0001234"]]
    window = io.StringIO()
    _print_table(Console(width=12, file=window), table)
    assert "extraordinarily" in window.getvalue()
    assert "0.0001234" in window.getvalue()
