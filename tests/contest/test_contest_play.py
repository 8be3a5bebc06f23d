"""Playing: nothing is seen early, by hand and by a spy; leagues; Natures; the frame against round by round."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arenas import LEVELS, MAKERS, Spy, against_nature, events, one_step, panel, spies

import orcast as oc
from orcast.contest import leagues
from orcast.contest.methods import METHODS, ORCAST, RAW, Method, frame, load, space_of
from orcast.contest.play import Game, Player, bounds, play
from orcast.contest.stream import Stream


def player(factory: Any) -> Any:
    return lambda stream, game: Player(factory(stream, game))


def test_three_rounds_with_late_outcomes_by_hand() -> None:
    q = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y, issued, settled = np.array([1.5, 3.5, 9.0]), np.array([0, 1, 2]), np.array([2, 5, 3])
    stream = Stream("three", "one-step", "", "", np.array([0.25, 0.75]), {"e": q}, y, issued, settled)
    told: list[Any] = []
    played = play(stream, player(spies(told)))
    assert played is not None
    # the first outcome is known when the third row is issued; the third one before the second
    assert [(what, row) for what, row, _ in told] == [
        ("asked", 0), ("asked", 1), ("told", 0), ("asked", 2), ("told", 2), ("told", 1),
    ]  # fmt: skip
    assert [y for what, _, y in told if what == "told"] == [1.5, 9.0, 3.5]
    assert (played.issued == q).all()
    assert (played.y == y).all()


@pytest.mark.parametrize("stream", [one_step(late=3), panel(), events()], ids=lambda s: s.name)
def test_a_spy_is_told_of_no_outcome_early_and_of_each_once(stream: Stream) -> None:
    told: list[Any] = []
    assert play(stream, player(spies(told))) is not None
    known: set[int] = set()
    for what, row, value in told:
        if what == "told":
            assert row not in known
            assert value == stream.y[row]
            known.add(row)
        else:
            may = set(np.flatnonzero(stream.settled <= stream.issued[row]).tolist())
            assert known == may
    assert known == set(range(stream.rows))


def test_games_of_a_panel_have_players_of_their_own() -> None:
    stream = panel()
    made: list[Game] = []
    play(stream, lambda s, game: (made.append(game), Player(Spy([])))[1])
    assert len(made) == 6
    assert sorted(row for game in made for row in game.rows.tolist()) == list(range(stream.rows))
    assert all((stream.horizon[game.rows] == game.horizon).all() for game in made)  # type: ignore[index]
    assert len({id(game.shared) for game in made}) == 1


def test_an_own_method_may_issue_arrays_dictionaries_or_probabilities() -> None:
    stream = one_step(10)

    class Own:
        def __init__(self, form: Any) -> None:
            self.form = form

        def predict(self, forecast: Any, *, id: Any) -> Any:
            return self.form(forecast)

        def update(self, y: float, *, id: Any) -> None:
            pass

    for form in (lambda f: f.quantile(LEVELS)[::-1], lambda f: dict(zip(LEVELS, f.quantile(LEVELS), strict=True))):
        played = play(stream, lambda s, g, form=form: Player(Own(form)))
        assert played is not None
        np.testing.assert_allclose(played.issued, stream.expert)
    with pytest.raises(ValueError, match="expected finite quantiles, got"):
        play(stream, lambda s, g: Player(Own(lambda f: np.full(LEVELS.size, np.nan))))


def test_bounds_are_those_of_what_is_said_and_comes_where_there_are_none() -> None:
    stream = one_step()
    low, high = bounds(stream, np.arange(20))
    said = np.append(stream.expert[:20].ravel(), stream.y[:20])
    assert low == pytest.approx(said.min() - np.ptp(said) / 2)
    assert high == pytest.approx(said.max() + np.ptp(said) / 2)
    assert bounds(panel(), panel().games()[0])[0] == 0.0
    assert bounds(against_nature(), np.arange(3)) == (0.0, 1.0)


def test_every_method_of_the_table_plays_what_it_says() -> None:
    played = set()
    for make in MAKERS.values():
        stream = make()
        for method in METHODS.values():
            found = method.play(stream)
            assert (found is None) == (not method.plays(stream))
            if found is not None:
                played.add(method.name)
                assert found.issued.shape == stream.expert.shape
                assert np.isfinite(found.issued).all()
                assert (found.issued >= stream.low).all()
    only = {name for name, method in METHODS.items() if method.only}
    assert played == set(METHODS) - only


def test_methods_for_ensembles_are_given_members_and_those_for_several_experts_all_of_them() -> None:
    rng = np.random.default_rng(0)
    stream = one_step(30)
    members = rng.normal(size=(30, 9))
    ensemble = replace(stream, kind="ensembles", members=members)
    several = replace(stream, kind="several experts", experts={"a": stream.expert, "b": stream.expert + 1.0})
    names = [name for name, method in METHODS.items() if method.only]
    assert names
    for name in names:
        method = METHODS[name]
        made = ensemble if method.members else several
        assert method.play(stream) is None
        assert method.play(made) is not None
    seen: list[Any] = []

    class Looks(Spy):
        def predict(self, forecast: Any = None, *, experts: Any = None, id: Any) -> Any:
            seen.append((forecast, experts))
            return stream.expert[id]

    Method("looks", "", lambda s, g: Looks([]), members=True).play(ensemble)
    assert isinstance(seen[-1][0], oc.Ensemble)
    Method("looks", "", lambda s, g: Looks([]), several=True).play(several)
    assert list(seen[-1][1]) == ["a", "b"]


def test_orcast_is_the_default_recalibrator() -> None:
    stream = one_step(40, late=2)
    ours = METHODS[ORCAST].play(stream)
    assert ours is not None
    game = oc.Recalibrator()
    for row, asked in stream.timeline():
        if asked:
            q = game.predict(oc.Quantiles(LEVELS, stream.expert[row]), id=row).quantile(LEVELS)
            assert (ours.issued[row] == q).all()
        else:
            game.update(stream.y[row], id=row)


def test_a_frame_plays_as_its_games_do_round_by_round() -> None:
    # one series and one horizon have nobody to share a pool with
    stream = panel(1, 30, 1)
    late = replace(stream, settled=stream.settled + 2)
    for each in (stream, late):
        whole = frame(each)
        assert whole is not None
        alone = play(each, lambda s, g: Player(oc.Recalibrator(space_of(s))))
        assert alone is not None
        np.testing.assert_allclose(whole.issued, alone.issued, rtol=1e-9, atol=1e-9)


def test_a_frame_of_rows_that_are_known_together_uses_no_outcome_early() -> None:
    stream = panel(2, 30, 1)
    together = replace(stream, settled=(stream.issued // 5 + 1) * 5)
    before = frame(together)
    assert before is not None
    changed = stream.y.copy()
    changed[together.issued >= 15] += 10.0
    after = frame(replace(together, y=changed))
    assert after is not None
    early = together.issued < 20
    assert (before.issued[early] == after.issued[early]).all()
    assert (before.issued[~early] != after.issued[~early]).any()


def test_the_tracked_expert_is_what_was_learnt_when_a_row_was_issued() -> None:
    stream = one_step(80, late=2)
    expert = leagues.tracked(stream)
    assert expert.stream.expert.shape == stream.expert.shape
    game = oc.Recalibrator()
    for row, asked in stream.timeline():
        given = oc.Quantiles(LEVELS, stream.expert[row])
        if asked:
            assert (expert.stream.expert[row] == game.learnt(given).quantile(LEVELS)).all()
            game.predict(given, id=row)
        else:
            game.update(stream.y[row], id=row)
    # the expert is too low, and the tracked one is less so in the end
    assert (
        np.abs(stream.y - expert.stream.expert[:, 3])[40:].mean() < np.abs(stream.y - stream.expert[:, 3])[40:].mean()
    )


@pytest.mark.parametrize("stream", [one_step(), panel(), events()], ids=lambda s: s.name)
def test_the_tracked_expert_uses_no_outcome_early(stream: Stream) -> None:
    half = int(np.median(stream.issued))
    y = stream.y.copy()
    later = stream.settled > half
    y[later] = 1.0 - y[later] if stream.binary else y[later] + 3.0
    was, now = (leagues.tracked(each).stream.expert for each in (stream, replace(stream, y=y)))
    early = stream.issued <= half
    assert (was[early] == now[early]).all()
    assert (was[~early] != now[~early]).any()


def test_rivals_in_the_second_league_are_given_the_tracked_expert() -> None:
    stream = one_step(20)
    expert = leagues.tracked(stream)
    told: list[Any] = []
    spy = Method("spy", "", spies(told))
    leagues.play_on_tracked(spy, stream, expert)
    assert [value for what, _, value in told if what == "asked"] == expert.stream.expert[:, 3].tolist()


def test_a_nature_picks_each_outcome_from_the_forecast_that_she_sees() -> None:
    stream = against_nature()
    told: list[Any] = []
    played = play(stream, player(spies(told)))
    assert played is not None
    assert [y for what, _, y in told if what == "told"] == played.y.tolist()
    assert not (played.y == stream.y).all()
    assert ((played.y >= 0.0) & (played.y <= 1.0)).all()
    # who forecasts otherwise meets others
    ours = METHODS[ORCAST].play(stream)
    assert ours is not None
    assert not (ours.y == played.y).all()
    # and the tracked expert is played along with a rival
    rival = leagues.play_on_tracked(METHODS["MultiQT"], stream, leagues.tracked(stream))
    assert rival is not None
    assert not (rival.y == played.y).all()


# --- methods of one's own


def test_a_file_of_methods_joins_the_table(tmp_path: Any) -> None:
    path = tmp_path / "mine.py"
    path.write_text("from orcast.baselines import AsGiven\nMETHODS = {'mine': lambda s, g: AsGiven(-99, 99)}\n")
    table = load(path)
    assert list(table) == [*METHODS, "mine"]
    assert table["mine"].play(one_step(5)) is not None
    assert load(None) is METHODS


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1", "got none"),
        ("METHODS = [1]", r"got \[1\]"),
        ("METHODS = {}", r"got \{\}"),
        ("METHODS = {'a': 3}", "got 'a': 3"),
        ("METHODS = {1: print}", "got 1: "),
        ("1 / 0", "got ZeroDivisionError"),
        ("import no_such_module", "got ModuleNotFoundError"),
        (f"METHODS = {{'{ORCAST}': print}}", "expected a new name"),
        (f"METHODS = {{'{RAW}': print}}", "expected a new name"),
    ],
)
def test_what_is_no_file_of_methods_is_refused_in_a_sentence(tmp_path: Any, text: str, told: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=told) as raised:
        load(path)
    assert str(raised.value).startswith("expected ")
    with pytest.raises(ValueError, match="got no such file"):
        load(tmp_path / "nothing.py")
