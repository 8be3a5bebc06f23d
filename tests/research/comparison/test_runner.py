"""Runs: no early outcomes, adversaries, and the frame against round by round."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_streams import LEVELS, MAKERS, Calls, Spy, adversarial, events, one_step, panel, spies

import orcast as oc
from research.comparison.methods import METHODS, ORCAST, Method, frame, space_of
from research.comparison.runner import Group, Model, run_stream
from research.comparison.stream import Stream


def model(factory: Any) -> Any:
    return lambda stream, group: Model(factory(stream, group))


@pytest.mark.parametrize("stream", [one_step(late=3), panel(), events()], ids=lambda s: s.name)
def test_outcomes_are_observed_once_and_not_early(stream: Stream) -> None:
    calls: Calls = []
    run_stream(stream, model(spies(calls)))
    known: set[int] = set()
    for what, row, value in calls:
        if what == "update":
            assert row not in known
            assert value == stream.y[row]
            known.add(row)
        else:
            assert known == set(np.flatnonzero(stream.known <= stream.issued[row]).tolist())
    assert known == set(range(stream.rows))


def test_each_group_of_a_panel_has_its_own_model() -> None:
    stream = panel()
    made: list[Group] = []
    run_stream(stream, lambda s, group: (made.append(group), Model(Spy([])))[1])
    assert len(made) == 6
    assert sorted(row for group in made for row in group.rows.tolist()) == list(range(stream.rows))
    assert all((stream.horizon[group.rows] == group.horizon).all() for group in made)  # type: ignore[index]
    assert len({id(group.shared) for group in made}) == 1


class Own(Spy):
    def __init__(self, form: Any) -> None:
        super().__init__([])
        self.form = form

    def predict(self, forecast: Any = None, *, experts: Any = None, id: Any) -> Any:
        return self.form(forecast if experts is None else experts)


@pytest.mark.parametrize(
    "form", [lambda f: f.quantile(LEVELS)[::-1], lambda f: dict(zip(LEVELS, f.quantile(LEVELS), strict=True))]
)
def test_methods_may_issue_arrays_or_dictionaries(form: Any) -> None:
    stream = one_step(10)
    run = run_stream(stream, lambda s, g: Model(Own(form)))
    assert run is not None
    np.testing.assert_allclose(run.issued, stream.base)


def test_every_method_runs_on_what_it_supports() -> None:
    ran = set()
    for make in MAKERS.values():
        stream = make()
        for method in METHODS.values():
            run = method.run(stream)
            assert (run is None) == (not method.supports(stream))
            if run is not None:
                ran.add(method.name)
                assert run.issued.shape == stream.base.shape
                assert np.isfinite(run.issued).all()
                assert (run.issued >= stream.low).all()
    assert ran == {name for name, method in METHODS.items() if not method.only}


def test_members_and_several_experts_reach_the_methods_for_them() -> None:
    stream = one_step(30)
    ensemble = replace(stream, kind="ensembles", members=np.random.default_rng(0).normal(size=(30, 9)))
    several = replace(stream, kind="several experts", experts={"a": stream.base, "b": stream.base + 1.0})
    for method in METHODS.values():
        if method.only:
            assert method.run(stream) is None
            assert method.run(ensemble if method.members else several) is not None
    seen: list[Any] = []
    record = Own(lambda f: (seen.append(f), np.zeros(LEVELS.size))[1])
    Method("record", "", lambda s, g: record, members=True).run(ensemble)
    assert isinstance(seen[-1], oc.Ensemble)
    Method("record", "", lambda s, g: record, several=True).run(several)
    assert list(seen[-1]) == ["a", "b"]


def test_orcast_is_the_default_recalibrator() -> None:
    stream, recal = one_step(40, late=2), oc.Recalibrator()
    run = METHODS[ORCAST].run(stream)
    assert run is not None
    for row, predicts in stream.timeline():
        if predicts:
            q = recal.predict(oc.Quantiles(LEVELS, stream.base[row]), id=row).quantile(LEVELS)
            assert (run.issued[row] == q).all()
        else:
            recal.update(stream.y[row], id=row)


@pytest.mark.parametrize("late", [0, 2])
def test_frame_equals_round_by_round(late: int) -> None:
    stream = panel(1, 30, 1)  # one series and one horizon share no pool
    stream = replace(stream, known=stream.known + late)
    whole, alone = frame(stream), run_stream(stream, lambda s, g: Model(oc.Recalibrator(space_of(s))))
    assert whole is not None
    assert alone is not None
    np.testing.assert_allclose(whole.issued, alone.issued, rtol=1e-9, atol=1e-9)


def test_frame_uses_no_early_outcome() -> None:
    stream = panel(2, 30, 3)
    changed = stream.y + 10.0 * (stream.known >= 15)
    before, after = frame(stream), frame(replace(stream, y=changed))
    assert before is not None
    assert after is not None
    early = stream.issued < 15
    assert (before.issued[early] == after.issued[early]).all()
    assert (before.issued[~early] != after.issued[~early]).any()


def test_adversary_chooses_outcomes_from_issued_forecasts() -> None:
    stream, calls = adversarial(), []
    run = run_stream(stream, model(spies(calls)))
    assert run is not None
    assert [y for what, _, y in calls if what == "update"] == run.y.tolist()
    assert not (run.y == stream.y).all()
    assert ((run.y >= 0.0) & (run.y <= 1.0)).all()
    others = METHODS[ORCAST].run(stream), METHODS["MultiQT"].run(stream)
    assert all(other is not None and not (other.y == run.y).all() for other in others)
