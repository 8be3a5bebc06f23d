"""No acknowledged round is lost, none counted twice, when the service or its database is killed."""

from pathlib import Path

import pytest
from kills import killed_database, killed_service
from postgres import database, restart, server


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_service_loses_and_repeats_no_round(tmp_path: Path, kills: int) -> None:
    counted = killed_service(f"sqlite:///{tmp_path}/store.db", kills, seed=kills)
    assert counted["rounds"] > kills
    assert counted["lost"] == counted["doubled"] == 0
    assert counted["repeats"] > 0


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_database_under_two_services_loses_and_repeats_no_round(kills: int) -> None:
    with server() as started:
        counted = killed_database(database(started), lambda: restart(started), kills, seed=kills)
    assert counted["rounds"] > kills
    assert counted["lost"] == counted["doubled"] == 0
