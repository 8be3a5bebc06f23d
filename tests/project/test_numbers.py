"""Every number that a page says to come from results is that of the result files."""

import re
from pathlib import Path

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


def test_each_result_of_the_readme_is_in_the_file_of_the_benchmark() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    results = (ROOT / "docs" / "quality.csv").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| (\d\.\d+) \| (\d\.\d+) \(([^)]+)\) \| (\d\.\d+) \|$", readme, re.MULTILINE)
    assert len(rows) == 7
    for ours, rival, name, last in rows:
        found = rf"pinball / base forecast's,{ours},.*last value {last}.*{name} {rival}"
        assert re.search(found, results), found
    for ours, text in (("108", "needs 108 outcomes"), ("0.64%", "0.64% of"), ("0.28%", "0.28% in"), ("70%", "70% of")):
        assert f",{ours}," in results
        assert text in readme
    assert "CRPS 1.766, EMOS 1.789" in results
    assert "CRPS 1.789, orcast 1.766" in readme


def test_each_number_of_the_monitors_is_in_the_file_of_the_benchmark() -> None:
    page = (ROOT / "docs" / "howto" / "monitoring.md").read_text(encoding="utf-8").split("## Measured")[1]
    results = (ROOT / "docs" / "monitor.csv").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w ]+?)(?: drift)? \| ([\d.]+) \| (\S+) \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
    assert len(rows) == 6
    for case, ours, *others in rows:
        names = ("River ADWIN", "MAPIE RiskMonitoring", "online-cp Shiryaev-Roberts")
        beside = [f"{name} {value.replace('never', 'nan')}" for name, value in zip(names, others, strict=True)]
        assert re.search(f"{case}.*,{ours},ok,.*{beside[0]}, {beside[1]}, .*{beside[2]}", results), case
    for text, measured in (
        ("finds 0.997", "found,0.997,"), ("0.003 are alarmed", 'trials",0.003,'), ("of 24 rounds", "alarm,24,"),
        ("deviation in 29", "alarm,29,"), ("15 and 21", "fault known 15"), ("15 and 21", "fault known 21"),
    ):  # fmt: skip
        assert text in page
        assert measured in results
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (
        "alarms on 4% of calibrated streams, and on an abrupt drift after 10 rounds (median), ADWIN after 28" in readme
    )
    assert "| abrupt drift | 10 | 28 |" in page
