"""Checks of a payoff, of ours or of your own: may it be played, and is its promise kept against the worst?

`orcast.testing.adversaries` has the adversaries.
"""

from orcast.testing.checks import (
    PayoffError,
    check_all,
    check_guarantee,
    check_jacobian,
    check_payoff,
    check_state,
    check_table,
)
from orcast.testing.consequences import worst_outcome

__all__ = [
    "PayoffError",
    "check_all",
    "check_guarantee",
    "check_jacobian",
    "check_payoff",
    "check_state",
    "check_table",
    "worst_outcome",
]
