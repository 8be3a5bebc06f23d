"""Which columns are what, by their names: conventions, ambiguities, and the names of what comes out."""

import re
from typing import Any

import hypothesis.strategies as st
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from helpers import SENTENCE
from orcast.frame.names import CERTIFICATE, ColumnLayout, Form, find, level_of, readings, written_levels
from orcast.frame.reader import find_in, label_places, outcomes_in

NIXTLA = ["unique_id", "ds", "cutoff", "y"]
TEXT = {"unique_id", "ds", "cutoff", "item_id", "timestamp", "series", "label"}


def seek(columns: list[Any], **rest: Any) -> ColumnLayout:
    return find(columns, numeric=[column for column in columns if column not in TEXT], **rest)


def shown(form: Form) -> tuple[Any, ...]:
    levels = None if form.levels is None else form.levels.tolist()
    return form.model, form.kind, form.columns, levels if levels is not None else form.labels


def refused(columns: list[Any], *words: str, **rest: Any) -> None:
    """One sentence that says what was found and what settles it."""
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        seek(columns, **rest)
    for word in words:
        assert word in str(caught.value), str(caught.value)


# --- the conventions


FRAMES: dict[str, tuple[list[Any], list[tuple[Any, ...]]]] = {
    "statsforecast": (
        [*NIXTLA, "AutoARIMA", "AutoARIMA-lo-90", "AutoARIMA-lo-80", "AutoARIMA-hi-80", "AutoARIMA-hi-90"],
        [
            (
                "AutoARIMA",
                "quantiles",
                ("AutoARIMA-lo-90", "AutoARIMA-lo-80", "AutoARIMA", "AutoARIMA-hi-80", "AutoARIMA-hi-90"),
                [0.05, 0.1, 0.5, 0.9, 0.95],
            )
        ],
    ),
    "several models with difficult names": (
        [*NIXTLA, "LGBM-v2", "LGBM-v2-lo-80.0", "LGBM-v2-hi-80.0", "my-lo-model", "my-lo-model-lo-97.5"],
        [
            ("LGBM-v2", "quantiles", ("LGBM-v2-lo-80.0", "LGBM-v2", "LGBM-v2-hi-80.0"), [0.1, 0.5, 0.9]),
            ("my-lo-model", "quantiles", ("my-lo-model-lo-97.5", "my-lo-model"), [0.0125, 0.5]),
        ],
    ),
    "a model whose name looks like an ending": (
        [*NIXTLA, "net_q0.5", "net_q0.5-lo-90", "net_q0.5-hi-90", "a-median", "a-median-lo-90", "a-median-hi-90"],
        [
            ("net_q0.5", "quantiles", ("net_q0.5-lo-90", "net_q0.5", "net_q0.5-hi-90"), [0.05, 0.5, 0.95]),
            ("a-median", "quantiles", ("a-median-lo-90", "a-median", "a-median-hi-90"), [0.05, 0.5, 0.95]),
        ],
    ),
    "hierarchical": (
        [*NIXTLA, "ETS/BottomUp", "ETS/BottomUp-lo-90", "ETS/BottomUp-hi-90"],
        [
            (
                "ETS/BottomUp",
                "quantiles",
                ("ETS/BottomUp-lo-90", "ETS/BottomUp", "ETS/BottomUp-hi-90"),
                [0.05, 0.5, 0.95],
            )
        ],
    ),
    "neuralforecast, several quantiles": (
        [*NIXTLA, "NHITS-lo-80.0", "NHITS-median", "NHITS-hi-80.0"],
        [("NHITS", "quantiles", ("NHITS-lo-80.0", "NHITS-median", "NHITS-hi-80.0"), [0.1, 0.5, 0.9])],
    ),
    "neuralforecast, one quantile at a time": (
        [*NIXTLA, "N-ql0.1", "N-ql0.9", "K_ql0.25", "K_ql0.75"],
        [
            ("N", "quantiles", ("N-ql0.1", "N-ql0.9"), [0.1, 0.9]),
            ("K", "quantiles", ("K_ql0.25", "K_ql0.75"), [0.25, 0.75]),
        ],
    ),
    "TimeGPT": (
        [*NIXTLA, "TimeGPT", "TimeGPT-q-10", "TimeGPT-q-50", "TimeGPT-q-80"],
        [("TimeGPT", "quantiles", ("TimeGPT-q-10", "TimeGPT-q-50", "TimeGPT-q-80"), [0.1, 0.5, 0.8])],
    ),
    "darts": (
        ["time", "y", "#Passengers_q0.100", "#Passengers_q0.500", "#Passengers_q0.900"],
        [
            (
                "#Passengers",
                "quantiles",
                ("#Passengers_q0.100", "#Passengers_q0.500", "#Passengers_q0.900"),
                [0.1, 0.5, 0.9],
            )
        ],
    ),
    "AutoGluon": (
        ["item_id", "timestamp", "target", "mean", "0.1", "0.5", "0.9"],
        [("", "quantiles", ("0.1", "0.5", "0.9"), [0.1, 0.5, 0.9])],
    ),
    "Chronos": (
        ["item_id", "timestamp", "target", "predictions", "0.1", "0.5", "0.9"],
        [("", "quantiles", ("0.1", "0.5", "0.9"), [0.1, 0.5, 0.9])],
    ),
    "Prophet": (
        [
            "ds",
            "trend",
            "yhat_lower",
            "yhat_upper",
            "trend_lower",
            "trend_upper",
            "weekly",
            "weekly_lower",
            "yhat",
            "y",
        ],
        [("yhat", "quantiles", ("yhat_lower", "yhat", "yhat_upper"), [0.1, 0.5, 0.9])],
    ),
    "skforecast, quantiles": (["y", "q_0.05", "q_0.95"], [("", "quantiles", ("q_0.05", "q_0.95"), [0.05, 0.95])]),
    "R": (
        ["y", "Point Forecast", "Lo 80", "Hi 80", "Lo 95", "Hi 95"],
        [("", "quantiles", ("Lo 95", "Lo 80", "Hi 80", "Hi 95"), [0.025, 0.1, 0.9, 0.975])],
    ),
    "an ensemble's file": (
        ["valid_time", "obs", "ens10", "ens2", "ens1", "ens_mean", "ens_sd"],
        [("", "members", ("ens1", "ens2", "ens10"), None)],
    ),
    "members with zeros": (["obs", "member01", "member02"], [("", "members", ("member01", "member02"), None)]),
    "numbers as labels": (["y", 0.1, np.float64(0.9), 7], [("", "quantiles", (0.1, 0.9), [0.1, 0.9])]),
    "quantiles": (["y", "q0.9", "q0.1"], [("", "quantiles", ("q0.1", "q0.9"), [0.1, 0.9])]),
    "quantiles, spelt": (["y", "quantile_0.1", "q_0.9"], [("", "quantiles", ("quantile_0.1", "q_0.9"), [0.1, 0.9])]),
    "percents": (["y", "q5", "q50", "q95"], [("", "quantiles", ("q5", "q50", "q95"), [0.05, 0.5, 0.95])]),
    "percents of a model": (["y", "M_P10", "M_P90"], [("M", "quantiles", ("M_P10", "M_P90"), [0.1, 0.9])]),
    "percents of probability": (["y", "p_10", "p_90"], [("", "quantiles", ("p_10", "p_90"), [0.1, 0.9])]),
    "mean and sd": (["y", "sd", "mean"], [("", "normal", ("mean", "sd"), None)]),
    "means and sds": (
        ["y", "A_mean", "A_std", "B-loc", "B-scale", "C", "C_sigma"],
        [
            ("A", "normal", ("A_mean", "A_std"), None),
            ("B", "normal", ("B-loc", "B-scale"), None),
            ("C", "normal", ("C", "C_sigma"), None),
        ],
    ),
    "members": (
        ["y", "member_10", "member_2", "member_1", "member_count"],
        [("", "members", ("member_1", "member_2", "member_10"), None)],
    ),
    "samples": (["y", "M-sample-0", "M-sample-1"], [("M", "members", ("M-sample-0", "M-sample-1"), None)]),
    "binary": (["y", "p"], [("", "binary", ("p",), None)]),
    "binary models": (
        ["y", "net_prob", "tree_probability"],
        [("net", "binary", ("net_prob",), None), ("tree", "binary", ("tree_probability",), None)],
    ),
    "labels by number": (["y", "p_0", "p_1", "p_2"], [("", "labels", ("p_0", "p_1", "p_2"), ("0", "1", "2"))]),
    "points": (
        [*NIXTLA, "Naive", "LGBM-v2"],
        [("Naive", "point", ("Naive",), None), ("LGBM-v2", "point", ("LGBM-v2",), None)],
    ),
}


@pytest.mark.parametrize("case", FRAMES)
def test_conventions(case: str) -> None:
    columns, forms = FRAMES[case]
    assert [shown(form) for form in seek(columns).forms] == forms
    # labels have no order but that of the columns
    if case != "labels by number":
        assert sorted(shown(form) for form in seek(columns[::-1]).forms) == sorted(forms)


def test_labels_that_outcomes_name() -> None:
    columns = ["label", "elo_p_home", "elo_p_draw", "elo_p_away", "attendance"]
    layout = find(columns, numeric=columns[1:], y="label")
    assert shown(layout.forms[0]) == ("elo", "labels", tuple(columns[1:4]), ("home", "draw", "away"))


def test_roles() -> None:
    layout = seek(["item_id", "Date", "issued", "lead", "actual", "q0.1", "q0.9"])
    assert (layout.series, layout.time, layout.cutoff, layout.horizon, layout.y) == (
        ("item_id",),
        "Date",
        "issued",
        "lead",
        "actual",
    )
    named = seek(
        ["a", "b", "t", "c", "k", "o", "q0.1", "q0.9"], y="o", series=["a", "b"], time="t", cutoff="c", horizon="k"
    )
    assert (named.series, named.time, named.cutoff, named.horizon, named.y) == (("a", "b"), "t", "c", "k", "o")
    none = seek(["y", "q0.1", "q0.9"])
    assert (none.series, none.time, none.cutoff, none.horizon) == ((), None, None, None)
    assert seek(["id", "y", "q0.1", "q0.9"], series=()).series == ()


def test_roles_by_other_names() -> None:
    for outcome in ("obs", "observed", "observation", "actual_load", "target", "price", "y_true"):
        assert seek([outcome, "q0.1", "q0.9"]).y == outcome
    assert seek(["price", "y", "q0.1", "q0.9"]).y == "y"
    columns = ["delivery_start", "location", "y", "q0.1", "q0.9"]
    layout = find(columns, numeric=columns[2:])
    assert (layout.time, layout.series) == ("delivery_start", ("location",))
    columns = ["time", "step", "valid_time", "obs", "ens1", "ens2"]
    weather = find(columns, numeric=["obs", "ens1", "ens2"])
    assert (weather.cutoff, weather.time, weather.horizon, weather.y) == ("time", "valid_time", "step", "obs")


def test_what_a_library_takes_for_granted_is_said() -> None:
    layout = seek(["ds", "y", "yhat", "yhat_lower", "yhat_upper"])
    (said,) = layout.assumed
    assert "80% interval, the default of Prophet" in said
    assert "{0.1: 'yhat_lower', 0.5: 'yhat', 0.9: 'yhat_upper'}" in said
    other = {"yhat": {0.025: "yhat_lower", 0.5: "yhat", 0.975: "yhat_upper"}}
    assert seek(["ds", "y", "yhat", "yhat_lower", "yhat_upper"], model=other).assumed == ()
    assert seek(["y", "q0.1", "q0.9"]).assumed == ()


def test_a_convention_settles_roles_that_others_could_have() -> None:
    layout = seek([*NIXTLA, "id", "date", "value", "target", "ETS", "ETS-lo-90", "ETS-hi-90"])
    assert (layout.series, layout.time, layout.y) == (("unique_id",), "ds", "y")
    assert [form.model for form in layout.forms] == ["ETS"]
    named = seek([*NIXTLA, "id", "date", "ETS", "ETS-lo-90", "ETS-hi-90"], y="y")
    assert (named.series, named.time, named.y) == (("unique_id",), "ds", "y")


def test_names_that_mean_nothing() -> None:
    assert [form.model for form in seek([*NIXTLA, "Naive", "index", "value", "h", "step"], horizon="h").forms] == [
        "Naive"
    ]
    for text in (
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
    ):
        assert level_of(text) is None
        assert "member" not in readings(text)
    form = seek(["y", "member_2", "member_total", "member_1"]).forms[0]
    assert form.columns == ("member_1", "member_2")
    both = seek([*NIXTLA, "net_q0.1", "net_q0.5", "net_q0.9", "net_q0.5-lo-90", "net_q0.5-hi-90"])
    assert [shown(form)[3] for form in both.forms] == [[0.1, 0.5, 0.9], [0.05, 0.5, 0.95]]


def test_a_plain_column_is_the_median_or_the_mean() -> None:
    median = seek([*NIXTLA, "M", "M-lo-90", "M-hi-90"]).forms[0]
    assert "M" in median.columns
    assert median.mean is None
    for others in (["M-lo-90", "M-median", "M-hi-90"], ["M_q0.1", "M_q0.9"]):
        form = seek([*NIXTLA, "M", *others]).forms[0]
        assert "M" not in form.columns
        assert form.mean == "M"
        assert [(out.name, out.column) for out in form.outputs() if out.what == "mean"] == [("M_orcast", "M")]
    assert seek(["y", "mean", "0.1", "0.9"]).forms[0].mean == "mean"
    assert seek(["y", "M", "M_mean", "M_q0.1", "M_q0.9"]).forms[0].mean == "M_mean"


# --- where it is not clear


def test_doubts_are_said() -> None:
    refused(["y", "A", "B"], "model=", "'A' and 'B'")
    refused(["temperature", "q0.1", "q0.9"], "y=", "'temperature'")
    refused(["y", "value", "q0.1", "q0.9"], "'y' and 'value'", "y=")
    refused(["y", "id", "series", "q0.1", "q0.9"], "'id' and 'series'", "series=")
    refused(["y", "date", "time", "q0.1", "q0.9"], "'date' and 'time'", "time=")
    refused(["y", "q1", "q2", "q3", "q4"], "percents", "model=")
    refused(["y", "q50", "q90"], "percents", "model=")
    refused(["y", "q0.9"], "two quantiles", "model=")
    refused([*NIXTLA, "M-lo-90"], "two quantiles", "model=")
    refused([*NIXTLA, "net", "net_lower", "net_upper"], "'net_lower' and 'net_upper'", "model=")
    refused(["y", "mean", "sd", "std"], "'sd' and 'std'", "model=")
    refused(["y", "M_q0.05", "M-lo-90", "M-hi-90"], "0.05", "'M_q0.05' and 'M-lo-90'", "model=")
    refused([*NIXTLA, "A", "A-lo-90", "A-hi-90", "temp_mean", "temp_std"], "model='A'", "'temp'")
    refused(["y", "p", "q0.1", "q0.9"], "a probability", "quantiles", outcomes="0/1")
    refused(["y", "p"], "0 or 1", outcomes="numbers")
    refused(["y", "p_home", "p_away"], "'home' or 'away'", outcomes="numbers")
    refused(["y", "q0.1", "q0.9"], "another type", outcomes="labels")
    refused(["y"], "'MODEL-lo-90'")
    refused([], "no columns")


def test_what_is_named_must_be_there() -> None:
    columns = [*NIXTLA, "A", "A-lo-90", "A-hi-90"]
    refused(columns, "'B'", "'A'", model="B")
    refused(columns, "'o'", y="o")
    refused(columns, "series=", series=["unique_id", "x"])
    refused(columns, "different", series=["unique_id", "unique_id"])
    refused(columns, "for two", y="ds", time="ds")
    refused(columns, "at least one", model=[])
    refused(columns, "another type", model={"A": "unique_id"}, series=())
    refused(columns, "series or time", model={"A": "unique_id"})
    refused(columns, "'A' twice", model={"B": {0.1: "A", 0.9: "A"}})
    refused(["y", "y", "q0.1"], "twice")
    refused(["y", "0.1", 0.1], "twice")
    refused([("y", ""), "q0.1"], "plain names")
    with pytest.raises(ValueError, match=r"'A-hi-90' of model 'A', got another type"):
        find(columns, numeric=["y", "A", "A-lo-90"])


# --- named and spelt out


def test_models_by_name() -> None:
    columns = [*NIXTLA, "A", "A-lo-90", "A-hi-90", "B", "temp_mean", "temp_std", "x"]
    assert [form.model for form in seek(columns, model=["temp", "A"]).forms] == ["temp", "A"]
    assert shown(seek(columns, model="B").forms[0]) == ("B", "point", ("B",), None)
    assert shown(seek(["y", "B"], model="B").forms[0]) == ("B", "point", ("B",), None)
    assert shown(seek(["y", "B"], model="B", outcomes="bool").forms[0]) == ("B", "binary", ("B",), None)
    assert seek(["y", "q0.1", "q0.9", "A_q0.1", "A_q0.9"], model="").forms[0].columns == ("q0.1", "q0.9")


def test_models_spelt_out() -> None:
    columns = ["y", "a", "b", "c"]
    spelt: list[tuple[Any, tuple[Any, ...], list[str]]] = [
        ({0.9: "b", 0.1: "a"}, ("m", "quantiles", ("a", "b"), [0.1, 0.9]), ["m_orcast_q0.1", "m_orcast_q0.9"]),
        ({"sd": "b", "mean": "a"}, ("m", "normal", ("a", "b"), None), ["m_orcast_mean", "m_orcast_sd"]),
        (["b", "a"], ("m", "members", ("b", "a"), None), ["m_orcast_member_1", "m_orcast_member_2"]),
        ({"p": "a"}, ("m", "binary", ("a",), None), ["m_orcast_p"]),
        ("a", ("m", "point", ("a",), None), [f"m_orcast{e}" for e in ("-lo-95", "-lo-80", "", "-hi-80", "-hi-95")]),
    ]
    for parts, form, names in spelt:
        found = seek(columns, model={"m": parts}).forms[0]
        assert shown(found) == form
        assert [out.name for out in found.outputs()] == names
        assert all(out.column in found.columns for out in found.outputs() if out.place is not None)
    labels = find(["o", "a", "b"], numeric=["a", "b"], y="o", model={"m": {"p_x": "b", "p_y": "a"}}).forms[0]
    assert shown(labels) == ("m", "labels", ("b", "a"), ("x", "y"))
    assert [out.name for out in labels.outputs()] == ["m_orcast_p_x", "m_orcast_p_y"]
    mean = seek(columns, model={"m": {0.1: "a", 0.9: "b", "mean": "c"}}).forms[0]
    assert [out.name for out in mean.outputs()] == ["m_orcast_mean", "m_orcast_q0.1", "m_orcast_q0.9"]
    for bad in ({}, {0.1: "a"}, {1.5: "a", 0.1: "b"}, {"mean": "a"}, ["a"], {"p": "a", 0.1: "b"}, {10: "a", 90: "b"}):
        refused(columns, "'m'", model={"m": bad})
    refused(columns, "'z'", model={"m": "z"})


# --- what comes out


def names(columns: list[Any], levels: Any = None, **rest: Any) -> list[str]:
    return [out.name for form in seek(columns, **rest).forms for out in form.outputs(levels)]


def test_names_of_what_comes_out() -> None:
    assert names([*NIXTLA, "A", "A-lo-90", "A-hi-90"], [0.1, 0.9, 0.25]) == [
        "A_orcast-lo-90",
        "A_orcast-lo-80",
        "A_orcast-ql0.25",
        "A_orcast",
        "A_orcast-hi-80",
        "A_orcast-hi-90",
    ]
    assert names([*NIXTLA, "A-lo-80.0", "A-hi-80.0"], [0.05, 0.5, 0.95]) == [
        "A_orcast-lo-90",
        "A_orcast-lo-80.0",
        "A_orcast-median",
        "A_orcast-hi-80.0",
        "A_orcast-hi-90",
    ]
    assert names([*NIXTLA, "A-lo-80", "A-hi-80"], [0.0125, 0.9875])[0] == "A_orcast-lo-97.5"
    assert names(["y", "d_q0.100", "d_q0.900"], [0.25, 1 / 3]) == [
        "d_orcast_q0.100",
        "d_orcast_q0.25",
        "d_orcast_q0.3333333333",
        "d_orcast_q0.900",
    ]
    assert names(["y", "q0.1", "q0.9"], [0.25]) == ["orcast_q0.1", "orcast_q0.25", "orcast_q0.9"]
    assert names(["y", 0.1, 0.9], [0.25]) == ["orcast_0.1", "orcast_0.25", "orcast_0.9"]
    assert names(["y", "q05", "q95"], [0.01, 0.025]) == ["orcast_q0.01", "orcast_q0.025", "orcast_q05", "orcast_q95"]
    assert names(["y", "lo-90", "hi-90"], [0.1, 0.9, 0.5])[1:4] == ["orcast_lo-80", "orcast_median", "orcast_hi-80"]
    assert names(["y", "M_mean", "M_std"], [0.1]) == ["M_orcast_mean", "M_orcast_std", "M_orcast_q0.1"]
    assert names(["y", "M", "M_std"]) == ["M_orcast", "M_orcast_std"]
    assert names(["y", "member_2", "member_1"]) == ["orcast_member_1", "orcast_member_2"]
    assert names(["y", "p"]) == ["orcast_p"]
    assert names([*NIXTLA, "A"]) == [f"A_orcast{e}" for e in ("-lo-95", "-lo-80", "", "-hi-80", "-hi-95")]
    assert names([*NIXTLA, "A"], [0.9, 0.1]) == ["A_orcast-lo-80", "A_orcast", "A_orcast-hi-80"]
    assert names([*NIXTLA, "A"], outcomes="bool") == ["A_orcast"]
    layout = seek([*NIXTLA, "A"])
    assert layout.names()[-4:] == tuple(f"A_orcast_{what}" for what in CERTIFICATE)


def test_levels_asked_for_must_be_levels() -> None:
    form = seek(["y", "q0.1", "q0.9"]).forms[0]
    for bad in ([0.0], [0.5, 1.0], [np.nan]):
        with pytest.raises(ValueError, match=SENTENCE):
            form.outputs(bad)
    with pytest.raises(TypeError, match=SENTENCE):
        form.outputs(["x"])
    with pytest.raises(ValueError, match=SENTENCE):
        seek(["y", "p"]).forms[0].outputs([0.5])
    assert len(form.outputs([0.1, 0.1 + 1e-12, 0.5, 0.5])) == 3


def test_what_came_out_is_no_model_and_is_replaced() -> None:
    columns = [*NIXTLA, "A", "A-lo-90", "A-hi-90", "B", "B-lo-90", "B-hi-90"]
    first = seek(columns)
    again = [*columns, *first.names([0.1, 0.2])]
    second = seek(again)
    assert [shown(form) for form in second.forms] == [shown(form) for form in first.forms]
    assert set(second.earlier(again)) == set(first.names([0.1, 0.2]))
    assert set(seek(again, model="B").earlier(again)) == set(first.forms[1].names([0.1, 0.2]))
    own = seek(again, model="A_orcast")
    assert own.forms[0].columns[0] == "A_orcast-lo-90"
    assert own.earlier(again) == ()
    refused(again, "'A_orcast", model=["A", "A_orcast"])
    # a model of the user's that only begins like ours
    theirs = [*columns, "A_orcast_v2", "A_orcast_v2-lo-90", "A_orcast_v2-hi-90"]
    assert [form.model for form in seek(theirs).forms] == ["A", "B", "A_orcast_v2"]
    assert seek(theirs).earlier(theirs) == ()


@pytest.mark.parametrize("case", FRAMES)
@pytest.mark.parametrize("levels", [None, [0.01, 0.2, 0.5, 0.8]])
def test_what_comes_out_never_collides(case: str, levels: Any) -> None:
    columns, forms = FRAMES[case]
    layout = seek(columns)
    if layout.forms[0].kind in ("binary", "labels"):
        levels = None
    made = layout.names(levels)
    assert len(set(made)) == len(made)
    assert not set(made) & set(map(str, columns))
    assert layout.earlier(columns) == ()
    # all of it is known as ours in a second run, and by level
    again = [*columns, *made]
    assert [shown(form) for form in seek(again).forms] == forms
    assert set(seek(again).earlier(again)) == set(made)
    for form in layout.forms:
        quantiles = {out.level: out.name for out in form.outputs(levels) if out.what == "quantile"}
        assert written_levels(form, again) == dict(sorted(quantiles.items()))


words = st.text(alphabet="aMz09.-_/ #", min_size=1, max_size=8)
percents = st.integers(1, 99)


@given(words, st.sets(percents, min_size=1, max_size=4), st.booleans())
def test_any_model_name_survives(model: str, shares: set[int], alone: bool) -> None:
    """However a model is called, its intervals are its own, and what comes out is known as its."""
    columns = [*NIXTLA, *([model] if alone else []), *(f"{model}-{end}-{s}" for s in shares for end in ("lo", "hi"))]
    if len(set(map(str.lower, columns))) < len(columns) or model.lower() in ("id", "h"):
        return
    layout = seek(columns)
    assert [form.model for form in layout.forms] == [model]
    form = layout.forms[0]
    expected = sorted([(100 - s) / 200 for s in shares] + [(100 + s) / 200 for s in shares] + [0.5] * alone)
    np.testing.assert_allclose(form.levels, expected)
    made = form.names([0.3, 0.7])
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


def test_the_outcomes_decide_between_kinds() -> None:
    chances = {"p": [0.2, 0.7], "q0.1": [1.0, 2.0], "q0.9": [3.0, 4.0]}
    assert find_in(pl.DataFrame({"y": [1.5, 2.0], **chances})).forms[0].kind == "quantiles"
    assert find_in(pl.DataFrame({"y": [0, 1], "p": [0.2, 0.7]})).forms[0].kind == "binary"
    assert find_in(pl.DataFrame({"y": [None, None], "p": [0.2, 0.7]})).forms[0].kind == "binary"
    with pytest.raises(ValueError, match="0 or 1"):
        find_in(pl.DataFrame({"y": [0, 2], "p": [0.2, 0.7]}))
    labels = {"p_a": [0.2, 0.7], "p_b": [0.8, 0.3]}
    assert find_in(pl.DataFrame({"y": ["a", None], **labels})).forms[0].kind == "labels"
    with pytest.raises(ValueError, match="name a label"):
        find_in(pl.DataFrame({"y": [0, 1], **labels}))
    boolean = pl.DataFrame({"unique_id": ["a"], "ds": [1], "y": [True], "tree": [0.3]})
    assert find_in(boolean).forms[0].kind == "binary"
    assert find_in(pl.DataFrame({"y": [True, False], **chances})).forms[0].kind == "binary"
    with pytest.raises(ValueError, match="true or false"):
        find_in(pl.DataFrame({"y": [True], "q0.1": [1.0], "q0.9": [2.0]}))


def test_outcomes_of_loose_types() -> None:
    def said(values: list[Any]) -> str | None:
        return outcomes_in(nw.from_native(pd.Series(values, dtype=object), series_only=True))

    assert said([True, None, False]) == "bool"
    assert said([1, None, 0.0]) == "0/1"
    assert said([1, None, 2.5]) == "numbers"
    assert said(["a", None, 2.5]) == "labels"
    assert said([None, None]) is None
    loose = pd.DataFrame(
        {"y": pd.Series([1, None], dtype=object), "q0.1": pd.Series([1, None], dtype=object), "q0.9": [1, 2]}
    )
    assert find_in(loose).forms[0].columns == ("q0.1", "q0.9")


def test_a_frame_without_outcomes_if_allowed() -> None:
    frame = pl.DataFrame({"unique_id": ["a"], "ds": [1], "ETS": [1.0], "ETS-lo-90": [0.0], "ETS-hi-90": [2.0]})
    layout = find_in(frame, pending=True)
    assert layout.y is None
    assert layout.forms[0].model == "ETS"
    with pytest.raises(ValueError, match=SENTENCE):
        find_in(frame)
    assert find_in(frame.select("unique_id", "ds", "ETS"), pending=True).forms[0].kind == "point"


@pytest.mark.parametrize("make", [pd.Series, pl.Series])
def test_places_of_labels(make: Any) -> None:
    assert label_places(make(["b", "a", None]), ("a", "b")).tolist() == [1, 0, -1]
    assert label_places(make([2.0, 1.0, None]), ("1", "2")).tolist() == [1, 0, -1]
    assert label_places(make([2, 1]), ("1", "2")).tolist() == [1, 0]
    assert label_places(make([True, False]), ("0", "1")).tolist() == [1, 0]
    assert label_places(make([True, False]), ("false", "true")).tolist() == [1, 0]
    assert label_places(make([None, None]), ("a",)).tolist() == [-1, -1]
    with pytest.raises(ValueError, match=r"'a' or 'b' as outcome, got 'c' in row 1") as caught:
        label_places(make(["a", "c"]), ("a", "b"))
    assert re.match(SENTENCE, str(caught.value))
