"""Names of columns: one table of conventions, and the names of the columns that are added.

A name is a model's name and an ending, or an ending alone: ``ETS-lo-90``, ``q0.1``.  A model without a name is "".
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

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
# Names that are read if none of the usual ones is there.
ALSO = {
    "y": re.compile(r"price|actual[-_ ].+|obs(?:erved)?[-_ ].+|.+[-_ ](?:actual|obs|observed)", re.IGNORECASE),
    "time": re.compile(r"delivery(?:[-_ ].+)?", re.IGNORECASE),
    "series": re.compile(r"location|station|site|level", re.IGNORECASE),
}
# Sets of columns that settle the roles if all of a set are there.
CONVENTIONS: tuple[dict[str, str], ...] = (
    {"series": "unique_id", "time": "ds", "y": "y"},
    {"series": "item_id", "time": "timestamp", "y": "target"},
    {"cutoff": "time", "time": "valid_time"},
    {"time": "ds", "y": "y"},
)
# Columns of numbers that are no forecasts.
NEVER = {*SERIES, *TIME, *CUTOFF, *HORIZON, *OUTCOME, "index", "level_0", "unnamed: 0"}

# Columns that are added for each model, beside the forecasts.
CERTIFICATE = ("holds", "promised", "miscalibration", "status")
OWN = "orcast"

# Libraries that write the ends of intervals without a level: the default level, the model and the columns.
DEFAULTS = (
    ("Prophet", 0.8, "yhat", ("yhat_lower", "yhat", "yhat_upper")),
    ("skforecast", 0.9, "", ("lower_bound", "pred", "upper_bound")),
    ("statsmodels", 0.95, "", ("mean_ci_lower", "mean", "mean_ci_upper")),
)
# Models whose mean and spread are those of members beside them.
ENSEMBLES = ("ens", "ensemble", "member", "mem", "sample")
# NeuralProphet's forecasts one, two, ... steps ahead in one row.
STEPS = re.compile(r"yhat\d+")

_MODEL = r"(?:(?P<model>.+)(?P<joint>[-_]))?"
_FIRST = r"(?:(?P<model>.+?)(?P<joint>[-_]))?"
_OWN = rf"(?:(?P<model>(?:.+_)?{OWN})(?P<joint>_))?"
_NUMBER = r"(?P<which>\d+(?:\.\d+)?)"
_PROBABILITY = r"(?:p|prob|proba|probability)"
# Endings of columns of forecasts: the kind, and the pattern.  "below" and "above" are the ends of an interval with its
# share in percent; "bound" is an end without a share.
ENDINGS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("below", rf"{_MODEL}(?P<lead>)lo[- .]{_NUMBER}"),
        ("above", rf"{_MODEL}(?P<lead>)hi[- .]{_NUMBER}"),
        ("median", rf"{_MODEL}(?P<lead>)(?P<which>median)"),
        ("fraction", rf"{_FIRST}(?P<lead>ql|q[-_]?|quantile[-_]?)(?P<which>0?\.\d+)"),
        ("fraction", rf"{_OWN}(?P<lead>)(?P<which>0?\.\d+)"),
        ("percent", rf"{_FIRST}(?P<lead>q[-_]?|p[-_]?)(?P<which>\d\d?(?:\.\d+)?)"),
        ("signed", r"(?:(?P<model>.+?)(?P<joint>[ _]))?(?P<lead>)(?P<which>\d\d?(?:\.\d+)?)%"),
        ("member", rf"{_MODEL}(?:member|sample|ensemble|ens|mem|draw|pred_boot)[-_]?(?P<which>\d+)"),
        ("mean", rf"{_MODEL}(?P<which>mean|mu|loc)"),
        ("sd", rf"{_MODEL}(?P<which>sd|std|scale|sigma|stddev|stdev)"),
        ("p", rf"{_MODEL}(?P<which>{_PROBABILITY})"),
        ("label", rf"{_MODEL}{_PROBABILITY}_(?P<which>.+)"),
        ("bound", rf"{_MODEL}(?P<which>(?:lower|upper|lo|hi|low|high)(?:[-_]?bound)?(?:[-_]?\d+)?)"),
    )
)
LEVEL_KINDS = ("below", "above", "median", "fraction", "percent", "signed")


# --- reading


class Level(NamedTuple):
    """A quantile in a name; ``kind`` is that of `ENDINGS`, ``lead`` the text between the model and the digits."""

    model: str
    level: float
    kind: str
    lead: str


def level_of(text: str) -> Level | None:
    """Read a name as a quantile; None if it is not one.

    >>> level_of("ETS-lo-90"), level_of("q0.1").level, level_of("LGBM-v2_q0.100").model, level_of("price")
    (Level(model='ETS', level=0.05, kind='below', lead='-'), 0.1, 'LGBM-v2', None)
    """
    for kind, pattern in ENDINGS:
        if kind in LEVEL_KINDS and (m := pattern.fullmatch(text)):
            digits = 0.0 if kind == "median" else float(m["which"])
            level = {
                "below": (100.0 - digits) / 200.0,
                "above": (100.0 + digits) / 200.0 if digits > 0.0 else 0.0,
                "median": 0.5,
                "fraction": digits,
            }.get(kind, digits / 100.0)
            fine = 0.0 < level < 1.0 and (level < 0.5 or kind != "below") and (level >= 0.01 or kind != "percent")
            return Level(m["model"] or "", round(level, 12), kind, (m["joint"] or "_") + m["lead"]) if fine else None
    return None


def readings(text: str) -> dict[str, tuple[str, Any]]:
    """All readings of a name: by kind, the model and the `Level`, the number of the member, or the text that was found.

    >>> readings("gefs_member_12"), readings("sample_weight"), readings("ETS_std")
    ({'member': ('gefs', '12')}, {}, {'sd': ('ETS', 'std')})
    >>> readings("prob_away_win"), readings("yhat_lower")
    ({'label': ('', 'away_win')}, {'bound': ('yhat', 'lower')})
    """
    found: dict[str, tuple[str, Any]] = {}
    if (level := level_of(text)) is not None:
        found["percent" if level.kind == "percent" else "level"] = level.model, level
    for kind, pattern in ENDINGS:
        if kind not in LEVEL_KINDS and (m := pattern.fullmatch(text)):
            found[kind] = m["model"] or "", m["which"]
    return found


# --- writing


class Style(NamedTuple):
    """Endings for the levels of one model: ``interval`` as in ``-lo-90``, else ``lead`` and the level."""

    interval: bool = False
    lead: str = "_q"

    def write(self, level: float, others: Iterable[float]) -> str:
        """Ending of a quantile's name; an interval needs both ends among the levels.

        >>> Style(True, "-").write(0.05, [0.05, 0.95]), Style(True, "-").write(0.05, [0.05])
        ('-lo-90', '-ql0.05')
        """
        if not self.interval:
            return f"{self.lead}{plain(level)}"
        if abs(level - 0.5) < 1e-9:
            return f"{self.lead}median"
        if not any(abs(1.0 - level - other) < 1e-9 for other in others):
            return f"{self.lead}ql{plain(level)}"
        return f"{self.lead}{'lo' if level < 0.5 else 'hi'}-{plain(100.0 * abs(1.0 - 2.0 * level))}"


def style_of(levels: Sequence[Level]) -> Style:
    """Style of the levels that a model has."""
    leads = {level.kind: level.lead for level in reversed(levels)}
    if "below" in leads or "above" in leads:
        return Style(True, leads.get("below", leads.get("above", "-")))
    return Style(lead=leads.get("fraction", "_q"))


def owner_of(text: str) -> str | None:
    """Beginning of a column that was added, which is `Form.base` of its model; None for other columns.

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


# --- sentences


def plain(value: float) -> str:
    """Number without superfluous zeros.

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
    """Model in a sentence."""
    return f" of model {model!r}" if model else ""


def of_series(key: Hashable) -> str:
    """Series in a sentence."""
    return "" if key is None else f" of series {key!r}"


def rows_text(rows: Sequence[Any] | NDArray[np.intp]) -> str:
    """Number of some rows, and the first of them.

    >>> rows_text([4]), rows_text(range(7))
    ('row 4', '7 rows: 0, 1, 2, 3, 4, ...')
    """
    shown = ", ".join(str(int(row)) for row in rows[:5])
    if len(rows) == 1:
        return f"row {shown}"
    return f"{len(rows)} rows: {shown}{', ...' if len(rows) > 5 else ''}"
