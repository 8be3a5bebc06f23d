"""The whole contest, small: the table resumes, the page shows everything, the command says where orcast loses."""

import math
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pl = pytest.importorskip("polars", reason="polars is not installed")
pytest.importorskip("rich", reason="rich is not installed")

from arenas import entries, two_entries  # noqa: E402

from orcast.cli import contest as command  # noqa: E402
from orcast.cli import main  # noqa: E402
from orcast.contest import page, results, run, tables  # noqa: E402
from orcast.contest.methods import METHODS, ORCAST, RAW, TRACKED  # noqa: E402
from orcast.contest.stream import KINDS  # noqa: E402
from pages import Page, cells, check_page  # noqa: E402
from result_pages import MARK, read, strangers  # noqa: E402

TIMED = ("microseconds",)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, run.Contest]:
    folder = tmp_path_factory.mktemp("contest")
    contest = run.run(entries, folder)
    page.write(folder, contest)
    return folder, contest


def comparable(rows: list[results.Row]) -> list[dict[str, Any]]:
    """Rows without what is timed, with None for nan."""
    return [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items() if k not in TIMED}
        for row in rows
    ]


def test_every_stream_method_and_league_has_a_row(played: tuple[Path, run.Contest]) -> None:
    folder, contest = played
    table = pl.read_parquet(folder / results.FILE)
    assert set(table.columns) == set(results.COLUMNS)
    assert table.height == len(contest.rows) == 4 * (2 * len(METHODS) - 3 + 1)
    failed = [row["error"] for row in contest.rows if row["error"] not in ("", results.NOT_FOR_IT)]
    assert failed == []
    there = {(row["stream"], row["method"]) for row in contest.rows if row["league"] == 2 and not row["error"]}
    assert {("hills", TRACKED), ("rain", TRACKED), ("nature", "MultiQT"), ("weeks", "isotonic")} <= there
    assert not {(stream, ORCAST) for stream, _ in there} & there


def test_a_run_that_was_interrupted_goes_on_and_ends_with_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run.run(two_entries, tmp_path / "whole")
    play, calls = run.play_job, []

    def until(*arguments: Any) -> list[results.Row]:
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return play(*arguments)

    monkeypatch.setattr(run, "play_job", until)
    with pytest.raises(KeyboardInterrupt):
        run.run(two_entries, tmp_path / "parts")
    monkeypatch.setattr(run, "play_job", play)
    kept = len(results.Results(tmp_path / "parts").rows)
    assert 0 < kept < len(whole.rows)
    monkeypatch.setattr(run, "play_job", lambda *a: calls.append(a) or play(*a))
    before = len(calls)
    again = run.run(two_entries, tmp_path / "parts")
    assert comparable(again.rows) == comparable(whole.rows)
    assert 0 < len(calls) - before < 4  # only what was missing
    done = len(calls)
    run.run(two_entries, tmp_path / "parts")
    assert len(calls) == done
    run.run(two_entries, tmp_path / "parts", again=True)
    assert len(calls) == done + 4


@pytest.mark.slow
def test_two_workers_find_what_one_finds(played: tuple[Path, run.Contest], tmp_path: Path) -> None:
    both = run.run(two_entries, tmp_path, workers=2)
    one = [row for row in played[1].rows if row["stream"] in ("hills", "rain")]
    assert comparable(both.rows) == comparable(one)


def test_keys_follow_the_source_the_rows_and_the_file_of_methods(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("a = 1")
    first = results.source_digest(own)
    own.write_text("a = 2")
    assert len({first, results.source_digest(own), results.source_digest()}) == 3
    keys = {
        results.key_of("s", "t", 5, "m", 1),
        results.key_of("s", "t", 6, "m", 1),
        results.key_of("s", "t", 5, "m", 2),
    }
    assert len(keys) == 3


def test_another_file_in_the_place_of_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / results.FILE).write_text("no table")
    with pytest.raises(ValueError, match="expected a table of results in"):
        results.Results(tmp_path)


def test_a_method_that_fails_has_a_row_that_says_why(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("def broken(stream, game):\n    raise RuntimeError('no idea')\nMETHODS = {'broken': broken}\n")
    contest = run.run(two_entries, tmp_path / "out", methods=own)
    rows = [row for row in contest.rows if row["method"] == "broken"]
    assert {row["error"] for row in rows} == {"RuntimeError: no idea"}
    told = tables.failures(tables.one_by_one(contest.rows))
    assert told == ["failed: broken on 2 streams: RuntimeError: no idea"]
    assert "RuntimeError: no idea" in page.html(contest)


# --- what is shown


def test_standings_have_both_leagues_with_the_lines_that_are_in_both(played: tuple[Path, run.Contest]) -> None:
    found = tables.standings(played[1].rows, METHODS)
    assert [(s.kind, s.league) for s in found] == [
        (kind, league) for kind in ("one-step", "weekly-late", "binary", "adversarial") for league in (1, 2)
    ]
    for standing in found:
        names = [line.method for line in standing.lines]
        assert {ORCAST, RAW, "last outcome with its spread"} <= set(names)
        assert (TRACKED in names) == (standing.league == 2)
        ranks = [line.rank.mean for line in standing.lines]
        assert ranks == sorted(ranks)
        # ranks in gap and in loss are shares of 1 + 2 + ... + n
        assert sum(ranks) == pytest.approx(len(ranks) * (len(ranks) + 1) / 2)


def test_every_loss_of_orcasts_is_told(played: tuple[Path, run.Contest]) -> None:
    losses = 0
    for stream in tables.one_by_one(played[1].rows):
        ours = next(row for row in stream.rows if row["method"] == ORCAST)
        for row in stream.rows:
            worse = ours["loss"] > row["loss"] * (1 + 1e-9) or ours["gap"] > row["gap"] + 1e-9
            assert ((row["method"], row["league"]) in stream.losses) == worse
            losses += worse
    assert losses > 0
    assert (played[0] / "contest.html").read_text().count('<span class="bad">orcast: ') == losses


def test_a_verdict_says_where_orcast_is_not_first(played: tuple[Path, run.Contest]) -> None:
    for standing in tables.standings(played[1].rows, METHODS):
        told = tables.verdict(standing)
        assert ("is first" in told) == (standing.place() == 1)
        assert ("NOT first" in told) == (standing.place() > 1)
        if standing.place() > 1:
            assert standing.lines[0].method in told


def test_the_page_has_every_method_and_every_stream(played: tuple[Path, run.Contest]) -> None:
    folder, contest = played
    read = Page((folder / "contest.html").read_text(encoding="utf-8"))
    check_page(read)
    text = read.top.text
    for name in METHODS:
        assert name in text
    streams = [row.text for row in read.top.all("summary")]
    for name in ("hills", "weeks", "rain", "nature"):
        assert any(name in each for each in streams)
    classes = [table for table in read.top.all("table") if "joint rank" in table.all("thead")[0].text]
    assert len(classes) == 8
    for table, standing in zip(classes, tables.standings(contest.rows, METHODS), strict=True):
        assert [row[0] for row in cells(table)] == [line.method for line in standing.lines]
    assert len(read.top.all("figure")) == 4
    dots = [path for path in read.top.all("path", "dot") if path.inside]
    assert len(dots) == sum(len(s.lines) - 3 * (s.league == 2) for s in tables.standings(contest.rows, METHODS))


def test_the_tables_in_markdown_have_the_same_numbers(played: tuple[Path, run.Contest]) -> None:
    folder, contest = played
    text = (folder / "tables.md").read_text(encoding="utf-8")
    for standing in tables.standings(contest.rows, METHODS):
        assert f"### {standing.title}" in text
        for line in standing.lines:
            assert f"| {line.method} | {line.rank.mean:.2f} |" in text
    assert strangers(f"{MARK}\n{text}", folder / "tables") == ([], [])
    assert len(read(folder / "tables" / "summary.csv")) == 1 + 8


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_the_page_opens_in_a_browser(played: tuple[Path, run.Contest], tmp_path: Path) -> None:
    shown = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom",
         f"file://{played[0] / 'contest.html'}"],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    for name in METHODS:
        assert name in shown
    assert "<table>" in shown


# --- the command


# the other kinds are those of `entries`
@pytest.mark.parametrize(
    "kinds",
    [("day-ahead", "ensembles", "several experts"), pytest.param(KINDS, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_the_command_plays_the_quick_contest(
    kinds: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ORCAST_DATA", raising=False)
    out = tmp_path / "out"
    chosen = [word for kind in kinds for word in ("--kind", kind)] if kinds != KINDS else []
    assert main(["contest", "--quick", *chosen, "--out", str(out), "--workers", "1"]) == 0
    told = capsys.readouterr().out
    assert "Where orcast is" in told
    assert "failed:" not in told
    assert "…" not in told
    assert "on the tracked expert" in told
    assert {path.name for path in out.iterdir()} == {"contest.html", "contest.parquet", "tables", "tables.md"}
    assert set(pl.read_parquet(out / results.FILE)["kind"]) == set(kinds)


def test_the_command_takes_kinds_and_an_own_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "mine.py"
    own.write_text(
        "from orcast.baselines import EventAsGiven\n"
        "METHODS = {'do nothing': lambda s, g: EventAsGiven(), 'broken': lambda s, g: 1 / 0}\n"
    )
    out = str(tmp_path / "out")
    # what failed is told at the end, and the rest is there all the same
    assert main(["contest", "--quick", "--kind", "binary", "--method", str(own), "--out", out, "--workers", "1"]) == 1
    told = capsys.readouterr()
    assert "do nothing" in told.out
    assert "failed: broken on " in told.out
    lines = told.err.splitlines()
    assert lines[0] == "orcast: contest: 0% done (begins)"
    assert re.fullmatch(r"orcast: contest: 100% done \(.*, league \d\)", lines[-2])
    assert lines[-1] == ("orcast: failed: broken; results are written without what failed, and the page says why")
    table = pl.read_parquet(Path(out) / results.FILE)
    assert set(table["kind"]) == {"binary"}
    mine = table.filter((pl.col("method") == "do nothing") & (pl.col("league") == 1))
    assert mine["loss"].to_list() == [1.0]


@pytest.mark.parametrize("wrong", [["--workers", "0"], ["--method", "nothing.py"]])
def test_what_cannot_be_is_refused_in_a_sentence(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["contest", "--quick", "--kind", "binary", "--out", str(tmp_path / "out"), *wrong]) == 2
    assert capsys.readouterr().err.startswith("orcast: expected ")
    assert not (tmp_path / "out").exists()


def test_no_stream_of_a_kind_is_said() -> None:
    with pytest.raises(ValueError, match="expected streams of the kinds binary, got none"):
        command.chosen(partial(list), ("binary",))


def test_the_command_names_what_it_read_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "mine", str(tmp_path / "out")
    folder.mkdir()
    arguments = ["contest", "--quick", "--kind", "binary", "--out", out, "--workers", "1"]
    assert main([*arguments, "--folder", str(folder)]) == 2
    assert "expected forecasts with outcomes in a file" in capsys.readouterr().err
    assert main([*arguments, "--folder", str(folder), "--folder", str(folder)]) == 2
    assert "expected --folder once" in capsys.readouterr().err
    rows = "\n".join(f"{int(i % 3 == 0)},{0.2 + 0.05 * (i % 9)}" for i in range(40))
    (folder / "rain.csv").write_text(f"y,p\n{rows}\n")
    (folder / "notes.csv").write_text("when,what\n1,rain\n")
    own = tmp_path / "mine.py"
    own.write_text("class Bad:\n    def predict(self, f, *, id): raise ValueError('no [more] of it')\n"
                   "METHODS = {'bad': lambda s, g: Bad()}\n")  # fmt: skip
    assert main([*arguments, "--folder", str(folder), "--method", str(own)]) == 1
    told = capsys.readouterr().out
    assert "left out, notes.csv: " in told
    assert "read: rain.csv, binary, 40 rows" in told
    assert "rain.csv (binary, 40 rows): orcast " in told
    assert "no [more] of it" in told
    assert "failed: bad" in (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
