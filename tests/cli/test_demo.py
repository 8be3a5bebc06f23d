"""The demonstration prints the verdict and writes a report."""

from pathlib import Path

import pytest

from orcast import cli


def test_demo_prints_the_verdict_and_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "demo.html"
    assert cli.main(["demo", "--output", str(page)]) == 0
    text = capsys.readouterr().out
    assert text.count("Guarantee: miscalibration") == text.count("held in every round") == 2
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert cli.main(["demo", "--output", str(tmp_path / "no/such/demo.html")]) == 2
    assert "expected a file in an existing folder as --output" in capsys.readouterr().err
