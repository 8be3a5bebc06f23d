"""The whole comparison, small: tables agree, and the command reports where orcast loses."""

import csv
from pathlib import Path

import pytest
from small_streams import entries

pytest.importorskip("polars", reason="polars is not installed")

from research.__main__ import main
from research.comparison import command, jobs, tables
from research.comparison.methods import BASE, METHODS, ORCAST
from result_pages import MARK, read, strangers


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, jobs.Comparison]:
    folder = tmp_path_factory.mktemp("comparison")
    comparison = jobs.run(entries())
    command.write(folder, comparison)
    return folder, comparison


def test_every_stream_and_method_has_a_row(compared: tuple[Path, jobs.Comparison]) -> None:
    rows = compared[1].rows
    assert len(rows) == 4 * len(METHODS)
    assert not [row["error"] for row in rows if jobs.is_failure(row)]


def test_a_failing_method_has_a_row_with_its_error(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("def broken(stream, group):\n    raise RuntimeError('no idea')\nMETHODS = {'broken': broken}\n")
    comparison = jobs.run(entries("hills", "rain"), methods=own)
    expected = "failed: broken on 2 streams: RuntimeError: no idea"
    assert tables.failures(comparison.rows) == [expected]
    assert f"- {expected}" in tables.markdown(comparison)


def test_rankings(compared: tuple[Path, jobs.Comparison]) -> None:
    found = tables.rankings(compared[1])
    assert [each.kind for each in found] == ["one-step", "weekly-late", "binary", "adversarial"]
    for ranking in found:
        names = [line.method for line in ranking.lines]
        assert {ORCAST, BASE, "last outcome"} <= set(names)
        ranks = [line.rank.mean for line in ranking.lines]
        assert ranks == sorted(ranks)
        assert sum(ranks) == pytest.approx(len(ranks) * (len(ranks) + 1) / 2)
        assert (names[0] == ORCAST) == (ranking.place() == 1)


def test_tables_agree(compared: tuple[Path, jobs.Comparison]) -> None:
    folder, comparison = compared
    text = (folder / "tables.md").read_text(encoding="utf-8")
    for ranking in tables.rankings(comparison):
        assert f"- {ranking.title}: [{ranking.name}.csv](tables/{ranking.name}.csv)" in text
        written = [(row[0].split(" (")[0], row[1]) for row in read(folder / "tables" / f"{ranking.name}.csv")[1:]]
        assert written == [(line.method, str(line.rank.mean)) for line in ranking.lines]
    assert strangers(f"{MARK}\n{text}", folder / "tables") == ([], [])
    with (folder / "streams.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows if not row["error"]] == [
        row["loss"] for row in comparison.rows if not row["error"]
    ]


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORCAST_DATA", raising=False)


@pytest.mark.usefixtures("no_environment")
def test_command_with_kinds_a_page_and_a_failing_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, out, page = tmp_path / "mine.py", tmp_path / "out", tmp_path / "page.md"
    own.write_text("from research.comparison.methods import Echo\n"
                   "METHODS = {'echo': lambda s, g: Echo(), 'broken': lambda s, g: [][1]}\n")  # fmt: skip
    given = ["compare", "--quick", "--kind", "binary", "--out", str(out), "--page", str(page), "--workers", "1"]
    assert main([*given, "--method", str(own)]) == 1
    shown = capsys.readouterr()
    assert "All kinds of streams" in shown.out
    assert "failed: broken on humidity at noon, above its 60%: IndexError: list index out of range" in shown.out
    assert shown.err.splitlines()[-1] == "compare: 100% done (humidity at noon, above its 60%)"
    assert "- binary (1 stream): [binary.csv](out/tables/" in page.read_text(encoding="utf-8")
    assert {path.name for path in out.iterdir()} == {"streams.csv", "tables", "tables.md"}


@pytest.mark.parametrize("wrong", [["--workers", "0"], ["--method", "nothing.py"], ["--stored", "nowhere"]])
@pytest.mark.usefixtures("no_environment")
def test_bad_options_write_nothing(wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["compare", "--kind", "binary", "--out", str(tmp_path / "out"), *wrong]
    assert main(given) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: expected ")
    assert not (tmp_path / "out").exists()
