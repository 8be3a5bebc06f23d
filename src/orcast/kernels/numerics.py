"""Elementary functions and searches that kernels share."""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

if not cython.compiled:
    from orcast.kernels.pure import exp, log


def power(x, n):
    """x^n for a whole number n >= 0, by squaring; a compiler may replace a power by other products."""
    result = 1.0
    while n > 0:
        if n & 1:
            result *= x
        n >>= 1
        if n > 0:
            x *= x
    return result


def real_power(x, exponent):
    """x^exponent for x > 0."""
    return exp(exponent * log(x))


def search_left(row, size, value):
    """Index of the first number of an increasing row that is not below a value (numpy.searchsorted, side left)."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if row[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
