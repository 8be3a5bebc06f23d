"""No acknowledged round is lost, none counted twice, when the service or its database is killed."""

from pathlib import Path

import pytest
from kills import killed_service


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_service_loses_and_repeats_no_round(tmp_path: Path, kills: int) -> None:
    counted = killed_service(f"sqlite:///{tmp_path}/store.db", kills, seed=kills)
    assert counted["rounds"] > kills
    assert counted["repeats"] > 0
