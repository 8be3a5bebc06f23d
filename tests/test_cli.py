"""The command: what it says of itself, what it refuses, and pages that keep what was written above their mark."""

import re
from pathlib import Path

import pytest

import orcast
from helpers import SENTENCE
from orcast import cli
from orcast.experiments.output import Result, Table


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"orcast {orcast.__version__}\n"


def test_its_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    told = capsys.readouterr().out
    assert "orcast reproduce all --quick" in told
    assert "demo" in told


@pytest.mark.parametrize("wrong", [[], ["reproduce"], ["reproduce", "nothing"], ["fly"]])
def test_a_wrong_command_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(wrong)
    assert "usage: orcast" in capsys.readouterr().err


def test_wrong_options_are_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--workers", "0"], ["--data", str(tmp_path / "nowhere")]):
        assert cli.main(["reproduce", "recalibration", "--quick", "--out", str(tmp_path / "out"), *wrong]) == 2
        said = capsys.readouterr().err.strip()
        assert re.match(SENTENCE, said.removeprefix("orcast: "))


def test_the_demonstration_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--rounds", "3"]) == 2
    assert "expected at least 10 as --rounds" in capsys.readouterr().err


def test_a_page_keeps_what_stands_above_its_mark(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Mine\n\nwords\n\n{cli.MARK}\n\nold\n", encoding="utf-8")
    cli.write_page(page, ["## New\n"], 3.0)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Mine\n\nwords\n\n")
    assert "old" not in text
    assert "## New" in text
    assert f"orcast {orcast.__version__}" in text
    cli.write_page(page, ["## Newer\n"], 3.0)
    assert page.read_text(encoding="utf-8").count(cli.MARK) == 1


def test_pictures_are_found_from_the_page(tmp_path: Path) -> None:
    table = Table("one", "One", ("who", "x"), [("a", 1.25), ("b", None)])
    result = Result("r", "R", ("said",), (table,), {})
    assert cli._seen_from(str(tmp_path / "docs" / "page.md"), str(tmp_path / "docs" / "images")) == "images/"
    assert cli._seen_from(None, "results") == ""
    assert "| a | 1.25 |" in result.markdown()
    (path,) = result.write(tmp_path / "made")
    assert path.read_text(encoding="utf-8").splitlines() == ["who,x", "a,1.25", "b,"]
