# cython: boundscheck=False
"""Rows of numbers, and the scratch memory of a thread."""

import threading
from array import array
from math import nan

import cython

# Numbers in the first block of scratch memory; how many blocks there may be, and where a mark keeps the block.
FIRST_BLOCK, BLOCKS, BLOCK_UNIT = 65536, 24, 1 << 40

THREAD = threading.local()


def numbers_of(row):
    """Numbers of a 1-d float64 array: a pointer if compiled (the caller keeps the array alive), else a memoryview."""
    if cython.compiled:
        numbers = row
        return cython.address(numbers[0])
    return memoryview(row)


def readable_of(row):
    """Numbers of a 1-d float64 array that may be read-only; the caller only reads them."""
    if cython.compiled:
        constants = row
        return cython.cast(cython.p_double, cython.address(constants[0]))
    return memoryview(row)


def whole_of(row):
    """Numbers of a 1-d int64 array."""
    if cython.compiled:
        numbers = row
        return cython.address(numbers[0])
    return memoryview(row)


def cut(row, at, size):
    """`size` numbers of a row from `at` on."""
    if cython.compiled:
        return row + at
    return row[at : at + size]


def cut_whole(row, at, size):
    """`size` whole numbers of a row from `at` on."""
    if cython.compiled:
        return row + at
    return row[at : at + size]


class Workspace:
    """Scratch memory: a kernel calls `mark` first, takes numbers, and calls `release` before it returns.

    The fields of `rows.pxd` point to scratch memory of the round that is being computed. With AddressSanitizer (`make
    test-checked`) unused memory and a FENCE after each part are closed, and numbers are nan until they are set.
    """

    def __init__(self):
        self.block = self.used = 0
        if cython.compiled:
            grow(self, 0, FIRST_BLOCK)

    def __dealloc__(self):
        if cython.compiled:
            for i in range(BLOCKS):
                free(self.blocks[i])


def grow(w, block, size):
    """Allocate a block."""
    if block >= BLOCKS:
        abort()
    free(w.blocks[block])
    w.blocks[block] = new_block(size)
    w.sizes[block] = size
    close_scratch(w.blocks[block], size)


def mark(w):
    """Amount of scratch memory in use."""
    return w.block * BLOCK_UNIT + w.used


def release(w, mark):
    """Give back all that was taken since a mark."""
    if cython.compiled and FENCE > 0:
        close_since(w, mark // BLOCK_UNIT, mark % BLOCK_UNIT)
    w.block = mark // BLOCK_UNIT
    w.used = mark % BLOCK_UNIT


def close_since(w, block, used):
    """Close the scratch memory from a place on."""
    for i in range(block, w.block + 1):
        close_scratch(w.blocks[i] + used, w.sizes[i] - used)
        used = 0


def take(w, size):
    """Scratch memory for `size` numbers; they are not set."""
    if cython.compiled:
        needed = size + FENCE
        if w.used + needed > w.sizes[w.block]:
            w.block += 1
            w.used = 0
            if w.sizes[w.block] < needed:
                grow(w, w.block, max(needed, 2 * w.sizes[w.block - 1]))
        w.used += needed
        open_scratch(w.blocks[w.block] + (w.used - needed), size)
        return w.blocks[w.block] + (w.used - needed)
    return memoryview(array("d", [nan]) * size)


def workspace():
    """Scratch memory of the running thread."""
    try:
        return THREAD.workspace
    except AttributeError:
        THREAD.workspace = Workspace()
        return THREAD.workspace


def copy(source, size, target):
    """Copy numbers."""
    for i in range(size):
        target[i] = source[i]


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
