"""A state that another machine wrote: the stream goes on here with the answers it would have had there.

`golden/moved.orcast` was saved after 40 rounds, with one more pending, and `golden/moved.json` has what was played and
what the next 30 rounds answered, on a processor with AVX-512.  With the kernels of other processors (`make test-cpus`)
the forecasts were the same to 5e-15 of their size and the certificates, differences of large numbers, to 1e-12; 1e-9
leaves room for processors that were not tried, and a change of the method or a state read wrongly is far above it.
`python tests/persistence/test_moved_state.py` writes both files anew.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc

GOLDEN = Path(__file__).parents[1] / "golden"
STATE, ANSWERS = GOLDEN / "moved.orcast", GOLDEN / "moved.json"
SAVED, ROUNDS, LATE = 40, 71, 45
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def play(recal: oc.Recalibrator, rows: list[list[float]], first: int, last: int) -> list[list[float]]:
    """Rounds of (mean, standard deviation, outcome); the outcome of one comes late.  What each answered."""
    answers = []
    for t in range(first, last):
        mean, sd, y = rows[t]
        p = recal.predict(oc.Normal(mean, sd))
        recal.update(y)
        if t == LATE:
            recal.update(rows[SAVED][2], id="late")
        certificate, guarantee = p.certificate, recal.guarantee
        answers.append(
            [
                *p.quantile(LEVELS),
                p.mean(),
                p.std(),
                certificate.worst_next,
                guarantee.promised,
                guarantee.miscalibration,
            ]
        )
    return answers


def until_saved(rows: list[list[float]]) -> oc.Recalibrator:
    recal = oc.Recalibrator(oc.Interval(0, 100))
    play(recal, rows, 0, SAVED)
    recal.predict(oc.Normal(*rows[SAVED][:2]), id="late")
    return recal


@pytest.fixture(scope="module")
def golden() -> Any:
    return json.loads(ANSWERS.read_text())


def test_a_moved_state_goes_on_with_the_same_answers(golden: Any) -> None:
    recal = oc.Recalibrator.load(STATE)
    assert recal.pending == ("late",)
    answers = play(recal, golden["rows"], SAVED + 1, ROUNDS)
    np.testing.assert_allclose(answers, golden["answers"], rtol=1e-9, atol=1e-12)
    assert recal.pending == ()
    assert recal.guarantee.rounds == ROUNDS


def test_a_stream_that_was_here_all_along_has_the_same_answers(golden: Any) -> None:
    recal = until_saved(golden["rows"])
    answers = play(recal, golden["rows"], SAVED + 1, ROUNDS)
    np.testing.assert_allclose(answers, golden["answers"], rtol=1e-9, atol=1e-12)


def test_a_moved_state_says_what_it_promised(golden: Any) -> None:
    moved, here = oc.Recalibrator.load(STATE).guarantee, until_saved(golden["rows"]).guarantee
    assert moved.rounds == here.rounds == SAVED
    assert moved.promised == pytest.approx(here.promised, rel=1e-9)
    assert moved.miscalibration == pytest.approx(here.miscalibration, rel=1e-9)
    assert moved.miscalibration <= moved.promised


@pytest.mark.parametrize("seed", [0, 5, 9])
def test_labels_part_after_hundreds_of_rounds_and_either_stream_keeps_its_promise(seed: int) -> None:
    """Calibration of labels has rounds in which two forecasts are both right, and rounding decides which is played."""
    rng = np.random.default_rng(seed)
    labels = ["home", "draw", "away"]
    here, moved = (oc.Recalibrator(oc.Labels(labels)) for _ in range(2))
    total = moved.engine.ledger.total  # type: ignore[attr-defined]
    rows = rng.dirichlet(np.full(3, 2.0), 400)
    outcomes = [str(rng.choice(labels, p=0.5 * row + 0.5 / 3)) for row in rows]
    apart = []
    for t, (row, y) in enumerate(zip(rows, outcomes, strict=True)):
        if t == 50:
            total *= 1.0 + 1e-13 * rng.normal(size=total.shape)  # as another processor would have rounded
        one, other = here.predict(row), moved.predict(row)
        assert one.certificate.holds
        assert other.certificate.holds
        apart.append(float(np.abs(np.asarray(one.mass) - other.mass).max()))
        for recal in (here, moved):
            recal.update(y)
            assert recal.guarantee.miscalibration <= recal.guarantee.promised
    assert max(apart[:50]) == 0.0
    assert apart[50] < 1e-12
    assert max(apart) > 1e-6  # if it is not so any more, the page about states says too little for labels
    assert moved.guarantee.promised == pytest.approx(here.guarantee.promised, rel=0.01)


def write() -> None:
    """Both files; the expert is biased and too sure, so that there is something to recalibrate."""
    rng = np.random.default_rng(15)
    mean = 50 + 25 * np.sin(np.arange(ROUNDS) / 5)
    y = np.clip(mean + 4 + rng.normal(0, 9, ROUNDS), 0, 100)
    rows = np.column_stack((mean, 4 + 2 * rng.random(ROUNDS), y)).round(3).tolist()
    recal = until_saved(rows)
    GOLDEN.mkdir(exist_ok=True)
    recal.save(STATE)
    answers = play(recal, rows, SAVED + 1, ROUNDS)
    text = json.dumps({"rows": rows, "answers": answers})
    ANSWERS.write_text(text.replace("], ", "],\n") + "\n")


if __name__ == "__main__":
    write()
