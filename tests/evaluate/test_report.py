"""The report: inert HTML, the decision first, numbers of the evaluation, harmless names, a bounded size."""

import dataclasses
import re
from pathlib import Path

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from orcast import evaluate as facts
from orcast.evaluate import Evaluation, plots, report
from orcast.evaluate.monitoring import alarms
from orcast.evaluate.report import STYLE
from orcast.evaluate.svg import number_axis
from pages import NASTY, Page, binary, cells, check_page, horizons, labels, one_series, panel, tags

ALL = {
    "one series": one_series,
    "a panel": panel,
    "horizons": horizons,
    "a check": lambda: one_series(after=False),
    "a panel, checked": lambda: panel(after=False),
    "binary": binary,
    "binary, checked": lambda: binary(after=False),
    "labels": labels,
}


def read(*evaluations: Evaluation, **options: str) -> Page:
    page = Page(report.html(list(evaluations), **options))
    check_page(page)
    return page


# --- contents


@pytest.mark.parametrize("kind", ALL)
def test_page_opens_with_decision_reasons_and_picture(kind: str) -> None:
    evaluation = ALL[kind]()
    page = read(evaluation, source="wind.csv")
    main = page.top.all("main")[0]
    assert [node.tag for node in main.inside[:3]] == ["p", "ul", "figure"]
    assert main.inside[0].text == facts.verdict(evaluation)[0]
    assert "wind.csv" in page.top.text
    for sentence in facts.verdict(evaluation):
        parts = sentence.rstrip(".").split(". ") if sentence.startswith("Alarms on") else [sentence]
        assert all(main.text.count(" ".join(part.split(": ", 1)[-1].split())) == 1 for part in parts)
    assert main.text.count("effective sample size") <= 1
    for figure in page.top.all("figure"):
        assert figure.all("h3")[0].text
        (svg,) = figure.all("svg", "chart")
        assert (svg.attrs["role"], svg.inside[0].tag) == ("img", "title")
        assert svg.inside[0].texts[0] == svg.attrs["aria-label"] != ""
        assert [mark for mark in svg.all("path") if mark.attrs["d"]]
    for table in page.top.all("table"):
        assert all(cell.attrs["scope"] for cell in table.all("th"))
    ids = [node.attrs["id"] for node in tags(page.top) if "id" in node.attrs]
    assert len(ids) == len(set(ids))


def test_table_of_horizons_counts_the_harmed_series() -> None:
    evaluation = horizons()
    page = read(evaluation)
    table = facts.by_horizon(evaluation)
    worse, many = table["worse"][1], table["series"][1]
    assert f"worse in {worse} of {many} series at horizon 2" in page.top.text
    rows = cells(page.top.all("table")[0])
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert rows[1][-1] == f"{worse} of {many}"


def test_several_models_have_a_line_and_a_section_each(tmp_path: Path) -> None:
    given = [one_series(), panel(), binary()]
    page = read(*given)
    assert [node.text for node in page.top.all("h2")] == ["net", "tree", "rain"]
    targets = [node.attrs["id"] for node in page.top.all("h2")]
    assert [f"#{target}" for target in targets] == [node.attrs["href"] for node in page.top.all("a")]
    report.write(tmp_path / "report.html", given)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page.source
    with pytest.raises(TypeError, match="expected a sequence of Evaluation"):
        report.html([1])  # type: ignore[list-item]
    empty = Evaluation.of(np.empty((0, 2)), [], levels=[0.1, 0.9], pending=3)
    nothing = read(empty)
    assert facts.verdict(empty)[0] in nothing.top.text
    assert nothing.top.all("figure") == []
    assert "No forecasts." in read().top.text


# --- everyone can read it ---


def colours(sheet: str, which: int) -> dict[str, str]:
    """The variables of the light (0) and the dark (1) page."""
    blocks = re.findall(r"--paper:[^}]*", sheet)
    return dict(re.findall(r"--(\w+):(#\w{6})", blocks[which]))


def luminance(colour: str) -> float:
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("which", [0, 1])
def test_colours_have_contrast_and_are_told_apart_in_grey(which: int) -> None:
    own = {what: luminance(colour) for what, colour in colours(STYLE, which).items()}

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
    evaluation = dataclasses.replace(panel(NASTY, 20), model=NASTY[0])
    page = read(evaluation, source=NASTY[2])
    words = page.top.all("body")[0].text
    for nasty in (NASTY[0], *NASTY[2:4]):
        assert nasty in words
    assert "(no name)" in words
    assert words.count("…") >= 1
    assert len(page.source) < 300_000
    page.source.encode("utf-8")
    assert len(cells(page.top.all("details")[0].all("table")[0])) == len(NASTY)


def test_nasty_labels_times_and_models() -> None:
    evaluation = labels(("<script>x</script>", "\"'>", "b" * 3000))
    read(evaluation, dataclasses.replace(evaluation, model=NASTY[1]))
    times = np.array([f"<i>{i}</i>" + "t" * 500 for i in range(400)])
    page = read(dataclasses.replace(one_series(), time=times))
    assert "&lt;i&gt;" in page.source
    assert len(page.source) < 300_000


@st.composite
def odd_evaluations(draw: st.DrawFn) -> Evaluation:
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
    if draw(st.integers(0, 4)) == 0:
        p = np.minimum(np.abs(q[:, 0]).round(2), 1.0)
        return Evaluation.of(p, (y > 0).astype(float), after=p if after is not None else None)
    return Evaluation.of(q, y, after=after, levels=at, series=series, time=time, **promise)


@given(odd_evaluations())
@settings(max_examples=60)
def test_any_evaluation_can_be_shown(evaluation: Evaluation) -> None:
    page = read(evaluation)
    assert not re.search(r"\bnan\b|\binf\b", page.top.all("main")[0].text.lower())


def test_the_page_stays_small() -> None:
    many = panel(tuple(f"series number {i}" for i in range(4000)), 50)
    page = read(many)
    assert len(page.source) < 300_000
    assert "the worst 50 of 4,000" in page.top.text
    long = one_series(50_000)
    page = read(long)
    assert len(page.source) < 300_000
    for node in page.top.all("path"):
        assert len(re.findall("[ML]", node.attrs["d"])) <= 410
    assert "Last 120 of 50,000 outcomes" in page.top.text


# --- writing ---


# --- pictures


@pytest.mark.parametrize("kind", ALL)
def test_pictures_are_files_of_their_own(kind: str, tmp_path: Path) -> None:
    evaluation = ALL[kind]()
    draw = plots.fan if evaluation.kind == "quantiles" else plots.reliability
    draw(evaluation).save(tmp_path / "picture.html")
    text = (tmp_path / "picture.html").read_text(encoding="utf-8")
    assert all(f"{name}:#" in text for name in set(re.findall(r"var\((--\w+)\)", text)) - {"--left", "--height"})
    Page(text)
    with pytest.raises(ValueError, match=r"expected a file name that ends in \.html"):
        draw(evaluation).save(tmp_path / "picture.png")


def test_fan_and_evidence_are_of_the_worst_series() -> None:
    evaluation = panel()
    picture = plots.fan(evaluation)
    worst = alarms(evaluation, "after")[0].name
    assert f"calibration of {worst} " in plots.evidence(evaluation).title
    assert picture.title.startswith(f"{worst}: last 60 of 60 outcomes")
    rows = np.flatnonzero(evaluation.series == evaluation.names.index(worst))
    assert evaluation.after is not None
    np.testing.assert_array_equal(picture.marks[0].y, evaluation.after[rows, -1])
    np.testing.assert_array_equal(picture.marks[0].base, evaluation.after[rows, 0])


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_on_the_axis(low: float, span: float) -> None:
    axis = number_axis("x", low, low + span)
    values = [value for value, _ in axis.ticks]
    assert len(values) <= 7
    assert all(low - 1e-6 * span <= value <= low + span * (1 + 1e-6) for value in values)
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize(("step", "rows"), [("m", 1), ("h", 30), ("D", 1000), ("W", 2)])
def test_time_ticks_are_few_and_distinct(step: str, rows: int) -> None:
    times = np.datetime64("2020-02-03", step) + np.arange(rows)
    ticks = plots.fan(Evaluation.of([[0.5]] * rows, np.zeros(rows), levels=[0.5], time=times)).x.ticks
    assert min(rows, 3) <= len(ticks) == len({text for _, text in ticks}) <= (3 if step in "mh" else 5)
    assert all(len(text) == (16 if step in "mh" and rows > 1 else 10) for _, text in ticks)


def test_ticks_within_a_minute_have_seconds_and_one_date() -> None:
    times = np.datetime64("2026-11-19T22:30:01", "us") + np.timedelta64(9, "s") * np.arange(5)
    axis = plots.time_axis(times)
    assert (axis.label, axis.ticks[0][1], axis.ticks[-1][1]) == ("time on 2026-11-19", "22:30:01", "22:30:37")
