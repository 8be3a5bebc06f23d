"""The pictures for notebooks: they draw the evidence's numbers on the axes they are given, and give them back."""

import dataclasses
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

from helpers import SENTENCE
from orcast import evidence as facts
from orcast import plots
from orcast.evidence import Evidence
from orcast.report import pictures, svg
from pages import Page, binary, labels, one_series, panel

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

DRAW: dict[str, Callable[..., Axes]] = {
    "pit": plots.pit,
    "reliability": plots.reliability,
    "rolling": plots.rolling,
    "fan": plots.fan,
    "sharpness": plots.sharpness,
    "guarantee": plots.guarantee,
}


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    yield
    pyplot.close("all")


def blank() -> Axes:
    return Figure().add_subplot()


def line(axes: Axes, label: str) -> Any:
    (found,) = [each for each in axes.get_lines() if each.get_label() == label]
    return found


def drawn(axes: Axes) -> None:
    """All of it can be drawn; warnings are errors."""
    axes.get_figure().savefig(io.BytesIO(), format="png")  # type: ignore[union-attr]


@pytest.mark.parametrize("name", DRAW)
@pytest.mark.parametrize("make", [one_series, panel])
def test_axes_in_and_out(name: str, make: Callable[[], Evidence]) -> None:
    axes = blank()
    assert DRAW[name](make(), axes) is axes
    assert axes.get_title()
    assert axes.get_legend() is not None
    drawn(axes)
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("name", ["pit", "reliability", "rolling", "fan", "sharpness"])
def test_a_check_has_no_after(name: str) -> None:
    axes = DRAW[name](one_series(after=False), blank())
    assert "recalibrated" not in " ".join(axes.get_legend_handles_labels()[1])
    drawn(axes)


def test_pit_draws_the_densities() -> None:
    evidence = one_series()
    axes = plots.pit(evidence, blank())
    for name, side in (("as given", "before"), ("recalibrated", "after")):
        found = facts.pit(evidence, side)
        np.testing.assert_array_equal(line(axes, name).get_ydata(), np.repeat(found.density, 2))
        np.testing.assert_array_equal(line(axes, name).get_xdata(), np.repeat(found.edges, 2)[1:-1])
        assert f"{found.outside} of {found.shares.size}" in axes.get_title()


def test_rolling_draws_the_coverage() -> None:
    evidence = one_series()
    axes = plots.rolling(evidence, blank(), share=0.5, window=40)
    found = facts.rolling(evidence, 0.5, window=40)
    np.testing.assert_array_equal(line(axes, "as given").get_ydata(), found.before)
    np.testing.assert_array_equal(line(axes, "recalibrated").get_ydata(), found.after)
    assert "last 40 outcomes in the 50% interval" in axes.get_title()


def test_fan_draws_the_last_rows_of_the_worst_or_the_named_series() -> None:
    evidence = panel()
    worst = facts.by_series(evidence).names[0]
    for name, wanted in ((None, worst), ("a", "a")):
        axes = plots.fan(evidence, blank(), series=name, last=20)
        mine = evidence.y[evidence.series == evidence.names.index(wanted)]
        np.testing.assert_array_equal(line(axes, "outcome").get_ydata(), mine[-20:])
        assert axes.get_title().startswith(f"{wanted}: the last 20 of 60")
    with pytest.raises(ValueError, match=SENTENCE):
        plots.fan(evidence, blank(), series="nobody")
    axes = plots.fan(one_series(), blank(), share=0.8)
    assert "80% interval recalibrated" in axes.get_legend_handles_labels()[1]
    with pytest.raises(ValueError, match=SENTENCE):
        plots.fan(one_series(), blank(), share=0.77)


def test_sharpness_draws_the_mean_widths() -> None:
    evidence = one_series()
    axes = plots.sharpness(evidence, blank())
    heights = [bar.get_height() for bars in axes.containers for bar in bars]  # type: ignore[union-attr]
    expected = [
        facts.width(evidence, share, side) for side in evidence.sides for share in facts.widths(evidence).shares
    ]
    assert heights == pytest.approx(expected)


def test_guarantee_draws_the_promise_above_the_miscalibration() -> None:
    evidence = one_series(1000)
    axes = plots.guarantee(evidence, blank())
    promised, happened = line(axes, "promised at most"), line(axes, "recalibrated")
    assert evidence.promised is not None
    for x, y in promised.get_xydata():
        assert y == evidence.promised[int(x) - 1]
    assert (happened.get_ydata() <= promised.get_ydata()).all()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    low, high = axes.get_ylim()
    assert low < happened.get_ydata().min()
    assert high > promised.get_ydata().max()


def test_names_are_not_read_as_formulas() -> None:
    axes = plots.fan(panel((r"$\frac{$", "b")), blank(), series=r"$\frac{$")
    drawn(axes)
    assert "frac" in axes.get_title()


# --- together ---


def test_the_overview_of_a_stream() -> None:
    rng = np.random.default_rng(0)
    q = np.tile(levels := np.arange(1, 100) / 100, (300, 1))
    size = 1 / np.sqrt(np.arange(1, 301))
    promise = {"promised": 5 * size, "miscalibration": size}
    evidence = Evidence.of(
        0.3 + 0.4 * q, rng.random(300), after=q, levels=levels, model="a $name", low=0, high=1, **promise
    )
    figure = plots.overview(evidence, unit="MW", last=50)
    top, left, right = figure.axes
    assert top.get_title("left").startswith("a \\$name\nAs given: ")
    assert top.get_ylabel() == "MW"
    assert line(top, "outcome").get_ydata().size == 50
    assert "Bins" in left.get_title("left")
    assert "kept after every outcome" in right.get_title("left")
    figure.savefig(io.BytesIO(), format="png")
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("make", [one_series, panel, binary, labels])
def test_the_page_and_matplotlib_draw_the_same_numbers(make: Callable[[], Evidence]) -> None:
    """Lines of the page, read back from its SVG, are those on the axes."""
    evidence = make()
    picture = pictures.reliability(evidence)
    axes = plots.reliability(evidence, blank())
    page = Page(svg.draw(picture))
    for mark in picture.marks:
        if mark.shape != "line" or not mark.label:
            continue
        drawn_line = line(axes, mark.label).get_xydata()
        (node,) = [n for n in page.top.all("path", "line") if mark.role in n.attrs["class"].split()]
        found = np.array([p.split(" ") for p in re.split("[ML]", node.attrs["d"])[1:]], dtype=float) / 1000
        np.testing.assert_allclose(np.column_stack((found[:, 0], 1 - found[:, 1])), drawn_line, atol=1e-4)
    assert axes.get_xlabel() == picture.x.label
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [tick.text for tick in picture.x.ticks]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [m.label for m in pictures.legend(picture)]  # type: ignore[union-attr]


def test_groups_side_by_side() -> None:
    evidence = one_series()
    hours = facts.Grouping("hour", np.arange(evidence.rows) % 3, ("0", "8", "16"))
    both = dataclasses.replace(evidence, by=(hours,))
    table = facts.by_group(both, hours)
    axes = plots.groups(both, blank())
    assert table.relative is not None
    np.testing.assert_allclose(line(axes, "change of the loss").get_ydata(), table.relative)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "8", "16"]
    drawn(axes)
    alone = plots.groups(dataclasses.replace(both, after=None), blank(), by="hour")
    assert table.coverage_before is not None
    np.testing.assert_allclose(line(alone, "as given").get_ydata(), table.coverage_before)
    with pytest.raises(ValueError, match=r"expected a way to group the rows that the evidence has \(hour\), got 'day'"):
        plots.groups(both, blank(), by="day")
