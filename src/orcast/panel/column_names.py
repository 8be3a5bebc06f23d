"""Names of columns of forecasts: what people mean by them, and how ours are written.

A name is a model's and an ending, or an ending alone: ``ETS-lo-90``, ``q0.1``.  Each function here reads one sort of
ending and says whose it is; a model without a name is "".
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SERIES = ("unique_id", "series", "series_id", "item_id", "id")
TIME = ("ds", "time", "timestamp", "date", "datetime", "valid_time", "target_end_date", "target_date")
CUTOFF = (
    *("cutoff", "issued", "origin", "issue_time", "issue_date", "issued_at", "init_time", "reference_date"),
    *("reference_time", "forecast_reference_time", "origin_date", "origin_time", "run_time"),
)
HORIZON = ("horizon", "h", "step", "lead", "lead_time", "leadtime")
OUTCOME = (
    *("y", "actual", "actuals", "outcome", "observed", "obs", "observation", "target", "value", "y_true", "truth"),
    *("true_value", "oracle_value"),
)
# What else may be meant, where none of the usual names is there: whole names, or how they begin.
ALSO = {
    "y": re.compile(r"price|actual[-_ ].+|obs(?:erved)?[-_ ].+|.+[-_ ](?:actual|obs|observed)", re.IGNORECASE),
    "time": re.compile(r"delivery(?:[-_ ].+)?", re.IGNORECASE),
    "series": re.compile(r"location|station|site|level", re.IGNORECASE),
}
# All columns of a row together leave no doubt about the roles, whatever else there is.
CONVENTIONS: tuple[dict[str, str], ...] = (
    {"series": "unique_id", "time": "ds", "y": "y"},
    {"series": "item_id", "time": "timestamp", "y": "target"},
    # weather: when it was computed, and what it is about
    {"cutoff": "time", "time": "valid_time"},
    {"time": "ds", "y": "y"},
)
# Plain numbers that are nobody's forecast.
NEVER = {*SERIES, *TIME, *CUTOFF, *HORIZON, *OUTCOME, "index", "level_0", "unnamed: 0"}

MEANS = ("mean", "mu", "loc")
SPREADS = ("sd", "std", "scale", "sigma", "stddev", "stdev")
PROBABILITIES = ("p", "prob", "proba", "probability")
# Members without a number, beside numbered ones; and endings of columns about members that are none.
CONTROLS = ("control", "ctrl", "cf")
NO_MEMBERS = ("id", "count", "number", "name", "mean", "median", "spread", "sd", "std", "min", "max")

# What comes out beside the forecasts, for each model.
CERTIFICATE = ("holds", "promised", "miscalibration", "status")
OWN = "orcast"

# Ends of intervals whose share their names do not say, but the library that writes them does: the library, its
# default, the model and its columns.
DEFAULTS = (
    ("Prophet", 0.8, "yhat", ("yhat_lower", "yhat", "yhat_upper")),
    ("skforecast", 0.9, "", ("lower_bound", "pred", "upper_bound")),
    ("statsmodels", 0.95, "", ("mean_ci_lower", "mean", "mean_ci_upper")),
)
# Words for members without a model, which may have a mean and a spread of their own; and a short one.
ENSEMBLES = ("ens", "ensemble", "member", "mem", "sample")
SHORT_MEMBER = re.compile(r"(?:.+[-_])?m[-_]\d+", re.IGNORECASE)
_LISTS = re.compile(r"(?:.+[-_])?(?:samples?|members?|ensemble|ens|draws?)", re.IGNORECASE)
# NeuralProphet's forecasts one, two, ... steps ahead of one row.
STEPS = re.compile(r"yhat\d+")

_WHOSE = r"(?:(?P<model>.+)(?P<joint>[-_]))?"
_FIRST = r"(?:(?P<model>.+?)(?P<joint>[-_]))?"
_INTERVAL = re.compile(rf"{_WHOSE}(?P<end>lo|hi)-(?P<digits>\d+(?:\.\d+)?)")
# the forecast package of R, whose point forecast is a column of its own
_SPACED = re.compile(rf"(?:(?P<model>(?:.+_)?{OWN})(?P<joint>_))?(?P<end>Lo|Hi)[ .](?P<digits>\d+(?:\.\d+)?)")
_SIGNED = re.compile(r"(?:(?P<model>.+?)(?P<joint>[ _]))?(?P<digits>\d\d?(?:\.\d+)?)%")
_MEDIAN = re.compile(rf"{_WHOSE}median", re.IGNORECASE)
_FRACTION = re.compile(rf"{_FIRST}(?P<lead>ql|q[-_]?|quantile[-_]?)(?P<digits>0?\.\d+)", re.IGNORECASE)
_BARE = re.compile(rf"(?:(?P<model>(?:.+_)?{OWN})(?P<joint>_))?(?P<lead>)(?P<digits>0?\.\d+)")
_PERCENT = re.compile(rf"{_FIRST}(?P<lead>q[-_]?|p[-_]?)(?P<digits>\d\d?(?:\.\d+)?)", re.IGNORECASE)
_MEMBER = re.compile(
    rf"{_WHOSE}(?P<word>member|sample|ensemble|ens|mem|draw|pred_boot|m(?=[-_]))(?P<mark>[-_]?)(?P<end>.+)",
    re.IGNORECASE,
)
_STATISTIC = re.compile(rf"{_WHOSE}(?P<word>{'|'.join((*MEANS, *SPREADS, *PROBABILITIES))})", re.IGNORECASE)
_LABEL = re.compile(rf"{_WHOSE}(?:{'|'.join(PROBABILITIES)})_(?P<label>.+)", re.IGNORECASE)
_BOUND = re.compile(rf"{_WHOSE}(?P<bound>(?:lower|upper|lo|hi|low|high)(?:[-_]?bound)?(?:[-_]?\d+)?)", re.IGNORECASE)


# --- reading


@dataclass(frozen=True)
class Level:
    """A quantile's name: its level, and how it was written.

    ``way`` is "interval", "median", "fraction", "percent" or "signed" (with a percent sign); ``lead`` is what stands
    between the model and the digits.
    """

    model: str
    level: float
    way: str
    lead: str = ""
    digits: str = ""


def level_of(text: str) -> Level | None:
    """Which quantile a name stands for; None if it is not one.

    >>> level_of("ETS-lo-90"), level_of("q0.1").level, level_of("LGBM-v2_q0.100").model, level_of("price")
    (Level(model='ETS', level=0.05, way='interval', lead='-', digits='90'), 0.1, 'LGBM-v2', None)
    """
    if m := _INTERVAL.fullmatch(text) or _SPACED.fullmatch(text):
        share = float(m["digits"])
        level = round((100.0 - share if m["end"].lower() == "lo" else 100.0 + share) / 200.0, 12)
        return Level(m["model"] or "", level, "interval", m["joint"] or "_", m["digits"]) if 0 < share < 100 else None
    if m := _MEDIAN.fullmatch(text):
        return Level(m["model"] or "", 0.5, "median")
    if m := _FRACTION.fullmatch(text) or _BARE.fullmatch(text):
        level = float(m["digits"])
        lead = (m["joint"] or "_") + m["lead"]
        return Level(m["model"] or "", level, "fraction", lead, m["digits"]) if level > 0 else None
    if m := _PERCENT.fullmatch(text):
        level = round(float(m["digits"]) / 100.0, 12)
        lead = (m["joint"] or "_") + m["lead"]
        return Level(m["model"] or "", level, "percent", lead, m["digits"]) if level >= 0.01 else None
    if m := _SIGNED.fullmatch(text):
        level = round(float(m["digits"]) / 100.0, 12)
        return Level(m["model"] or "", level, "signed", m["joint"] or "_", m["digits"]) if level > 0 else None
    return None


def readings(text: str) -> dict[str, tuple[str, Any]]:
    """All that a name may stand for: by kind, whose it is, and which of that kind.

    "level" and "percent" are quantiles; "member" one of an ensemble; "statistic" a "mean", "sd" or "p" (a probability);
    "label" the probability of one; "bound" the end of an interval, of which the name does not say how much it covers.

    >>> readings("gefs_member_12"), readings("sample_weight"), readings("ETS_std")
    ({'member': ('gefs', '12')}, {}, {'statistic': ('ETS', 'sd')})
    >>> readings("prob_away_win"), readings("yhat_lower")
    ({'label': ('', 'away_win')}, {'bound': ('yhat', 'lower')})
    """
    found: dict[str, tuple[str, Any]] = {}
    if (level := level_of(text)) is not None:
        found["percent" if level.way == "percent" else "level"] = level.model, level
    if m := _MEMBER.fullmatch(text):
        word = m["word"].lower() == "member" and m["mark"] and m["end"].lower() not in NO_MEMBERS
        if word or m["end"].isdecimal():
            found["member"] = m["model"] or "", m["end"]
    if m := _STATISTIC.fullmatch(text):
        word = m["word"].lower()
        found["statistic"] = m["model"] or "", "mean" if word in MEANS else "sd" if word in SPREADS else "p"
    for kind, pattern in (("label", _LABEL), ("bound", _BOUND)):
        if m := pattern.fullmatch(text):
            found[kind] = m["model"] or "", m[kind]
    return found


def member_lists(lists: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Which columns of lists of numbers are members: those that say so, or all where nothing else is a forecast.

    >>> member_lists(["net", "lags"], ["y"]), member_lists(["net_samples", "lags"], ["y", "q0.1"])
    (['net', 'lags'], ['net_samples'])
    """
    some = [name for name in lists if "quantile" not in str(name).lower()]
    named = [name for name in some if _LISTS.fullmatch(str(name)) or owner_of(str(name)) is not None]
    return named if any(readings(str(name)) for name in others) else some


# --- writing


@dataclass(frozen=True)
class Style:
    """How the levels of one model are written.

    ``way`` is that of a `Level`; ``lead`` goes before the digits.  ``decimals`` of fractions if their number is fixed;
    of intervals and percents whether there is one, or a zero before one digit.
    """

    way: str = "fraction"
    lead: str = "_q"
    decimals: int | None = None

    def write(self, level: float, others: Iterable[float]) -> str:
        """The ending of a quantile's name; of intervals both ends must be among the levels.

        >>> Style("interval", "-").write(0.05, [0.05, 0.95]), Style("interval", "-").write(0.05, [0.05])
        ('-lo-90', '-ql0.05')
        """
        if self.way == "interval":
            if abs(level - 0.5) < 1e-9:
                return f"{self.lead}median"
            if not any(abs(1.0 - level - other) < 1e-9 for other in others):
                return f"{self.lead}ql{plain(level)}"
            share = round(100.0 * abs(1.0 - 2.0 * level), 9)
            text = plain(share) if self.decimals is None else repr(share)
            return f"{self.lead}{'lo' if level < 0.5 else 'hi'}-{text}"
        if self.way == "percent":
            text = plain(100.0 * level)
            return f"{self.lead}{text.zfill(2) if self.decimals else text}"
        if self.way == "signed":
            text = f"{100.0 * level:.{self.decimals or 0}f}"
            return f"{self.lead}{text if abs(float(text) - 100.0 * level) < 1e-7 else plain(100.0 * level)}%"
        fixed = plain(level) if self.decimals is None else f"{level:.{self.decimals}f}"
        return f"{self.lead}{fixed if abs(float(fixed) - level) < 1e-9 else plain(level)}"


def style_of(levels: Sequence[Level]) -> Style:
    """How a model's levels are written, from those that are there.

    >>> style_of([level_of("m_q0.100"), level_of("m_q0.900")]).write(0.25, [])
    '_q0.250'
    """
    for way in ("interval", "percent", "signed", "fraction"):
        some = [level for level in levels if level.way == way]
        if not some:
            continue
        digits = [level.digits for level in some]
        if way == "interval":
            return Style(way, some[0].lead, 1 if any("." in text for text in digits) else None)
        if way == "percent":
            return Style(way, some[0].lead, 2 if any(text.startswith("0") for text in digits) else None)
        decimals = [text.partition(".")[2] for text in digits]
        if way == "signed":
            return Style(way, some[0].lead, max(map(len, decimals)))
        padded = any(text.endswith("0") for text in decimals)
        return Style(way, some[0].lead, max(map(len, decimals)) if padded else None)
    return Style()


# --- ours


def owner_of(text: str) -> str | None:
    """What a column that came out begins with, which is `Form.base` of its model; None if it is not ours.

    >>> owner_of("ETS_orcast-lo-90"), owner_of("orcast_status"), owner_of("ETS_orcast_v2"), owner_of("ETS")
    ('ETS_orcast', 'orcast', None, None)
    """
    for m in re.finditer(rf"(?:^|(?<=_)){OWN}(?=$|[-_ ])", text):
        ending = text[m.end() + 1 :]
        if not ending or ending in CERTIFICATE:
            return text[: m.end()]
        if any(model == "" and kind != "bound" for kind, (model, _) in readings(ending).items()):
            return text[: m.end()]
    return None


# --- in sentences


def plain(value: float) -> str:
    """A number as people write it.

    >>> plain(0.1), plain(90.0), plain(97.5)
    ('0.1', '90', '97.5')
    """
    return f"{value:.10f}".rstrip("0").rstrip(".")


def listed(names: Iterable[Any], last: str = "and", *, quoted: bool = True) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    "'a', 'b' and 'c'"
    """
    texts = [repr(name) if quoted else str(name) for name in names]
    if len(texts) > 8:
        texts = [*texts[:6], f"{len(texts) - 6} more"]
    return "none" if not texts else texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def of_model(model: str) -> str:
    """Whose it is."""
    return f" of model {model!r}" if model else ""


def of_series(key: Hashable) -> str:
    """Whose it is."""
    return "" if key is None else f" of series {key!r}"


def rows_text(rows: Sequence[Any] | NDArray[np.intp]) -> str:
    """Some rows: how many, and the first of them.

    >>> rows_text([4]), rows_text(range(7))
    ('row 4', '7 rows: 0, 1, 2, 3, 4, ...')
    """
    shown = ", ".join(str(int(row)) for row in rows[:5])
    if len(rows) == 1:
        return f"row {shown}"
    return f"{len(rows)} rows: {shown}{', ...' if len(rows) > 5 else ''}"
