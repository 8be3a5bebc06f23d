"""Caps: nothing is allocated for what exceeds them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import orcast as oc
from helpers import SENTENCE
from orcast import limits
from orcast.limits import LIMITS
from orcast.stream.session import Session

MANY = 10**12  # what would not fit any memory if it were made
TOO_MUCH: dict[str, Callable[[], Any]] = {
    "labels": lambda: oc.Labels(map(str, itertools.count())),
    "cells of a circle": lambda: oc.Circle(360, cells=MANY),
    "cells of a box": lambda: oc.Box([(0, 1)] * 3, cells=4000),
    "sides of a box": lambda: oc.Box(itertools.repeat((0, 1))),
    "levels of a forecast": lambda: oc.Quantiles([(i + 1) / 20_001 for i in range(20_000)], range(20_000)),
    "levels of a payoff": lambda: oc.QuantileCalibration(itertools.count()),
    "values of a context": lambda: oc.by("hour", values=range(MANY)),
    "edges of a context": lambda: oc.by("hour", edges=itertools.count()),
    "pairs of groups": lambda: oc.by("a", values=range(5000)) * oc.by("b", values=range(5000)),
    "coordinates": lambda: oc.Recalibrator(
        oc.Labels(map(str, range(4000))), oc.LabelCalibration(context=oc.by("a", values=range(9000)))
    ),
    "pending rounds": lambda: oc.Recalibrator(max_pending=MANY),
    "experts": lambda: oc.Recalibrator().predict(experts={str(i): oc.Normal(0, 1) for i in range(1001)}),
    "characters in an id": lambda: Session().answer(b'{"id": "%b", "forecast": {"p": 0.5}}' % (b"x" * 20_000)),
}


@pytest.mark.parametrize("name", asdict(LIMITS))
def test_a_cap_itself_is_allowed(name: str) -> None:
    most = getattr(LIMITS, name)
    limits.check(name, most)
    with pytest.raises(ValueError, match=f"expected at most {most} .*, got {most + 1}"):
        limits.check(name, most + 1)


@pytest.mark.parametrize("what", TOO_MUCH)
def test_too_much_is_refused_in_a_sentence(what: str) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        TOO_MUCH[what]()


def test_cap_may_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "labels", 5000)
    assert oc.Labels(map(str, range(5000))).cells == 5000


def test_every_cap_is_in_the_table_of_the_documentation() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "limits.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+)", page, flags=re.MULTILINE))
    assert {name: int(most.replace(",", "")) for name, most in rows.items()} == asdict(limits.Limits())
