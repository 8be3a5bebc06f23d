"""What forecasts and recalibrators show in a notebook: right numbers, safe text, no state touched."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import forecasts
from orcast.plots.text import number, percent
from orcast.report.notebook import forecast_html
from pages import NASTY, Page, tags


def shown(obj: Any) -> Page:
    page = Page(obj._repr_html_())
    allowed = {"div", "table", "tbody", "tr", "th", "td", "bdi"}
    assert {node.tag for node in tags(page.top)} <= allowed
    assert not any(name.startswith("on") or name in ("href", "src") for node in tags(page.top) for name in node.attrs)
    assert not re.search(r"\b(nan|inf)\b", page.top.text)
    return page


def test_a_quantity_shows_its_numbers_and_its_certificate() -> None:
    recal = oc.Recalibrator(oc.Interval(0, 10))
    p = recal.predict(oc.Normal(4, 1))
    text = shown(p).top.text
    low, high = p.interval(0.9)
    for part in (number(p.median()), f"{number(low)} to {number(high)}", number(p.mean()), number(p.std())):
        assert part in text
    assert "The certificate holds" in text
    assert "certificate" not in shown(oc.Forecast([0.0], [1.0], [1.0])).top.text


@given(forecasts())
def test_any_forecast_can_be_shown(p: oc.Forecast) -> None:
    shown(p)


def test_open_ends_atoms_and_tiny_scales_can_be_shown() -> None:
    shown(oc.Recalibrator().predict(oc.Normal(0, 1e-9)))
    shown(oc.Recalibrator().predict(oc.Normal(1e300, 1e290)))
    shown(oc.Forecast([2.0], [2.0], [1.0]))
    shown(oc.Forecast([None, 0.0], [0.0, 1.0], [0.9, 0.1]))


def test_finite_forecasts() -> None:
    assert percent(0.7, decimals=2) in shown(oc.forecasts.BinaryForecast(0.7)).top.text
    circle = oc.forecasts.CircleForecast(oc.Circle(360, cells=4), [0.5, 0.0, 0.0, 0.5])
    assert number(circle.std()) in shown(circle).top.text
    assert "no length" not in shown(oc.forecasts.CircleForecast(oc.Circle(360, cells=4), [0.25] * 4)).top.text
    box = oc.forecasts.BoxForecast(oc.Box([(0, 1), (0, 10)], cells=2), [0.5, 0.0, 0.0, 0.5])
    assert "mean 5, standard deviation 2.887" in shown(box).top.text
    assert (
        "50.0%" in shown(oc.forecasts.PointsForecast(oc.Points([[0, 0], [0, 1], [1, 0]]), [0.5, 0.25, 0.25])).top.text
    )


def test_labels_are_escaped_and_few() -> None:
    labels = [*NASTY[:-1], *(f"label {i}" for i in range(30))]
    mass = np.ones(len(labels)) / len(labels)
    page = shown(oc.forecasts.LabelForecast(labels, mass))
    assert "<script>alert(1)</script>" in page.top.text  # as text, no tag of that name
    assert len(page.top.all("tr")) == 8
    assert f"and {len(labels) - 8} more labels" in page.top.text
    assert len(forecast_html(oc.forecasts.LabelForecast(labels, mass))) < 10_000


@pytest.mark.parametrize("make", [oc.Recalibrator, oc.Forecaster])
def test_a_game_shows_where_it_stands(make: Any) -> None:
    game = make(oc.Interval(0, 10))
    shown(game)
    for y in (3.0, 4.5, 5.0):
        game.predict(oc.Normal(4, 1))
        game.update(y)
    game.predict(oc.Normal(4, 1), id="<b>late</b>")
    before = repr(game.guarantee), game.pending
    text = shown(game).top.text
    assert (repr(game.guarantee), game.pending) == before
    g = game.guarantee
    for part in (number(g.miscalibration, digits=3), number(g.promised, digits=3), "<b>late</b>", "Interval"):
        assert part in text
