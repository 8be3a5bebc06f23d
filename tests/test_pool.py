"""A pool of games in a service."""

from __future__ import annotations

import copy
import threading
from pathlib import Path

import numpy as np
import pytest

import orcast as oc

SPACE = oc.Interval(0, 100)


def steps(count: int, recals: int, seed: int = 0, bias: float = 8.0) -> list[list[tuple[oc.Normal, float]]]:
    """Forecasts and outcomes of some games, all with the same bias."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(50.0, 5.0, (count, recals))
    y = np.clip(mean + bias + rng.normal(0.0, 3.0, (count, recals)), 0.0, 100.0)
    return [[(oc.Normal(m, 3.0), float(v)) for m, v in zip(*row, strict=True)] for row in zip(mean, y, strict=True)]


def run_rounds(recals: list[oc.Recalibrator], rows: list[list[tuple[oc.Normal, float]]]) -> float:
    """The mean absolute error of the medians."""
    errors = []
    for row in rows:
        said = [recal.predict(forecast) for recal, (forecast, _) in zip(recals, row, strict=True)]
        for recal, p, (_, y) in zip(recals, said, row, strict=True):
            errors.append(abs(y - float(p.quantile(0.5))))
            recal.update(y)
    return float(np.mean(errors))


def in_pool(count: int, pool: oc.Pool | None) -> list[oc.Recalibrator]:
    return [oc.Recalibrator(SPACE, pool=pool) for _ in range(count)]


def test_recals_of_a_pool_learn_sooner() -> None:
    rows = steps(8, 6)
    assert run_rounds(in_pool(6, oc.Pool()), rows) < 0.97 * run_rounds(in_pool(6, None), rows)


def test_a_new_recal_begins_with_what_the_others_corrected() -> None:
    pool = oc.Pool()
    run_rounds(in_pool(6, pool), steps(30, 6))
    late = steps(10, 1, seed=1)
    assert run_rounds(in_pool(1, pool), late) < 0.9 * run_rounds(in_pool(1, None), late)


def test_a_forecast_changes_nothing_and_an_outcome_is_empirical_once() -> None:
    pool = oc.Pool()
    (recal,) = in_pool(1, pool)
    recal.predict(oc.Normal(50, 3), id="a")
    recal.peek(oc.Normal(50, 3))
    assert pool.outcomes == 0
    recal.update(60, id="a")
    assert pool.outcomes == 1
    recal.predict(oc.Normal(50, 3))
    with pytest.raises(ValueError, match="expected an outcome"):
        recal.update(1e9)
    assert pool.outcomes == 1


def test_a_history_is_result_as_its_rounds_are() -> None:
    pools = oc.Pool(), oc.Pool()
    one, other = (in_pool(1, pool)[0] for pool in pools)
    rows = steps(12, 1)
    run_rounds([one], rows)
    forecasts, outcomes = zip(*(row[0] for row in rows), strict=True)
    other.run(forecasts, outcomes)
    np.testing.assert_array_equal(pools[0].rows, pools[1].rows)
    assert one.predict(oc.Normal(50, 3)).mean() == other.predict(oc.Normal(50, 3)).mean()


def test_the_guarantee_is_each_recals_own() -> None:
    recals = in_pool(3, oc.Pool())
    run_rounds(recals, steps(40, 3))
    assert all(recal.guarantee.miscalibration <= recal.guarantee.promised for recal in recals)


def test_recals_and_pools_go_on_from_their_files(tmp_path: Path) -> None:
    pool = oc.Pool()
    recals = in_pool(2, pool)
    run_rounds(recals, steps(10, 2))
    recals[0].predict(oc.Normal(50, 3), id="pending")
    pool.save(tmp_path / "pool")
    for i, recal in enumerate(recals):
        recal.save(tmp_path / f"{i}")
    again = oc.Pool.load(tmp_path / "pool")
    loaded = [oc.Recalibrator.load(tmp_path / f"{i}", pool=again) for i in range(2)]
    rows = steps(5, 2, seed=3)
    assert run_rounds(recals, rows) == run_rounds(loaded, rows)
    np.testing.assert_array_equal(pool.rows, again.rows)


def test_a_pool_is_given_again_to_recals_that_had_one(tmp_path: Path) -> None:
    (recal,), (alone,) = in_pool(1, oc.Pool()), in_pool(1, None)
    recal.save(tmp_path / "pooled")
    alone.save(tmp_path / "alone")
    with pytest.raises(ValueError, match="expected pool= as the recalibrator was saved, in a pool, got none"):
        oc.Recalibrator.load(tmp_path / "pooled")
    with pytest.raises(ValueError, match="expected pool= as the recalibrator was saved, in no pool, got Pool"):
        oc.Recalibrator.load(tmp_path / "alone", pool=oc.Pool())
    with pytest.raises(ValueError, match="expected the state of a Pool, got that of a Recalibrator"):
        oc.Pool.load(tmp_path / "alone")


def test_a_damaged_pool_is_refused(tmp_path: Path) -> None:
    pool = oc.Pool()
    run_rounds(in_pool(2, pool), steps(3, 2))
    pool.rows[:] = np.nan
    pool.save(tmp_path / "pool")
    with pytest.raises(ValueError, match="expected a state that this version can use, got an invalid one"):
        oc.Pool.load(tmp_path / "pool")


def test_pool_rejects_recalibrators_that_cannot_share() -> None:
    pool = oc.Pool()
    in_pool(1, pool)
    with pytest.raises(ValueError, match="expected a space with 47 levels, as in the rest of the pool, got 79"):
        oc.Recalibrator(oc.Interval(0, 1, cells=96), pool=pool)
    with pytest.raises(TypeError, match="expected pool= only for quantities"):
        oc.Recalibrator(oc.Binary(), pool=pool)
    with pytest.raises(TypeError, match="expected oracle=Committee\\(\\) with pool="):
        oc.Recalibrator(SPACE, oracle=oc.Equilibrium(), pool=pool)
    with pytest.raises(TypeError, match=r"expected a Pool\(\) as pool, got 3"):
        oc.Recalibrator(SPACE, pool=3)  # type: ignore[arg-type]


def test_a_copy_has_a_pool_of_its_own() -> None:
    pool = oc.Pool()
    recals = in_pool(2, pool)
    run_rounds(recals, steps(3, 2))
    copies = copy.deepcopy(recals)
    assert copies[0].pool is copies[1].pool is not pool
    rows = steps(3, 2, seed=5)
    assert run_rounds(copies, rows) == run_rounds(recals, rows)


def test_threads_share_a_pool() -> None:
    pool = oc.Pool()
    recals = in_pool(4, pool)
    rows = steps(10, 4)
    threads = [
        threading.Thread(target=run_rounds, args=([recal], [[row[i]] for row in rows]))
        for i, recal in enumerate(recals)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool.outcomes == 40


def test_a_recal_goes_on_in_its_own_pool(tmp_path: Path) -> None:
    """Not in one that cannot be it; in a later state of its own it does."""
    pool, path = oc.Pool(), tmp_path / "game.orcast"
    recals = [oc.Recalibrator(oc.Interval(0, 1), pool=pool) for _ in range(2)]
    for _ in range(3):
        for recal in recals:
            recal.predict(oc.Normal(0.5, 0.1))
            recal.update(0.6)
    recals[1].save(path)
    other = oc.Pool()
    stranger = oc.Recalibrator(oc.Interval(0, 1), pool=other)
    for _ in range(6):
        stranger.predict(oc.Normal(0.5, 0.1))
        stranger.update(0.3)
    for wrong in (oc.Pool(), other):
        with pytest.raises(ValueError, match="expected pool= with the pool of the saved recalibrator"):
            oc.Recalibrator.load(path, pool=wrong)
    assert oc.Recalibrator.load(path, pool=pool).pool is pool
    recals[0].predict(oc.Normal(0.5, 0.1))
    recals[0].update(0.6)
    assert oc.Recalibrator.load(path, pool=pool).pool is pool
