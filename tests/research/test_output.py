"""Tables, pages, and progress of the research commands."""

from pathlib import Path

import pytest

from research import output
from research.jobs import WorkerPool
from research.output import MARK, Section, Table, write_page

TABLE = Table(
    "small", "Small", ("method", "loss", "rounds", "note"),
    [("base", 0.123456, 12_000, "first"), ("ours", 2345.6, None, "in the end")],
    {"loss": ".3f"}, caption="two rows",
)  # fmt: skip


def test_section_writes_tables(tmp_path: Path) -> None:
    section = Section("Found", ("A note.",), (TABLE,))
    first = [path.read_bytes() for path in section.write(tmp_path)]
    assert [path.read_bytes() for path in section.write(tmp_path)] == first
    assert [path.name for path in tmp_path.iterdir()] == ["small.csv"]
    assert section.markdown().startswith("## Found\n\nA note.\n\n**Small**")


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
    shown: list[float] = []
    with WorkerPool(2, 3, lambda what, share: shown.append(share)) as pool:
        assert pool.run(abs, {"a": (-1,), "b": (2,), "c": (-3,)}, str) == {"a": 1, "b": 2, "c": 3}
    assert shown == pytest.approx([1 / 3, 2 / 3, 1.0])
    with pytest.raises(ValueError, match="at least 1 worker, got 0"):
        WorkerPool(0, 1)


def test_missing_modules_name_the_extra() -> None:
    with pytest.raises(ImportError, match=r"no_such_module.*orcast\[research\]"):
        output.require("json", "no_such_module")
