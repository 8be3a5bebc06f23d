"""The report: its numbers are the evidence's, its names are harmless, its size is bounded, and all can read it."""

import dataclasses
import itertools
import re
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from helpers import SENTENCE
from orcast import evidence as facts
from orcast import report
from orcast.evidence import Evidence
from orcast.report.axes import Scale, around, ticks, time_axis
from orcast.report.style import SHEET
from orcast.report.svg import area, line
from orcast.report.text import clean, name, number, percent, shortened
from pages import LEVELS, NASTY, Node, Page, binary, cells, check_page, labels, one_series, panel, tags, value

ALL = {
    "one series": one_series,
    "a panel": panel,
    "a check": lambda: one_series(after=False),
    "a panel, checked": lambda: panel(after=False),
    "binary": binary,
    "binary, checked": lambda: binary(after=False),
    "labels": labels,
}


def read(*evidences: Evidence, **options: str) -> Page:
    page = Page(report.html(list(evidences), **options))
    check_page(page)
    return page


def section(page: Page, title: str) -> Node:
    """The figure or part under a title."""
    for node in [*page.top.all("figure"), *page.top.all("section")]:
        if node.all("h3")[0].text == title:
            return node
    raise AssertionError(f"no {title!r} in {[node.text for node in page.top.all('h3')]}")


def titles(page: Page) -> list[str]:
    return [node.text for node in page.top.all("h3")]


# --- what is shown, and in which order ---


def test_the_verdict_comes_first_then_the_sections_in_their_order() -> None:
    evidence = one_series()
    page = read(evidence, source="wind.csv")
    words = page.top.all("body")[0].text
    sentences = facts.verdict(evidence)
    places = [words.index(sentence) for sentence in sentences]
    assert places == sorted(places)
    assert places[-1] < words.index("90% interval covered", places[-1])
    assert titles(page) == [
        "Where in the forecast the outcomes fell",
        "Reliability of the quantiles",
        "Coverage over time",
        "Recent forecasts",
        "Sharpness",
        "Scores",
        "Miscalibration and the promise",
    ]
    assert "wind.csv" in words
    assert "net" in words


def test_a_check_shows_before_only() -> None:
    for evidence in (one_series(after=False), panel(after=False), binary(after=False)):
        page = read(evidence)
        assert "ecalibrated" not in page.top.all("main")[0].text.replace("recalibrated after", "")
        assert "Miscalibration and the promise" not in titles(page)
        assert "→" not in page.top.all("main")[0].text
        assert 'class="bar after"' not in page.source


def test_several_models_have_a_summary_first_and_a_section_each() -> None:
    given = [one_series(), panel(), binary()]
    page = read(*given)
    assert titles(page)[0] == "All models"
    rows = cells(section(page, "All models").all("table")[0])
    assert [row[0] for row in rows] == ["net", "tree", "rain"]
    covered = [facts.coverage(given[0], 0.9, side) for side in ("before", "after")]
    assert rows[0][2] == f"90% interval: {percent(covered[0])} → {percent(covered[1])}"
    assert rows[2][2] == "\u2013"
    assert [node.text for node in page.top.all("h2")] == ["net", "tree", "rain"]
    targets = [node.attrs["id"] for node in page.top.all("h2")]
    assert [f"#{target}" for target in targets] == [node.attrs["href"] for node in page.top.all("a")]


# --- the numbers are the evidence's ---


def two(text: str) -> list[float]:
    return [value(part) for part in text.split(" → ")]


def test_pit_bars() -> None:
    evidence = one_series()
    figure = section(read(evidence), "Where in the forecast the outcomes fell")
    found = {side: facts.pit(evidence, side) for side in evidence.sides}
    # the bars' heights are to one another as the densities, in both panels
    heights = []
    for svg, side in zip(figure.all("svg", "chart"), evidence.sides, strict=True):
        bars = svg.all("path", "bar")
        assert len(bars) == found[side].shares.size
        heights.append([1000 - min(float(y) for _, y in corners(bar)) for bar in bars])
    densities = np.concatenate([found[side].density for side in evidence.sides])
    drawn = np.concatenate(heights)
    np.testing.assert_allclose(drawn / drawn.max(), densities / densities.max(), atol=2e-3)
    assert f"As given: {found['before'].outside} of {found['before'].shares.size} beyond chance" in figure.text


def corners(node: Node) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in re.findall(r"[ML](\S+?) ([^MLhZ]+)", node.attrs["d"])]


def test_reliability_lines() -> None:
    evidence = one_series()
    figure = section(read(evidence), "Reliability of the quantiles")
    drawn = figure.all("svg", "chart")[0]
    for side in evidence.sides:
        found = facts.reliability(evidence, side)
        lines = [node for node in drawn.all("path", "line") if side in node.attrs["class"].split()]
        expected = np.column_stack((1000 * found.nominal, 1000 - 1000 * found.frequency))
        np.testing.assert_allclose(corners(lines[0]), expected, atol=0.051)
        assert f"{found.outside} of {LEVELS.size}" in figure.all("figcaption")[0].text


def test_the_fan_shows_the_worst_series() -> None:
    evidence = panel(after=False)
    figure = section(read(evidence), "Recent forecasts")
    worst = facts.by_series(evidence).names[0]
    assert f"Series {worst}, the worst of 3" in figure.text


def test_scores_with_differences_and_their_uncertainty() -> None:
    for evidence in (one_series(), panel(), binary(), labels()):
        rows = cells(section(read(evidence), "Scores").all("table")[0])
        found = facts.scores(evidence)
        assert len(rows) == len(found)
        for row, score in zip(rows, found, strict=True):
            assert row[0].lower() == score.name.lower()
            assert value(row[1]) == pytest.approx(score.before, rel=1e-3, abs=5.1e-4 * (score.form == "percent"))
            assert score.after is not None
            assert value(row[2]) == pytest.approx(score.after, rel=1e-3, abs=5.1e-4 * (score.form == "percent"))
            assert value(row[3]) == pytest.approx(
                (score.after - score.before) * (100 if row[3].endswith("points") else 1), rel=5.1e-3, abs=5.1e-2
            )
        assert found[-1].low is not None
        assert found[-1].high is not None
        assert [value(end) for end in rows[-1][4].split(" to ")] == pytest.approx(
            [found[-1].low, found[-1].high], rel=5.1e-3
        )


@pytest.mark.parametrize("make", [lambda: one_series(3000), lambda: panel(tuple("abcdefgh"), 200)])
@pytest.mark.parametrize("row", [0, 7, 1234])
def test_a_promise_broken_once_is_not_thinned_away(make: object, row: int) -> None:
    evidence = make()  # type: ignore[operator]
    happened = evidence.miscalibration.copy()
    happened[row] = 1.5 * evidence.promised[row]
    broken = dataclasses.replace(evidence, miscalibration=happened)
    found = facts.promise_check(broken)
    assert found is not None
    assert found.kept == found.rows - 1
    assert np.count_nonzero(found.miscalibration > found.promised) == 1
    assert (
        f"not kept after 1 of {evidence.rows:,} outcomes"
        in section(read(broken), "Miscalibration and the promise").text
    )


def test_series_by_series_the_worst_first() -> None:
    evidence = panel(tuple(f"s{i:02d}" for i in range(30)))
    part = section(read(evidence), "Series by series")
    rows = [row for table in part.all("table") for row in cells(table)]
    found = facts.by_series(evidence)
    assert [row[0] for row in rows] == list(found.names)
    assert found.coverage_before is not None
    assert found.coverage_after is not None
    assert found.error_after is not None
    np.testing.assert_allclose(
        [two(row[3]) for row in rows], np.column_stack((found.coverage_before, found.coverage_after)), atol=5.1e-4
    )
    np.testing.assert_allclose([two(row[4])[1] for row in rows], found.error_after, rtol=5e-2, atol=5.1e-5)
    assert "Series by series" not in titles(read(one_series()))


def test_the_key_numbers() -> None:
    evidence = one_series()
    tiles = {node.all("dt")[0].text: node.all("dd")[0].text for node in read(evidence).top.all("dl")[0].all("div")}
    before, after = (facts.coverage(evidence, 0.9, side) for side in evidence.sides)
    assert tiles["90% interval covered"].startswith(f"{percent(before)} → {percent(after)}")
    change = facts.difference(evidence)
    assert change is not None
    assert percent(change.relative, sign=True) in tiles["Pinball loss"]
    assert evidence.promised is not None
    assert f"promised at most {number(evidence.promised[-1])}" in tiles["Miscalibration at the end"]


# --- everyone can read it ---


@pytest.mark.parametrize("kind", ALL)
def test_each_picture_has_a_title(kind: str) -> None:
    page = read(ALL[kind]())
    figures = page.top.all("figure")
    assert figures
    for figure in figures:
        assert figure.all("h3")[0].text
        charts = figure.all("svg", "chart")
        assert charts
        for svg in charts:
            assert svg.attrs["role"] == "img"
            assert svg.attrs["aria-label"]
            assert svg.inside[0].tag == "title"
            assert svg.inside[0].texts[0] == svg.attrs["aria-label"]
            assert [mark for mark in svg.all("path") if mark.attrs["d"]]
    for table in page.top.all("table"):
        assert all(cell.attrs["scope"] for cell in table.all("th"))
    assert page.top.all("html")[0].attrs["lang"] == "en"
    ids = [node.attrs["id"] for node in tags(page.top) if "id" in node.attrs]
    assert len(ids) == len(set(ids))


def colours(sheet: str, which: int) -> dict[str, str]:
    """The variables of the light (0) and the dark (1) page."""
    blocks = re.findall(r"--paper:[^}]*?--outcome:#\w+", sheet, re.S)
    return dict(re.findall(r"--(\w+):(#\w{6})", blocks[which]))


def luminance(colour: str) -> float:
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("which", [0, 1])
def test_colours_have_contrast_and_are_told_apart_in_grey(which: int) -> None:
    own = {what: luminance(colour) for what, colour in colours(SHEET, which).items()}

    def contrast(a: str, b: str) -> float:
        high, low = max(own[a], own[b]), min(own[a], own[b])
        return (high + 0.05) / (low + 0.05)

    assert contrast("ink", "paper") >= 7.0
    assert contrast("soft", "paper") >= 4.5
    assert contrast("before", "paper") >= 3.0
    assert contrast("after", "paper") >= 3.0
    assert contrast("before", "after") >= 2.0


# --- harmless names, any shape ---


def test_nasty_names_are_text() -> None:
    evidence = dataclasses.replace(panel(NASTY, 20), model=NASTY[0])
    page = read(evidence, title=NASTY[1], source=NASTY[2])
    words = page.top.all("body")[0].text
    for nasty in NASTY[:4]:
        assert nasty in words
    assert "(no name)" in words
    assert words.count("…") >= 1
    assert len(page.source) < 300_000
    page.source.encode("utf-8")
    listed = [cells(table) for table in section(page, "Series by series").all("table")]
    assert sum(map(len, listed)) == len(NASTY)


def test_nasty_labels_times_and_models() -> None:
    evidence = labels(("<script>x</script>", "\"'>", "b" * 3000))
    read(evidence, dataclasses.replace(evidence, model=NASTY[1]))
    times = np.array([f"<i>{i}</i>" + "t" * 500 for i in range(400)])
    page = read(dataclasses.replace(one_series(), time=times))
    assert "<i>399</i>" in page.top.text
    assert len(page.source) < 700_000


@given(st.text(max_size=80))
def test_any_text_is_harmless(text: str) -> None:
    for safe in (name(text), name(text, limit=12)):
        page = Page(safe)
        assert [node.tag for node in tags(page.top)] == ["bdi"]
        shown = page.top.text
        assert shown in ("(no name)", " ".join(shortened(text).split()), " ".join(shortened(text, 12).split()))
    clean(text).encode("utf-8")


@st.composite
def odd_evidence(draw: st.DrawFn) -> Evidence:
    """Few rows, ties, equal quantiles, huge and tiny numbers, one level or several."""
    rows = draw(st.integers(0, 12))
    at = draw(st.sampled_from([[0.5], [0.1, 0.9], [0.1, 0.5], [0.05, 0.25, 0.5, 0.75, 0.95], [0.9]]))
    values = st.sampled_from([0.0, 1.0, -1.0, 1e-12, 1e12, -3.5])
    q = np.sort(draw(hnp.arrays(float, (rows, len(at)), elements=values)), axis=1)
    y = draw(hnp.arrays(float, rows, elements=values))
    after = np.sort(draw(hnp.arrays(float, (rows, len(at)), elements=values)), axis=1) if draw(st.booleans()) else None
    sizes = st.sampled_from([0.0, 1e-9, 0.5, np.nan])
    promise = {}
    if after is not None and draw(st.booleans()):
        promise = {
            "promised": draw(hnp.arrays(float, rows, elements=sizes)),
            "miscalibration": draw(hnp.arrays(float, rows, elements=sizes)),
        }
    series = None
    if rows and draw(st.booleans()):
        series = draw(st.lists(st.sampled_from("ab"), min_size=rows, max_size=rows))
    kinds = [None, np.arange(rows), np.full(rows, 7.0), np.datetime64("2024-01-01") + np.arange(rows) % 5]
    time = draw(st.sampled_from([*kinds, np.array([f"t{i}" for i in range(rows)])]))
    return Evidence.of(q, y, after=after, levels=at, series=series, time=time, **promise)


@given(odd_evidence())
@settings(max_examples=60)
def test_any_evidence_can_be_shown(evidence: Evidence) -> None:
    page = read(evidence)
    assert not re.search(r"\bnan\b|\binf\b", page.top.all("main")[0].text.lower())


@given(hnp.arrays(float, st.integers(0, 8), elements=st.sampled_from([0.0, 1.0, 0.5, 0.1])), st.booleans())
def test_any_probabilities_can_be_shown(p: np.ndarray, after: bool) -> None:
    y = (np.arange(p.size) % 2).astype(float)
    page = read(Evidence.of(p, y, after=p if after else None))
    assert not re.search(r"\bnan\b|\binf\b", page.top.all("main")[0].text.lower())


def test_nothing_yet() -> None:
    empty = Evidence.of(np.empty((0, 2)), [], levels=[0.1, 0.9], pending=3)
    page = read(empty)
    assert facts.verdict(empty)[0] in page.top.text
    assert page.top.all("figure") == []
    assert "There are no forecasts to judge." in read().top.text
    read(empty, one_series())


def test_the_page_stays_small() -> None:
    many = panel(tuple(f"series number {i}" for i in range(4000)), 50)
    page = read(many)
    assert len(page.source) < 300_000
    assert "The 50 worst of 4,000 series are shown" in page.top.text
    long = one_series(200_000)
    page = read(long)
    assert len(page.source) < 300_000
    for node in page.top.all("path"):
        assert len(re.findall("[ML]", node.attrs["d"])) <= 410
    assert "The last 120 of 200,000 outcomes." in page.top.text


# --- writing ---


def test_write(tmp_path: Path) -> None:
    evidence = labels(("home", "draw", "äußerst"))
    report.write(tmp_path / "r.html", [evidence], title="t", source="s")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == report.html([evidence], title="t", source="s")
    with pytest.raises(TypeError, match=SENTENCE):
        report.html(["no evidence"])  # type: ignore[list-item]


# --- axes ---


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_ticks_are_few_round_and_apart(low: float, span: float) -> None:
    high = low + span
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        return
    scale = Scale(low, high)
    found = ticks(scale, most=6)
    places = [float(scale.place(tick.value)) for tick in found]
    assert places == sorted(places)
    assert 2 <= len(found) <= 8
    assert all(0.0 <= place <= 1.0 for place in places)


@given(st.floats(1e-9, 1e3), st.floats(1.5, 1e12))
def test_logarithmic_ticks(low: float, ratio: float) -> None:
    found = ticks(Scale(low, low * ratio, log=True), most=6)
    assert 1 <= len(found) <= 10
    assert len({tick.text for tick in found}) == len(found)


@pytest.mark.parametrize(
    ("step", "rows"),
    [("s", 30), ("m", 90), ("h", 60), ("h", 5000), ("D", 3), ("D", 400), ("W", 30), ("M", 8), ("Y", 300)],
)
def test_dates_are_round(step: str, rows: int) -> None:
    values = (np.datetime64("2023-11-28", step) + np.arange(rows)).astype("datetime64[ns]")
    axis, x = time_axis(values)
    found = axis.ticks
    assert 1 <= len(found) <= 6
    assert [tick.value for tick in found] == sorted(tick.value for tick in found)
    assert x.min() <= found[0].value <= found[-1].value <= x.max()
    assert all(a.text != b.text for a, b in itertools.pairwise(found))


def test_lines_have_gaps_where_there_is_nothing() -> None:
    assert line([0.0, 0.5, 1.0], [0.0, np.nan, 1.0]) == "M0 1000M1000 0"
    assert area([0.0], [np.nan], [1.0]) == ""
    assert around([np.nan]) == Scale(0.0, 1.0)


# --- groups, where a gain comes from, what is assumed ---


def grouped(*, after: bool = True) -> Evidence:
    """One series at two horizons, the first of which gains and the second loses."""
    rng = np.random.default_rng(11)
    y, step = rng.normal(size=800), np.arange(800) % 2
    q = np.tile(np.array([-1.64, -0.67, 0.0, 0.67, 1.64]), (800, 1))
    narrow = np.where((step == 0)[:, None], q / 3, q)
    rest: dict[str, Any] = {"after": np.where((step == 1)[:, None], q / 3, q)} if after else {}
    return Evidence.of(
        narrow,
        y,
        levels=[0.05, 0.25, 0.5, 0.75, 0.95],
        by=(facts.Grouping("horizon", step, ("1", "<b>2</b>")),),
        horizon=step + 1.0,
        reference=facts.Reference(np.append(np.nan, y[:-1]), np.full(800, 1.4)),
        **rest,
    )


def test_horizons_side_by_side() -> None:
    evidence = grouped()
    page = read(evidence)
    check_page(page)
    figure = section(page, "By horizon")
    table = facts.by_group(evidence, evidence.by[0])
    rows = cells(figure.all("table")[0])
    assert [row[0] for row in rows] == ["1", "<b>2</b>"]
    assert table.relative is not None
    for k, row in enumerate(rows):
        assert row[1] == f"{int(table.rows[k]):,}"
        assert value(row[5]) == pytest.approx(table.relative[k], abs=0.0006)
    assert "the loss fell beyond chance for 1 and rose for 1" in figure.text
    assert len([svg for svg in figure.all("svg") if "chart" in svg.attrs.get("class", "")]) == 2
    assert "By horizon pinball loss fell for 1 (" in page.top.text
    alone = section(read(grouped(after=False)), "By horizon")
    assert len([svg for svg in alone.all("svg") if "chart" in svg.attrs.get("class", "")]) == 1
