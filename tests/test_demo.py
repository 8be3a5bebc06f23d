"""The demonstration prints the verdict and writes a report."""

from pathlib import Path

import pytest

from orcast import cli


def test_demo_prints_the_verdict_and_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "demo.html"
    assert cli.main(["demo", "--series", "wind", "--rounds", "30", "--output", str(page)]) == 0
    text = capsys.readouterr().out
    assert text.count("Guarantee: miscalibration") == 2
    assert text.count("held in every round") == 2
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--rounds", "3", "expected at least 10 as --rounds, got 3"),
        ("--output", "no/such/folder/demo.html", "expected a file in an existing folder as --output"),
        ("--output", "demo.txt", "expected a file that ends in .html"),
        ("--series", "rain", "invalid choice: 'rain'"),
    ],
)
def test_demo_refuses_wrong_options(option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["demo", option, value])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
