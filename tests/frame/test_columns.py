"""Columns by their names: conventions, ambiguities, and the names of added columns."""

import re
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

import orcast as oc
from helpers import SENTENCE
from orcast.frame.names import CERTIFICATE, ColumnLayout, Form, find, level_of, readings, written_levels
from orcast.frame.reader import find_in, label_places

NIXTLA = ["unique_id", "ds", "cutoff", "y"]
TEXT = {"unique_id", "ds", "cutoff", "item_id", "timestamp", "series", "label"}


def seek(columns: list[Any], **rest: Any) -> ColumnLayout:
    numeric = [column for column in columns if column not in TEXT]
    return find(columns, numeric=numeric, **rest)


def shown(form: Form) -> tuple[Any, ...]:
    levels = None if form.levels is None else form.levels.tolist()
    return form.model, form.kind, form.columns, levels if levels is not None else form.labels


def added(form: Form, levels: Any) -> list[str]:
    return [*(out.name for out in form.outputs(levels)), *form.certificate.values()]


def refused(columns: list[Any], *words: str, **rest: Any) -> None:
    """One sentence with what was found and what settles it."""
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        seek(columns, **rest)
    for word in words:
        assert word in str(caught.value), str(caught.value)


# --- the conventions


def quantiles(model: str, columns: str, levels: str) -> tuple[Any, ...]:
    return model, "quantiles", tuple(columns.split()), [float(level) for level in levels.split()]


def nixtla(columns: str) -> list[Any]:
    return [*NIXTLA, *columns.split()]


# Columns, and the forms that are found in them.
FRAMES: dict[str, tuple[list[Any], list[tuple[Any, ...]]]] = {
    "statsforecast": (
        nixtla("ETS/BottomUp ETS/BottomUp-lo-90 ETS/BottomUp-lo-80 ETS/BottomUp-hi-80"),
        [
            quantiles(
                "ETS/BottomUp", "ETS/BottomUp-lo-90 ETS/BottomUp-lo-80 ETS/BottomUp ETS/BottomUp-hi-80", ".05 .1 .5 .9"
            )
        ],
    ),
    "several models with difficult names": (
        nixtla("LGBM-v2 LGBM-v2-lo-80.0 LGBM-v2-hi-80.0 my-lo-model my-lo-model-lo-97.5"),
        [
            quantiles("LGBM-v2", "LGBM-v2-lo-80.0 LGBM-v2 LGBM-v2-hi-80.0", ".1 .5 .9"),
            quantiles("my-lo-model", "my-lo-model-lo-97.5 my-lo-model", ".0125 .5"),
        ],
    ),
    "models whose names look like endings": (
        nixtla("n_q0.5 n_q0.5-lo-90 n_q0.5-hi-90 a-median a-median-lo-90 a-median-hi-90"),
        [
            quantiles("n_q0.5", "n_q0.5-lo-90 n_q0.5 n_q0.5-hi-90", ".05 .5 .95"),
            quantiles("a-median", "a-median-lo-90 a-median a-median-hi-90", ".05 .5 .95"),
        ],
    ),
    "neuralforecast": (
        nixtla("N-lo-80.0 N-median N-hi-80.0 K-ql0.1 K-ql0.9 L_ql0.25 L_ql0.75"),
        [
            quantiles("N", "N-lo-80.0 N-median N-hi-80.0", ".1 .5 .9"),
            quantiles("K", "K-ql0.1 K-ql0.9", ".1 .9"),
            quantiles("L", "L_ql0.25 L_ql0.75", ".25 .75"),
        ],
    ),
    "TimeGPT": (nixtla("T T-q-10 T-q-50 T-q-80"), [quantiles("T", "T-q-10 T-q-50 T-q-80", ".1 .5 .8")]),
    "darts": (["time", "y", "#P_q0.100", "#P_q0.900"], [quantiles("#P", "#P_q0.100 #P_q0.900", ".1 .9")]),
    "AutoGluon": (
        ["item_id", "timestamp", "target", "mean", "0.1", "0.5", "0.9"],
        [quantiles("", "0.1 0.5 0.9", ".1 .5 .9")],
    ),
    "R": (
        ["y", "Point Forecast", "Lo 80", "Hi 80"],
        [("", "quantiles", ("Lo 80", "Hi 80"), [0.1, 0.9])],
    ),
    "an ensemble's file": (
        ["valid_time", "obs", "ens10", "ens2", "ens1"],
        [("", "members", ("ens1", "ens2", "ens10"), None)],
    ),
    "numbers as labels": (["y", 0.1, np.float64(0.9), 7], [("", "quantiles", (0.1, 0.9), [0.1, 0.9])]),
    "quantiles": (["y", "q0.9", "quantile_0.5", "q_0.1"], [quantiles("", "q_0.1 quantile_0.5 q0.9", ".1 .5 .9")]),
    "OpenSTEF": (["y", "quantile_P10", "quantile_P90"], [quantiles("", "quantile_P10 quantile_P90", ".1 .9")]),
    "means and sds": (
        ["y", "sd", "mean", "A_mean", "A_std", "B-loc", "B-scale", "C", "C_sigma"],
        [
            ("", "normal", ("mean", "sd"), None),
            ("A", "normal", ("A_mean", "A_std"), None),
            ("B", "normal", ("B-loc", "B-scale"), None),
            ("C", "normal", ("C", "C_sigma"), None),
        ],
    ),
    "members": (
        ["y", "member_10", "member02", "member_1", "member_count", "M-sample-0", "M-sample-1"],
        [
            ("", "members", ("member_1", "member02", "member_10"), None),
            ("M", "members", ("M-sample-0", "M-sample-1"), None),
        ],
    ),
    "binary": (
        ["y", "p", "net_prob", "tree_probability"],
        [
            ("", "binary", ("p",), None),
            ("net", "binary", ("net_prob",), None),
            ("tree", "binary", ("tree_probability",), None),
        ],
    ),
    "labels by number": (["y", "p_0", "p_1", "p_2"], [("", "labels", ("p_0", "p_1", "p_2"), ("0", "1", "2"))]),
    "points": (
        [*NIXTLA, "Naive", "LGBM-v2"],
        [("Naive", "point", ("Naive",), None), ("LGBM-v2", "point", ("LGBM-v2",), None)],
    ),
}


@pytest.mark.parametrize("levels", [None, [0.01, 0.2, 0.5, 0.8]])
@pytest.mark.parametrize("case", FRAMES)
def test_conventions(case: str, levels: Any) -> None:
    """Forms are found, in any order of columns, and added columns are known as such in a second run."""
    columns, forms = FRAMES[case]
    layout = seek(columns)
    assert [shown(form) for form in layout.forms] == forms
    # labels have no order but that of the columns
    if case != "labels by number":
        assert sorted(shown(form) for form in seek(columns[::-1]).forms) == sorted(forms)
    made = [name for form in layout.forms for name in added(form, levels if form.ordered else None)]
    assert len(set(made)) == len(made)
    assert not set(made) & set(map(str, columns))
    assert layout.earlier(columns) == ()
    again = [*columns, *made]
    assert [shown(form) for form in seek(again).forms] == forms
    assert set(seek(again).earlier(again)) == set(made)
    for form in layout.forms:
        outs = form.outputs(levels if form.ordered else None)
        assert written_levels(form, again) == {out.level: out.name for out in outs if out.what == "quantile"}


def test_roles() -> None:
    layout = seek(["item_id", "Date", "issued", "lead", "actual", "q0.1", "q0.9"])
    found = layout.series, layout.time, layout.cutoff, layout.horizon, layout.y
    assert found == (("item_id",), "Date", "issued", "lead", "actual")
    told = {"y": "o", "series": ["a", "b"], "time": "t", "cutoff": "c", "horizon": "k"}
    named = seek(["a", "b", "t", "c", "k", "o", "q0.1", "q0.9"], **told)
    assert (named.series, named.time, named.cutoff, named.horizon, named.y) == (("a", "b"), "t", "c", "k", "o")
    none = seek(["y", "q0.1", "q0.9"])
    assert (none.series, none.time, none.cutoff, none.horizon) == ((), None, None, None)
    assert seek(["id", "y", "q0.1", "q0.9"], series=()).series == ()
    for outcome in ("obs", "observation", "target", "y_true"):
        assert seek([outcome, "q0.1", "q0.9"]).y == outcome
    weather = seek(["time", "step", "valid_time", "obs", "ens1", "ens2"])
    assert (weather.cutoff, weather.time, weather.horizon, weather.y) == ("time", "valid_time", "step", "obs")


def test_a_convention_settles_roles_that_others_could_have() -> None:
    layout = seek([*NIXTLA, "id", "date", "value", "target", "ETS", "ETS-lo-90", "ETS-hi-90"])
    assert (layout.series, layout.time, layout.y) == (("unique_id",), "ds", "y")
    assert [form.model for form in layout.forms] == ["ETS"]


def test_names_that_mean_nothing() -> None:
    assert [form.model for form in seek(nixtla("Naive index value h step"), horizon="h").forms] == ["Naive"]
    for text in [
        "M-lo-100",
        "M-hi-0",
        "q0.0",
        "q00",
        "q100",
        "lag_0.5",
        "sample_weight",
        "member_id",
        "p_",
        "median_x",
    ]:
        assert level_of(text) is None
        assert "member" not in readings(text)
    both = seek(nixtla("net_q0.1 net_q0.5 net_q0.9 net_q0.5-lo-90 net_q0.5-hi-90"))
    assert [shown(form)[3] for form in both.forms] == [[0.1, 0.5, 0.9], [0.05, 0.5, 0.95]]


def test_a_plain_column_is_the_median_or_the_mean() -> None:
    median = seek(nixtla("M M-lo-90 M-hi-90")).forms[0]
    assert "M" in median.columns
    assert median.mean is None
    for others in ("M-lo-90 M-median M-hi-90", "M_q0.1 M_q0.9"):
        form = seek(nixtla(f"M {others}")).forms[0]
        assert "M" not in form.columns
        assert [(out.name, out.column) for out in form.outputs() if out.what == "mean"] == [("M_orcast", "M")]
    assert seek(["y", "mean", "0.1", "0.9"]).forms[0].mean == "mean"
    assert seek(["y", "M", "M_mean", "M_q0.1", "M_q0.9"]).forms[0].mean == "M_mean"


# --- where it is not clear


REFUSED: list[tuple[str, dict[str, Any], list[str]]] = [
    ("y A B", {}, ["model=", "'A' and 'B'"]),
    ("temperature q0.1 q0.9", {}, ["y=", "'temperature'"]),
    ("y value q0.1 q0.9", {}, ["'y' and 'value'", "y="]),
    ("y id series q0.1 q0.9", {}, ["'id' and 'series'", "series="]),
    ("y q10 q90", {}, ["'q10' and 'q90'", "model="]),
    ("y q0.9", {}, ["'q0.9'", "model="]),
    ("unique_id ds cutoff y net net_lower net_upper", {}, ["'net_lower' and 'net_upper'", "model="]),
    ("unique_id ds y M_q10 M_q90", {}, ["'M_q10' and 'M_q90'", "model="]),
    ("y mean sd std", {}, ["'sd' and 'std'", "model="]),
    ("y M_q0.05 M-lo-90 M-hi-90", {}, ["of model 'M', got 'M_q0.05' and 'M-lo-90' for 0.05", "model="]),
    ("unique_id ds y A A-lo-90 A-hi-90 M_q0.05 M-lo-90 M-hi-90", {}, ["of model 'M', got 'M_q0.05' and 'M-lo-90'"]),
    ("unique_id ds y A A-lo-90 A-hi-90 temp_mean temp_std", {}, ["by model=, such as 'A'", "'temp'"]),
    ("y", {}, ["'MODEL-lo-90'"]),
    ("", {}, ["no columns"]),
    ("unique_id ds y A A-lo-90 A-hi-90", {"model": "B"}, ["'B'", "'A'"]),
    ("unique_id ds y A A-lo-90 A-hi-90", {"y": "o"}, ["'o'"]),
    ("unique_id ds y A A-lo-90 A-hi-90", {"series": ["unique_id", "unique_id"]}, ["different"]),
    ("unique_id ds y A A-lo-90 A-hi-90", {"y": "ds", "time": "ds"}, ["twice"]),
    ("unique_id ds y A A-lo-90 A-hi-90", {"model": []}, ["at least one"]),
    ("unique_id ds y A", {"model": {"A": "unique_id"}}, ["series or time"]),
    ("y A", {"model": {"B": {0.1: "A", 0.9: "A"}}}, ["'A' twice"]),
    ("y y q0.1", {}, ["twice"]),
]


@pytest.mark.parametrize(("columns", "options", "words"), REFUSED)
def test_doubts_are_said(columns: str, options: dict[str, Any], words: list[str]) -> None:
    refused(columns.split(), *words, **options)


def test_odd_labels_are_refused() -> None:
    refused(["y", "0.1", 0.1], "twice")
    refused([("y", ""), "q0.1"], "plain names")


# --- named and spelt out


def test_models_by_name() -> None:
    columns = nixtla("A A-lo-90 A-hi-90 B temp_mean temp_std x")
    assert [form.model for form in seek(columns, model=["temp", "A"]).forms] == ["temp", "A"]
    assert shown(seek(columns, model="B").forms[0]) == ("B", "point", ("B",), None)
    assert seek(["y", "q0.1", "q0.9", "A_q0.1", "A_q0.9"], model="").forms[0].columns == ("q0.1", "q0.9")


SPELT: list[tuple[Any, tuple[Any, ...], str]] = [
    ({0.9: "b", 0.1: "a"}, ("m", "quantiles", ("a", "b"), [0.1, 0.9]), "_q0.1 _q0.9"),
    ({0.1: "a", 0.9: "b", "mean": "c"}, ("m", "quantiles", ("a", "b"), [0.1, 0.9]), "_mean _q0.1 _q0.9"),
    ({"sd": "b", "mean": "a"}, ("m", "normal", ("a", "b"), None), "_mean _sd"),
    (["b", "a"], ("m", "members", ("b", "a"), None), "_member_1 _member_2"),
    ({"p": "a"}, ("m", "binary", ("a",), None), "_p"),
    ({"p_1": "b", "p_2": "a"}, ("m", "labels", ("b", "a"), ("1", "2")), "_p_1 _p_2"),
]


def test_models_spelt_out() -> None:
    columns = ["y", "a", "b", "c"]
    for parts, form, names in SPELT:
        found = seek(columns, model={"m": parts}).forms[0]
        assert shown(found) == form
        assert [out.name for out in found.outputs()] == [f"m_orcast{name}" for name in names.split()]
        assert all(out.column in found.columns for out in found.outputs() if out.place is not None)
    for bad in ({}, {0.1: "a"}, {1.5: "a", 0.1: "b"}, {"mean": "a"}, ["a"], {"p": "a", 0.1: "b"}, {10: "a", 90: "b"}):
        refused(columns, "'m'", model={"m": bad})
    refused(columns, "'z'", model={"m": "z"})


# --- added columns


ADDED: list[tuple[list[Any], Any, str]] = [
    (nixtla("A A-lo-90 A-hi-90"), [0.1, 0.9, 0.25], "A_:-lo-90 A_:-lo-80 A_:-lo-50 A_: A_:-hi-80 A_:-hi-90"),
    (nixtla("A-lo-80.0 A-hi-80.0"), [0.05, 0.5, 0.95], "A_:-lo-90 A_:-lo-80.0 A_:-median A_:-hi-80.0 A_:-hi-90"),
    (["y", "d_q0.100", "d_q0.900"], [0.25, 1 / 3], "d_:_q0.100 d_:_q0.25 d_:_q0.3333333333 d_:_q0.900"),
    (["y", "q0.1", "q0.9"], [0.25], ":_q0.1 :_q0.25 :_q0.9"),
    (["y", 0.1, 0.9], [0.25], ":_0.1 :_q0.25 :_0.9"),
    (["y", "lo-90", "hi-90"], [0.1, 0.9, 0.5], ":_lo-90 :_lo-80 :_median :_hi-80 :_hi-90"),
    (["y", "M_mean", "M_std"], [0.1], "M_:_mean M_:_std M_:_q0.1"),
    (["y", "M", "M_std"], None, "M_: M_:_std"),
    (["y", "member_2", "member_1"], None, ":_member_1 :_member_2"),
    (["y", "p"], None, ":_p"),
    ([*NIXTLA, "A"], None, "A_:-lo-95 A_:-lo-80 A_: A_:-hi-80 A_:-hi-95"),
    ([*NIXTLA, "A"], [0.9, 0.1], "A_:-lo-80 A_: A_:-hi-80"),
]


@pytest.mark.parametrize(("columns", "levels", "names"), ADDED)
def test_names_of_added_columns(columns: list[Any], levels: Any, names: str) -> None:
    (form,) = seek(columns).forms
    assert [out.name for out in form.outputs(levels)] == names.replace(":", "orcast").split()
    assert added(form, levels)[-4:] == [f"{form.base}_{what}" for what in CERTIFICATE]


def test_levels_asked_for_must_be_levels() -> None:
    form = seek(["y", "q0.1", "q0.9"]).forms[0]
    for bad in ([0.0], [0.5, 1.0], [np.nan], ["x"]):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            form.outputs(bad)
    with pytest.raises(ValueError, match=SENTENCE):
        seek(["y", "p"]).forms[0].outputs([0.5])
    assert len(form.outputs([0.1, 0.1 + 1e-12, 0.5, 0.5])) == 3


def test_added_columns_are_no_model_and_are_replaced() -> None:
    columns = nixtla("A A-lo-90 A-hi-90 B B-lo-90 B-hi-90")
    first = seek(columns)
    again = [*columns, *(name for form in first.forms for name in added(form, [0.1, 0.2]))]
    assert set(seek(again, model="B").earlier(again)) == set(added(first.forms[1], [0.1, 0.2]))
    own = seek(again, model="A_orcast")
    assert own.forms[0].columns[0] == "A_orcast-lo-90"
    assert own.earlier(again) == ()
    # a model of the user's that only begins like ours
    theirs = [*columns, "A_orcast_v2", "A_orcast_v2-lo-90", "A_orcast_v2-hi-90"]
    assert [form.model for form in seek(theirs).forms] == ["A", "B", "A_orcast_v2"]
    assert seek(theirs).earlier(theirs) == ()


words = st.text(alphabet="aMz09.-_/ #", min_size=1, max_size=8)
percents = st.integers(1, 99)


@given(words, st.sets(percents, min_size=1, max_size=4), st.booleans())
def test_any_model_name_survives(model: str, shares: set[int], alone: bool) -> None:
    """The intervals of a model of any name are its own, and its added columns are known."""
    columns = [*NIXTLA, *([model] if alone else []), *(f"{model}-{end}-{s}" for s in shares for end in ("lo", "hi"))]
    if len(set(map(str.lower, columns))) < len(columns) or model.lower() in ("id", "h"):
        return
    layout = seek(columns)
    assert [form.model for form in layout.forms] == [model]
    form = layout.forms[0]
    expected = sorted([(100 - s) / 200 for s in shares] + [(100 + s) / 200 for s in shares] + [0.5] * alone)
    np.testing.assert_allclose(form.levels, expected)
    made = added(form, [0.3, 0.7])
    again = [*columns, *made]
    assert set(seek(again).earlier(again)) == set(made)
    assert [f.model for f in seek(again).forms] == [model]


@given(words, st.sets(percents, min_size=2, max_size=5), st.sampled_from(["_q", "-q", "_quantile_", "-ql"]))
def test_any_level_is_read_as_it_was_written(model: str, shares: set[int], lead: str) -> None:
    columns = ["y", *(f"{model}{lead}{s / 100:.3f}" for s in sorted(shares))]
    try:
        form = seek(columns).forms[0]
    except ValueError:
        # a name such as "a_q0.5" can be a model's of its own only if it has intervals
        assert re.search(r"[-_]$|^[-_]|q|^0?\.\d", model) is not None
        return
    np.testing.assert_array_equal(form.levels, np.array(sorted(shares)) / 100)
    assert [out.name for out in form.outputs()] == [f"{model}_orcast{c[len(model) :]}" for c in columns[1:]]


# --- frames


def test_quantities_come_before_events_and_outcomes_must_fit() -> None:
    chance, low = {"p": [0.2, 0.7]}, {"q0.1": [1.0, 2.0], "q0.9": [3.0, 4.0]}
    labels = {"p_a": [0.2, 0.7], "p_b": [0.8, 0.3]}
    for columns, kind in (({**chance, **low}, "quantiles"), (chance, "binary"), (labels, "labels")):
        assert find_in(pl.DataFrame({"y": [None, None], **columns})).forms[0].kind == kind
    beside = {"A_q0.1": [1.0, 2.0], "A_q0.9": [3.0, 4.0], "rain_p": [0.5, 0.5]}
    assert [form.model for form in find_in(pl.DataFrame({"y": [1.0, 2.0], **beside})).forms] == ["A"]
    for y, columns, match in (
        ([0, 2], chance, "expected outcomes 0 or 1 in column 'y', got 2 in row 1"),
        ([0, 1], labels, "expected a label 'a' or 'b' as outcome, got 0 in row 0"),
        (["a", "b"], low, "expected numbers in column 'y', got text 'a' in row 0"),
    ):
        for call in (oc.recalibrate, oc.check):
            with pytest.raises((TypeError, ValueError), match=match):
                call(pl.DataFrame({"y": y, **columns}))


def test_numbers_of_loose_types() -> None:
    loose = {"y": pd.Series([1, None], dtype=object), "q0.1": pd.Series([1, None], dtype=object), "q0.9": [1, 2]}
    assert find_in(pd.DataFrame(loose)).forms[0].columns == ("q0.1", "q0.9")


def test_a_frame_without_outcomes_if_allowed() -> None:
    frame = pl.DataFrame({"unique_id": ["a"], "ds": [1], "ETS": [1.0], "ETS-lo-90": [0.0], "ETS-hi-90": [2.0]})
    layout = find_in(frame, pending=True)
    assert layout.y is None
    assert layout.forms[0].model == "ETS"
    with pytest.raises(ValueError, match=SENTENCE):
        find_in(frame)


@pytest.mark.parametrize("make", [pd.Series, pl.Series])
def test_places_of_labels(make: Any) -> None:
    for values, labels, places in (
        (["b", "a", None], ("a", "b"), [1, 0, -1]),
        ([2.0, 1.0, None], ("1", "2"), [1, 0, -1]),
        ([True, False], ("0", "1"), [1, 0]),
        ([True, False], ("false", "true"), [1, 0]),
        ([None, None], ("a",), [-1, -1]),
    ):
        assert label_places(make(values), labels).tolist() == places
    with pytest.raises(ValueError, match=r"'a' or 'b' as outcome, got 'c' in row 1"):
        label_places(make(["a", "c"]), ("a", "b"))
