"""The command: what it says of itself, what it refuses, and tables that go in and come out."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from helpers import SENTENCE
from orcast import cli
from orcast.cli import check, tables

PARTS = ("recalibrate", "check", "watch", "stream")
Capture = pytest.CaptureFixture[str]


def test_the_examples_of_the_help_are_understood(capsys: Capture) -> None:
    """Each is parsed as a shell would hand it over; nothing is run."""
    import shlex

    commands = []
    for part in PARTS:
        with pytest.raises(SystemExit):
            cli.main([part, "--help"])
        told = capsys.readouterr().out.partition("examples:\n")[2]
        commands += [re.split(r" {3,}| [<>|] |  #", line.strip())[0] for line in told.splitlines()]
    mine = [shlex.split(command)[1:] for command in commands if command.startswith("orcast ")]
    assert len(mine) > 9
    for arguments in mine:
        assert cli.parser().parse_args(arguments).part == arguments[0]


def refused(arguments: list[str], capsys: Capture) -> str:
    """Message of a command that exits with 2: one line."""
    assert cli.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out.strip() == ""
    text = said.err.strip().removeprefix("orcast: ")
    assert re.match(SENTENCE, text)
    return text


def test_wrong_options_are_refused_in_one_sentence(tmp_path: Path, capsys: Capture) -> None:
    for wrong in (
        ["--sync"],
        ["--low", "4", "--high", "3"],
        ["--levels", "5"],
        ["--levels", "many"],
        ["--max-pending", "0"],
        ["--state", str(tmp_path / "no" / "where")],
    ):
        refused(["stream", *wrong], capsys)


# --- tables ---

HEAD = "unique_id,ds,y,q0.1,q0.5,q0.9\n"


def small(rows: int = 61, series: tuple[str, ...] = ("007", "08")) -> pl.DataFrame:
    """Intervals that are too narrow."""
    rng = np.random.default_rng(1)
    frames = []
    for name in series:
        y = 50 + np.cumsum(rng.normal(0, 2, rows)).round(2)
        before = np.concatenate(([50.0], y[:-1]))
        days = [f"2024-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(rows)]
        columns = {"unique_id": [name] * rows, "ds": days, "y": y}
        frames.append(pl.DataFrame(columns | {f"q{a}": before + d for a, d in ((0.1, -1.0), (0.5, 0.0), (0.9, 1.0))}))
    return pl.concat(frames)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "CSV"])
def test_a_table_comes_back_as_it_went(ending: str, tmp_path: Path) -> None:
    frame = small().with_columns(pl.lit(None, dtype=pl.Float64).alias("nothing"), pl.lit('ä, "b"').alias("words"))
    path = str(tmp_path / f"table.{ending}")
    tables.write(frame, path)
    table = tables.read(path, names=("unique_id",))
    assert table.frame.equals(frame)
    assert table.first == (None if ending == "parquet" else 2)
    assert [found.name for found in tmp_path.iterdir()] == [f"table.{ending}"]


def test_missing_values_separators_and_late_fractions(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [*(f"s{i};{i};NA;1;2" for i in range(300)), "s;7.5;NaN;;null"]
    path.write_text("\ufeffunique_id;y;ds;q0.1;q0.9\r\n" + "\r\n".join(lines), encoding="utf-8")
    table = tables.read(str(path))
    assert table.frame.columns == ["unique_id", "y", "ds", "q0.1", "q0.9"]
    assert table.frame["y"][300] == 7.5
    assert table.frame["ds"].null_count() == 301
    assert table.frame.row(300) == ("s", 7.5, None, None, None)
    assert (table.separator, table.first) == (";", 2)


BAD_FILES = {
    "ragged.csv": (f"{HEAD}a,2020-01-01,3,1,2,4\nb,2020-01-01,3,1,2,4,5\n", "expected a CSV file"),
    "empty.csv": ("", "got an empty file"),
    "header.csv": (HEAD, "expected at least one row"),
    "text.csv": (f"{HEAD}a,2020-01-01,3,1,2,4\na,2020-01-02,abc,1,2,4\n", "column 'y'"),
    "quantile.csv": (f"{HEAD}a,2020-01-01,3,1,x,4\na,2020-01-02,1,1,2,4\n", "column 'q0.5'"),
    "nothing.csv": ("a,b,c\n1,2,3\n", "or y= with its name"),
    "date.csv": (f"{HEAD}a,01/02/2020,3,1,2,4\n", "got '01/02/2020' in line 2"),
    "nameless.csv": (f"{HEAD},2020-01-01,3,1,2,4\n", "got none in line 2"),
    "broken.parquet": ("PAR1garbage", "expected a Parquet file"),
    "table.xlsx": ("?", "expected a file that ends in"),
}


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("part", ["check", "recalibrate"])
def test_a_bad_file_is_refused_with_its_place(name: str, part: str, tmp_path: Path, capsys: Capture) -> None:
    text, words = BAD_FILES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    said = refused([part, str(tmp_path / name)], capsys)
    assert words in said
    assert name in said
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_bad_input_is_refused(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(HEAD.encode() + b"\xe4,2020-01-01,3,1,2,4\n")
    assert "expected a CSV file in UTF-8" in refused(["check", str(path)], capsys)
    small().write_csv(path)
    assert "nothing by that name" in refused(["check", str(tmp_path / "b.csv")], capsys)
    assert "expected the name of a column as y=, got" in refused(["check", str(path), "--y", "z"], capsys)
    assert "as --report" in refused(["check", str(path), "--report", str(tmp_path / "no" / "r.html")], capsys)
    for wrong in (["--model", "tree:0.1=a", "--model", "net"], ["--model", "tree:0.1=a,b"]):
        assert "columns" in refused(["check", str(path), *wrong], capsys)
    assert "'nolow'" in refused(["check", str(path), "--low", "nolow"], capsys)
    before = path.read_bytes()
    for wrong in (
        ["recalibrate", "--output"],
        ["recalibrate", "--report"],
        ["recalibrate", "--state"],
        ["check", "--report"],
    ):
        told = refused([wrong[0], str(path), wrong[1], str(path)], capsys)
        assert f"expected FILE and {wrong[1]} in files of their own" in told
    assert path.read_bytes() == before
    assert "numbers such as 0.05,0.5,0.95 as --levels" in refused(
        ["recalibrate", str(path), "--levels", "many"], capsys
    )
    assert "as --output" in refused(["recalibrate", str(path), "-o", str(tmp_path / "no" / "b.csv")], capsys)
    assert "expected a file that ends in" in refused(["recalibrate", str(path), "-o", "b.txt.md"], capsys)


# --- check ---


def test_a_check_says_what_was_found_and_how_good_it_was(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.csv"
    small().write_csv(path)
    assert cli.main(["check", str(path)]) == 0
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        f"{path}: 122 rows, 2 series",
        "  outcome   y",
        "  series    unique_id",
        "  time      ds",
        "  forecast  quantiles (q0.1, q0.5, q0.9)",
    ]
    inside = small().select((pl.col("y") >= pl.col("q0.1")) & (pl.col("y") <= pl.col("q0.9")))["y"].mean()
    first, second = told.out.splitlines()[:2]
    assert first.startswith("Do not use these forecasts as they are: the 80% interval is too narrow")
    assert second.startswith(f"The 80% interval covered {inside:.0%} of 122 outcomes (")
    report = tmp_path / "r.html"
    assert cli.main(["check", str(path), "--report", str(report)]) == 0
    assert capsys.readouterr().err.endswith(f"written: {report}\n")
    assert f"{inside:.0%}" in report.read_text(encoding="utf-8")


def test_check_of_a_recalibrated_file_evaluates_both_sides(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.csv"
    small().write_csv(path)
    assert cli.main(["recalibrate", str(path), "--issued-every", "1"]) == 0
    recalibrated = capsys.readouterr().err
    assert cli.main(["check", str(tmp_path / "a.orcast.csv"), "--issued-every", "1"]) == 0
    told = capsys.readouterr()
    assert "  recalibrated  " in told.err
    (covered,) = (line for line in told.out.splitlines() if line.startswith("The 80% interval"))
    assert "after recalibration" in covered
    assert covered in recalibrated


# --- the rest ---


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    from orcast.cli import common

    monkeypatch.setattr(common, "find_spec", lambda name: None)
    (tmp_path / "a.csv").write_text(HEAD)
    assert "pip install 'orcast[cli]'" in refused(["check", str(tmp_path / "a.csv")], capsys)


def test_faults_of_ours_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(options: object) -> int:
        raise ValueError("math domain error")

    monkeypatch.setattr(check, "run", fault)
    with pytest.raises(ValueError, match="math domain"):
        cli.main(["check", "forecasts.csv"])


def test_check_can_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    for path, width in ((good, 1.2816), (bad, 0.3)):
        pl.DataFrame({"y": rng.normal(size=600), "q0.1": [-width] * 600, "q0.9": [width] * 600}).write_csv(path)
    assert cli.main(["check", str(good), "--fail"]) == 0
    assert cli.main(["check", str(bad)]) == 0
    capsys.readouterr()
    assert cli.main(["check", str(bad), "--fail"]) == 1
    assert "the 80% interval is too narrow" in capsys.readouterr().out


def test_check_prints_json_or_one_sentence(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.csv"
    small().write_csv(path)
    assert cli.main(["check", str(path), "--json", "--fail"]) == 1
    told = json.loads(capsys.readouterr().out)
    (model,) = told["models"]
    assert told["file"] == str(path)
    assert (model["action"], model["outcomes"], model["series"]) == ("do not use", 122, 2)
    assert model["coverage"]["nominal"] == 0.8
    assert "the 80% interval is too narrow" in model["faults"]["before"]
    assert cli.main(["check", str(path), "-q"]) == 0
    quiet = capsys.readouterr()
    assert (quiet.out, quiet.err) == (f"{model['verdict'][0]}\n", "")


def test_commands_name_the_best_reference_and_its_loss(tmp_path: Path, capsys: Capture) -> None:
    """Hourly outcomes that repeat each day, forecast by their climate."""
    rng = np.random.default_rng(0)
    hours = np.arange("2024-01-01", "2024-01-29", dtype="datetime64[h]").astype("datetime64[us]")
    y = 10 * np.sin(np.arange(hours.size) * np.pi / 12) + 0.1 * rng.normal(size=hours.size)
    levels = {f"q{a}": np.full(y.size, 12.0 * a - 6.0) for a in (0.05, 0.25, 0.5, 0.75, 0.95)}
    pl.DataFrame({"ds": hours, "y": y} | levels).write_csv(tmp_path / "load.csv")
    named = "the last outcome in a season of 24 steps"
    for command in ("check", "recalibrate"):
        report = tmp_path / f"{command}.html"
        assert cli.main([command, str(tmp_path / "load.csv"), "--issued-every", "1", "--report", str(report)]) == 0
        said = capsys.readouterr()
        (line,) = (line for line in (said.out + said.err).splitlines() if line.startswith("Best reference: "))
        found = re.match(rf"Best reference: {named}, pinball loss ([\d.]+) \(in the \d+ rows", line)
        assert found is not None
        assert f"pinball loss {found[1]}" in report.read_text(encoding="utf-8")
    assert cli.main(["check", str(tmp_path / "load.csv"), "--issued-every", "1"]) == 0
    assert re.match(
        "Do not use these forecasts: the best reference, the last outcome in a season of 24 steps, has",
        capsys.readouterr().out,
    )
