"""Every number that a page says to come from results is that of the result files."""

import re
from pathlib import Path

from research.experiments.recalibration import perfect_qce
from result_pages import MARK, strangers

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "experiments"
PAGE = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")


def test_each_table_of_the_experiments_is_that_of_a_file() -> None:
    assert strangers(PAGE, RESULTS) == ([], [])


def test_each_table_of_the_comparison_is_that_of_a_file() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    assert strangers(page, ROOT / "docs" / "comparison") == ([], [])


def test_what_is_written_by_hand_has_no_results_in_it() -> None:
    by_hand = PAGE.split(MARK)[0]
    assert re.findall(r"\d+\.\d+(?!\.csv)|\d+%", by_hand.replace("V2.0", "")) == []


def test_the_readme_knows_what_chance_gives() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    found = re.search(r"a perfect forecaster of 1,000 rounds shows (\S+) by chance", readme)
    assert found is not None
    assert float(found[1]) == round(perfect_qce(1000), 3)
