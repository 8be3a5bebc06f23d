"""Command `reproduce`: tables, files, page, and a stopped run that continues."""

from __future__ import annotations

from pathlib import Path

import pytest

from research import __main__ as research
from research.experiments import adversarial
from result_pages import read, strangers

for name in ("matplotlib", "rich", "river", "sklearn"):
    pytest.importorskip(name)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adversarial, "QUICK_ROUNDS", 12)
    monkeypatch.setattr(adversarial, "QUICK_RUNS", 1)


def test_single_experiment_writes_its_own_claims(small: None, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert research.main(["reproduce", "adversarial", "--quick", "--out", str(tmp_path), "--page", str(page)]) == 0
    assert {row[0] for row in read(tmp_path / "claims.csv")[1:]} == {"6.2"}
    assert strangers(page.read_text(encoding="utf-8"), tmp_path) == ([], [])


def test_stopped_run_continues(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that were finished before the stop are not run again, and the files are those of one whole run."""
    command = ["reproduce", "adversarial", "--quick", "--out"]
    assert research.main([*command, str(tmp_path / "whole")]) == 0
    calls: list[tuple[object, ...]] = []
    run_method = adversarial.run_method

    def stopping(*arguments: object) -> adversarial.Trace:
        calls.append(arguments)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return run_method(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(adversarial, "run_method", stopping)
    assert research.main([*command, str(tmp_path / "stopped")]) == 130
    assert research.main([*command, str(tmp_path / "stopped")]) == 0
    assert len(calls) == len(set(calls)) + 1, "only the job that was stopped is run twice"
    for file in (tmp_path / "whole").glob("*.csv"):
        assert file.read_bytes() == (tmp_path / "stopped" / file.name).read_bytes()
    assert not any((tmp_path / "stopped" / ".jobs").iterdir())
