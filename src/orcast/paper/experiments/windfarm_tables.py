"""The tables of experiment 3, the paper's claim among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from orcast.paper.experiments.output import Cell, Claim, ResultTable, Row, mean, yes_or_no
from orcast.paper.experiments.windfarm_runs import (
    BY_HOUR,
    DEFAULT,
    EACH,
    EXPERT,
    ORCA,
    SHOWN,
    Comparisons,
    LossComparison,
    best_orca,
    chosen_orca,
    first_half_change,
)

KNEW = (
    "What was known: all forecasts of a day are made before its first hour. The expert has the 24 values of the day "
    "before and was fitted to all earlier days, the warm-up included. Last outcome is the normal distribution around "
    "the last hour of the day before, with the root mean square, by hour, of how far the last 500 days went from "
    "there; it has no expert. The other methods have the expert's forecasts and the outcomes of the days before, from "
    "the first after the warm-up on; those for each hour have those of their own hour alone."
)


def change_table(comparisons: Comparisons) -> ResultTable:
    """Change of the mean loss against the expert, with its interval."""
    days = comparisons[SHOWN][EXPERT].losses.size
    title = f"Mean loss against the expert's over {days} days, %, with paired 95% intervals"
    names = [name for name in comparisons[SHOWN] if name != EXPERT]
    return replace(_by_lambda("windfarm", title, comparisons, names, _shown), caption=KNEW)


def _shown(one: LossComparison) -> str:
    return f"{one.change:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"


def loss_table(comparisons: Comparisons, unit: str) -> ResultTable:
    """The mean loss of a day."""
    title = f"Mean loss of a day, {unit} h"
    names = list(comparisons[SHOWN])
    return _by_lambda("windfarm_losses", title, comparisons, names, lambda one: mean(one.losses), ",.0f")


def regret_tables(comparisons: Comparisons) -> Iterator[ResultTable]:
    """Mean loss minus that of the best fixed quantile in hindsight: of the expert, and of the method itself."""
    kinds: tuple[tuple[str, str, Callable[[LossComparison], Cell]], ...] = (
        ("windfarm_regret", "expert's", lambda one: one.regret),
        ("windfarm_own_regret", "method's own", lambda one: one.own_regret),
    )
    for name, whose, figure in kinds:
        title = f"Regret against the {whose} best fixed quantile in hindsight, in % of the expert's mean loss"
        yield _by_lambda(name, title, comparisons, list(comparisons[SHOWN]), figure, "+.2f")


def _by_lambda(
    name: str,
    title: str,
    comparisons: Comparisons,
    methods: Sequence[str],
    figure: Callable[[LossComparison], Cell],
    digits: str = "",
) -> ResultTable:
    rows: list[Row] = [
        {"method": method, **{f"lambda = {lam:g}": figure(each[method]) for lam, each in comparisons.items()}}
        for method in methods
    ]
    return ResultTable.of(name, title, rows, dict.fromkeys(rows[0], digits))


def rule_table(comparisons: Comparisons) -> ResultTable:
    """What ORCA's rate is chosen by, and what came of each."""
    first, chosen = first_half_change(comparisons), chosen_orca(comparisons)
    rows: list[Row] = [
        {
            "rate": name.removeprefix(ORCA),
            "loss in the first half, %": first(name),
            "over all days, %": mean(each[name].change for each in comparisons.values()),
            "chosen": "yes" if name == chosen else "",
        }
        for name in comparisons[SHOWN]
        if name.startswith(ORCA)
    ]
    title = "ORCA's rate: the lowest loss in the first half of the days, against the expert's, mean over lambda"
    return ResultTable.of("windfarm_rule", title, rows, dict.fromkeys(rows[0], "+.2f"))


def claims(comparisons: Comparisons) -> tuple[Claim, ...]:
    """The claim of section 6.3."""
    (here, met), (bound, _) = (_lowered(comparisons, choose(comparisons)) for choose in (chosen_orca, best_orca))
    claim = "ORCA consistently improves the decision loss (held to: a lower mean loss for every lambda)"
    return (Claim("6.3", claim, here, yes_or_no(met), bound),)


def _lowered(comparisons: Comparisons, name: str) -> tuple[str, bool]:
    """The change of the mean loss, and whether it is below zero for every lambda."""
    changes = [each[name].change for each in comparisons.values()]
    lower = [lam for lam, each in comparisons.items() if each[name].change < 0.0]
    sure = [lam for lam, each in comparisons.items() if each[name].better]
    here = f"{min(changes):+.1f}% to {max(changes):+.1f}%"
    return f"{here}; lower for lambda: {_list(lower)}; beyond chance for: {_list(sure)}", len(lower) == len(comparisons)


def target_table(comparisons: Comparisons) -> ResultTable:
    """What was to be reached, and whether it was."""
    rows: list[tuple[Cell, ...]] = []
    for name in (DEFAULT, EACH, BY_HOUR):
        lower = [lam for lam, each in comparisons.items() if each[name].change < 0.0]
        below = [lam for lam, each in comparisons.items() if each[name].better]
        rows.append((name, _list(lower), _list(below), yes_or_no(len(below) == len(comparisons))))
    columns = ("method", "mean loss lower, lambda", "interval below zero, lambda", "met for every lambda")
    return ResultTable(
        "windfarm_targets", "Ours is to lower the loss for every lambda, with a 95% interval below zero", columns, rows
    )


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values) or "none"
