"""Recipes of the comparison, by kind.  Some experts are flawed on purpose, as real ones are."""

from __future__ import annotations

from functools import partial
from typing import Any

from research.comparison.recipes import EVENT, FIVE, HUB, TWENTIETHS, Recipe, at_noon, last_years, weekly
from research.comparison.stream import Array
from research.learners import (
    Analogs,
    BaseRate,
    BoostedQuantiles,
    Bootstrap,
    Climatology,
    Expert,
    Naive,
    Narrowed,
    OnlineClassifier,
    Regression,
    RiverTree,
    Smoothing,
)
from tests import adversaries

HAUTE, ZURICH = "wind-haute-borne", "sunspots-zurich"
LAST = Naive(period=1)
LIGHT = BoostedQuantiles("lightgbm", every=12 * 300, lags=24, trees=80, changes=True)


def _recipe(kind: str, series: str, what: str, expert: Expert | dict[str, Expert], **options: Any) -> Recipe:
    """Recipe named after its series and experts."""
    experts = expert if isinstance(expert, dict) else {what.split(",")[0]: expert}
    called = f"{series} {options.pop('called')}" if "called" in options else series
    return Recipe(f"{called}, {what}", kind, series, experts, **options)


def _one(series: str, what: str, expert: Expert, first: int, rows: int, levels: Array = HUB, **options: Any) -> Recipe:
    return _recipe("one-step", series, what, expert, first=first, rows=rows, levels=levels, **options)


def _day(series: str, what: str, expert: Any, first: int, rows: int, levels: Array = HUB, **options: Any) -> Recipe:
    options = {"first": first, "rows": rows, "levels": levels, "plan": "day-ahead", **options}
    return _recipe("day-ahead", series, f"{what}, day ahead", expert, **options)


def _late(series: str, what: str, expert: Any, first: int, rows: int, levels: Array = HUB, **options: Any) -> Recipe:
    options = {"first": first, "rows": rows, "levels": levels, "plan": "ahead", **options}
    return _recipe("weekly-late", series, f"{what}, 1 to 4 ahead", expert, **options)


def _multi(
    series: str, what: str, expert: Any, first: int, steps: int, levels: Array = TWENTIETHS, **options: Any
) -> Recipe:
    """Overconfident forecasts 1 to 12 steps ahead: 90% bands hold 80%."""
    options = {"first": first, "rows": 12 * steps, "levels": levels, "plan": "ahead", "horizons": 12, **options}
    return _recipe("multi-step", series, f"{what}, 1 to 12 ahead", Narrowed(expert), **options)


def _event(series: str, what: str, expert: Any, first: int, rows: int, **options: Any) -> Recipe:
    return _recipe("binary", series, what, expert, first=first, rows=rows, levels=EVENT, **options)


def _ensemble(series: str, what: str, expert: Expert, first: int, rows: int, **options: Any) -> Recipe:
    levels = options.pop("levels", TWENTIETHS)
    return _recipe("ensembles", series, what, expert, first=first, rows=rows, levels=levels, ensemble=True, **options)


def _several(series: str, what: str, experts: dict[str, Expert], first: int, rows: int, **options: Any) -> Recipe:
    return _recipe("several experts", series, what, experts, first=first, rows=rows, **options)


def _against(series: str, kind: str, expert: Expert, first: int, rows: int, *given: Any, **options: Any) -> Recipe:
    named = {name: options.pop(name) for name in ("called", "through", "quick", "levels") if name in options}
    chosen = partial(getattr(adversaries, kind), *given, **options)
    return _recipe("adversarial", series, f"against {kind}", expert, first=first, rows=rows, adversary=chosen, **named)


NOON: dict[str, Any] = {"called": "at noon", "through": at_noon, "quick": True}

RECIPES: tuple[Recipe, ...] = (
    # small ones of shipped series, for --quick
    _one("humidity", "regression", Regression(lags=5), 60, 250, **NOON),
    _multi("humidity", "regression", Regression(lags=5), 60, 30, **NOON),
    _one("humidity", "smoothing", Smoothing(factor=0.6), 30, 60, FIVE, **NOON),
    _event("humidity", "above its 60%", OnlineClassifier(lags=4), 60, 250, event=0.6, **NOON),
    _ensemble("humidity", "analogs", Analogs(members=20, lags=3), 60, 200, **NOON),
    _several(
        "humidity", "three experts",
        {"last": LAST, "climatology": Climatology(), "regression": Regression(lags=3, forgetting=0.98)},
        60, 200, levels=TWENTIETHS, **NOON,
    ),
    _against("humidity", "HardGreedy", Climatology(), 60, 200, levels=TWENTIETHS, **NOON),
    _day("humidity", "naive, 12 days", Naive(), 240, 288, TWENTIETHS, called="by hour", quick=True),
    _late("humidity", "naive", LAST, 12, 400, called="by week", through=weekly, quick=True),
    # one step ahead, long
    _one("humidity", "regression", Regression(lags=24), 400, 1500),
    _one("humidity", "a day ago", Naive(empirical=True), 400, 1200, TWENTIETHS),
    _one("humidity", "smoothing, too narrow", Smoothing(period=1, factor=0.6), 400, 1200, FIVE),
    _one("humidity", "boosted trees", BoostedQuantiles(every=500), 400, 1200, FIVE),
    _one(HAUTE, "regression, forgetting", Regression(lags=6, forgetting=0.99), 400, 1500),
    _one(HAUTE, "climatology", Climatology(), 400, 1200),
    _one(HAUTE, "Hoeffding tree", RiverTree("hat"), 400, 1200, TWENTIETHS),
    _one(ZURICH, "regression", Regression(lags=24), 400, 1500),
    _one(ZURICH, "wrong cycle", Naive(period=120), 400, 1200),
    _one("wind", "regression", Regression(lags=24), 400, 1500),
    _one("wind", "boosted trees, old", BoostedQuantiles(every=1500), 600, 1200, FIVE),
    _one("wind", "Hoeffding tree", RiverTree("hat"), 400, 1200),
    _one("sunspots", "regression", Regression(lags=24, empirical=True), 400, 1500),
    _one("sunspots", "gradient tree", RiverTree("sgt"), 400, 1200, TWENTIETHS),
    _one("co2", "smoothing", Smoothing(), 160, 1200),
    _one("co2", "smoothing, wrong season", Smoothing(period=13), 160, 1200, TWENTIETHS),
    _one("water-flow", "smoothing", Smoothing(), 168, 1000),
    _one("apple-volume", "regression", Regression(lags=10, forgetting=0.995), 200, 1200),
    _one("brent", "last", Naive(period=1, window=500, empirical=True), 200, 1500),
    _one("heart", "regression", Regression(lags=8), 200, 1200, TWENTIETHS),
    # one step ahead, of 100 to 1,000
    _one("sunspots-yearly", "regression", Regression(lags=11), 50, 250),
    _one("elnino", "a year ago", Naive(), 60, 600),
    _one("flights", "smoothing", Smoothing(), 48, 400),
    _one("bitcoin", "last", LAST, 50, 700),
    _one("solar", "a day ago", Naive(empirical=True), 96, 190, TWENTIETHS),
    _one("yahoo", "a day ago", Naive(), 120, 800),
    _one("approval", "regression", Regression(lags=3, forgetting=0.99), 60, 900),
    _one("sp500", "climatology", Climatology(window=250), 250, 1000),
    # outcomes in late batches
    _one("humidity", "regression, outcomes daily", Regression(lags=6), 480, 1440, late=24),
    _one(ZURICH, "regression, outcomes yearly", Regression(lags=12), 300, 1200, late=12),
    _one("water-flow", "naive, outcomes weekly", Naive(), 340, 900, TWENTIETHS, late=168),
    _one("wind", "climatology, outcomes weekly", Climatology(), 504, 1200, late=168),
    # the next day, issued at ten
    _day("humidity", "naive", Naive(), 720, 1920),
    _day("humidity", "regression", Regression(lags=4), 1200, 1920, TWENTIETHS),
    _day(HAUTE, "regression", Regression(lags=4, forgetting=0.99), 1200, 1920),
    _day(HAUTE, "climatology", Climatology(window=60), 720, 1920, TWENTIETHS),
    _day("water-flow", "smoothing", Smoothing(), 240, 960),
    _day("wind", "regression", Regression(lags=4), 1200, 1920),
    _day("wind", "naive, too narrow", Naive(factor=0.6), 720, 1920, TWENTIETHS),
    _day("wind", "boosted trees", BoostedQuantiles(every=720), 1200, 1920, FIVE),
    # short panels and series, one to four steps ahead
    _late(HAUTE, "climatology", Climatology(), 12, 1100, called="by week", through=weekly),
    _late("wind", "smoothing", Smoothing(), 12, 1100, called="by week", through=weekly),
    _late("us-growth", "regression", Regression(lags=2), 40, 1500),
    _late("us-change", "climatology", Climatology(window=40), 40, 1200, TWENTIETHS),
    _late("stocks", "climatology", Climatology(window=60), 60, 1500),
    _late("elnino", "a year ago", Naive(), 36, 280, through=last_years),
    _late("airline", "smoothing", Smoothing(), 30, 320, through=last_years),
    # overconfident, one to twelve steps ahead
    _multi("humidity", "LightGBM", LIGHT, 1500, 600),
    _multi(HAUTE, "LightGBM", LIGHT, 1500, 600),
    _multi(ZURICH, "LightGBM", LIGHT, 1000, 600),
    # events
    _event("humidity", "above its 80%", Regression(lags=6, factor=0.5), 400, 1200, event=0.8),
    _event("wind", "above its 75%, day ahead", Regression(lags=4), 2400, 1440, event=0.75, plan="day-ahead"),
    _event(HAUTE, "above its 90%, by rate", BaseRate(), 400, 1200, event=0.9),
    _event("sp500", "above the median", OnlineClassifier(rate=0.1), 60, 1000, event=0.5),
    _event("phishing", "logistic", OnlineClassifier(), 30, 1200),
    _event("shuttle", "naive Bayes", OnlineClassifier("bayes"), 50, 1500),
    _event("flares", "logistic, coarse", OnlineClassifier(rate=0.3), 40, 1000),
    # ensembles
    _ensemble("humidity", "analogs", Analogs(members=30), 600, 1200, levels=HUB),
    _ensemble(HAUTE, "analogs, day ahead", Analogs(members=20, lags=6), 1200, 1920, plan="day-ahead"),
    _ensemble(ZURICH, "analogs", Analogs(members=50, lags=12), 400, 1200, levels=HUB),
    _ensemble("elnino", "errors drawn, too narrow", Bootstrap(Naive(), members=20, factor=0.7), 60, 600),
    _ensemble("water-flow", "errors drawn", Bootstrap(Smoothing(), members=40), 168, 1000),
    _ensemble("wind", "analogs", Analogs(members=30), 600, 1200, levels=HUB),
    # several experts
    _several(
        "humidity", "four experts",
        {"regression": Regression(lags=6), "a day ago": Naive(), "climatology": Climatology(),
         "smoothing, too narrow": Smoothing(period=1, factor=0.6)},
        400, 1200,
    ),
    _several(
        HAUTE, "four experts",
        {"regression": Regression(lags=6), "forgetting": Regression(lags=3, forgetting=0.98),
         "last": Naive(period=1, empirical=True), "climatology": Climatology()},
        400, 1200, levels=TWENTIETHS,
    ),
    _several(
        ZURICH, "three experts",
        {"regression": Regression(lags=12), "a cycle ago": Naive(), "smoothing": Smoothing(period=1)}, 400, 1200,
    ),
    _several(
        "wind", "day ahead, three experts",
        {"regression": Regression(lags=4), "climatology": Climatology(window=60), "a day ago": Naive()},
        1200, 1920, plan="day-ahead", levels=TWENTIETHS,
    ),
    _several(
        "us-growth", "ahead, three experts",
        {"last": LAST, "smoothing": Smoothing(), "climatology": Climatology(window=40)},
        40, 1500, plan="ahead", levels=TWENTIETHS,
    ),
    _several(
        "phishing", "three experts",
        {"logistic": OnlineClassifier(), "naive Bayes": OnlineClassifier("bayes"), "tree": OnlineClassifier("tree")},
        30, 1000, levels=EVENT,
    ),
    # outcomes chosen by an adversary
    _against("humidity", "AtBound", Regression(lags=6), 400, 500),
    _against("humidity", "HardGreedy", Regression(lags=6), 400, 500, TWENTIETHS, levels=TWENTIETHS),
    _against(HAUTE, "CellGreedy", Climatology(), 400, 500),
    _against(ZURICH, "BesideQuantile", Regression(lags=12), 400, 500, 0.9, epsilon=1e-6),
    _against(HAUTE, "Periodic", Climatology(), 400, 500, (500.0, 500.0, 4000.0, 500.0, 7000.0)),
)  # fmt: skip
"""All recipes."""
