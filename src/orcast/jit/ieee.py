"""Elementary functions for kernels: those of `math`, with infinities and nan where it raises.

Compiled code takes the functions of the C library, as `math` does; they agree to the last bit.  A compiler may replace
a power by products or roots, so kernels use `power` for whole exponents and `real_power` for others.
"""

from __future__ import annotations

import math
from math import ceil, erf, floor, log1p, pi, sin

from orcast.jit.registry import STAND_INS, kernel

__all__ = ["ceil", "erf", "exp", "floor", "log", "log1p", "pi", "power", "real_power", "sin", "sqrt"]

inf = math.inf


def exp(x: float) -> float:
    """e^x; inf where that is too large."""
    try:
        return math.exp(x)
    except OverflowError:
        return inf


def log(x: float) -> float:
    """The natural logarithm; -inf at 0, nan below."""
    if x > 0.0:
        return math.log(x)
    return -inf if x == 0.0 else math.nan


def sqrt(x: float) -> float:
    """The square root; nan below 0."""
    return math.sqrt(x) if x >= 0.0 else math.nan


STAND_INS |= {exp: math.exp, log: math.log, sqrt: math.sqrt}


@kernel
def power(x: float, n: int) -> float:
    """x^n for a whole number n >= 0, by squaring."""
    result = 1.0
    while n > 0:
        if n & 1:
            result *= x
        n >>= 1
        if n > 0:
            x *= x
    return result


@kernel
def real_power(x: float, exponent: float) -> float:
    """x^exponent for x > 0."""
    return exp(exponent * log(x))
