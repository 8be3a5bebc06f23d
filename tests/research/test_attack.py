"""The attack: games on every space, a ledger of its own that the library's agrees with, one table."""

import csv
import time
from pathlib import Path

import numpy as np
import pytest

from research import __main__ as research
from research.attack.games import all_games
from research.attack.play import play

GAMES = {game.name: game for game in all_games()}


@pytest.mark.parametrize(
    "name",
    [
        "Interval, default, hard greedy",
        "Line, quantiles by hour + moments + regret CRPS, MSE, in one group",
        "HalfLine, recipe given p, fine",
        "Binary, binary by site + moments by error + swap regret by wind, greedy",
        "Ten labels, label + calibeating, greedy",
        "Circle, moments + swap regret by wind, delaying",
        "Box, moments by hour + regret CRPS, inner product",
    ],
)
def test_own_ledger_finds_no_broken_bound(name: str) -> None:
    found = play(GAMES[name], 1.0, time.time() + 60.0, rounds=30)
    assert found.failure == ""
    assert (found.unsaid, found.groups, found.held) == (0, 0, len(found.ms))
    assert found.beyond < 1e-9
    assert 0.0 < found.ratio <= 1.0 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("what", "beyond"), [("quantiles by hour", 0), ("quantiles by hour + moments", 4)])
def test_groups_exceed_their_target_only_beside_other_parts(what: str, beyond: int) -> None:
    found = play(GAMES[f"Interval, {what}, greedy"], 1.0, time.time() + 600.0)
    assert (found.targets, found.groups, found.held) == (beyond, 0, len(found.ms))


def test_own_ledger_contradicts_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that books a tenth of each payoff is found out in the first round."""
    monkeypatch.setattr("research.attack.play.payoffs_of", lambda recal, ys, id: 0.1 * np.ones((20, 1)))
    assert "to book" in play(GAMES["Binary, moments, greedy"], 1.0, time.time() + 60.0, rounds=2).failure


def test_command_writes_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert research.main(["attack", "--minutes", "0.02", "--games", "Binary, moments", "--output", str(tmp_path)]) == 0
    with (tmp_path / "attack.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["space"], row["payoff"], row["not announced"]) for row in rows] == [("Binary", "moments", "0")]
    assert "| Binary | moments |" in capsys.readouterr().out
    assert research.main(["attack", "--games", "nothing"]) == 2


def test_page_quotes_the_stored_table() -> None:
    docs = Path(__file__).parents[2] / "docs"
    with (docs / "attack.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    held = [float(row["held, %"]) for row in rows]
    page = (docs / "concepts" / "guarantee.md").read_text(encoding="utf-8")
    assert f"In {sum(int(row['rounds']) for row in rows):,} rounds of {len(rows)} payoffs" in page
    assert f"all rounds of {held.count(100.0)} payoffs, and in at least {min(held):.1f}%" in page
    assert f"The slowest round took {max(float(row['slowest, ms']) for row in rows):.1f} ms" in page
    assert {row["not announced"] for row in rows} == {row["groups beyond"] for row in rows} == {"0"}
