"""Command `reproduce`: tables, files and page."""

from __future__ import annotations

from pathlib import Path

import pytest

from research import __main__ as research
from research.experiments import adversarial
from result_pages import read, strangers

for name in ("matplotlib", "river", "sklearn"):
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
