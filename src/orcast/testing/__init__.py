"""Numerical checks of a payoff and of its guarantee."""

from orcast.testing.checks import PayoffError, check_guarantee, check_payoff
from orcast.testing.consequences import worst_outcome

__all__ = ["PayoffError", "check_guarantee", "check_payoff", "worst_outcome"]
