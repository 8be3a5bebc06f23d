"""Tables, pages, progress and result files of the research commands."""

from pathlib import Path

import pytest

from research import output
from research.jobs import WorkerPool
from research.output import MARK, ResultsFile, Section, Table, write_page

TABLE = Table(
    "small", "Small", ("method", "loss", "rounds", "note"),
    [("base", 0.123456, 12_000, "first"), ("ours", 2345.6, None, "in the end")],
    {"loss": ".3f"}, caption="two rows", marks={(1, "loss"): "bold"},
)  # fmt: skip


def test_section_writes_tables_and_figures(tmp_path: Path) -> None:
    with output.styled_figure(2.0) as figure:
        figure.add_subplot().plot([0, 1])
    section = Section("Found", ("A note.",), (TABLE,), {"picture": figure})
    first = [path.read_bytes() for path in section.write(tmp_path)]
    assert [path.read_bytes() for path in section.write(tmp_path)] == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["picture.png", "picture.svg", "small.csv"]
    assert "![picture](figures/picture.svg)" in section.markdown("figures/")


def test_page_keeps_the_text_above_its_mark(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Mine\n\nkept\n\n{MARK}\n\nold", encoding="utf-8")
    write_page(page, ["new\n"], 3.2, "python -m research compare")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Mine\n\nkept\n")
    assert "Produced by `python -m research compare` in 3 s" in text
    assert text.endswith("new\n")
    assert "old" not in text


def test_pool_reports_results_of_two_processes() -> None:
    found: list[int] = []
    with WorkerPool(2, 3) as pool:
        assert pool.run(abs, {"a": (-1,), "b": (2,), "c": (-3,)}, str, found.append) == {"a": 1, "b": 2, "c": 3}
    assert sorted(found) == [1, 2, 3]
    with pytest.raises(ValueError, match="at least 1 worker, got 0"):
        WorkerPool(0, 1)


def test_results_survive_a_crash_in_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    results = ResultsFile(path, ("stream",))
    results.add([{"key": "1", "stream": "a", "loss": 0.1}, {"key": "2", "stream": "b", "loss": float("nan")}])
    results.add([{"key": "3", "stream": "a", "loss": 0.3}])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"key": "4", "str')
    again = ResultsFile(path, ("stream",))
    assert [row["loss"] for row in again.select(["3", "1", "4"])] == [0.3]
    assert again.select(["2"])[0]["loss"] != again.select(["2"])[0]["loss"]
    again.add([{"key": "5", "stream": "c", "loss": 0.5}])
    assert len(ResultsFile(path, ("stream",)).select(["2", "3", "5"])) == 3


def test_missing_modules_name_the_extra() -> None:
    with pytest.raises(ImportError, match=r"no_such_module.*orcast\[research\]"):
        output.require("json", "no_such_module")
