"""`orcast warm`: compile all kernels now."""

from __future__ import annotations

import argparse
import sys

from orcast.cli.common import Parts, part

EXAMPLES = """\
  orcast warm                                  in the Dockerfile, or before the tests
  NUMBA_CACHE_DIR=/cache orcast warm           into a folder of your own
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    warm = part(
        parts,
        "warm",
        help="compile all kernels now",
        description="Compile all kernels into the cache.  Without it they play in Python, some fifty times slower, "
        "until a process beside the first game has compiled what that uses.",
        examples=EXAMPLES,
    )
    warm.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compile, and say how long it took."""
    from orcast.jit import cache
    from orcast.warm import warm

    folder = cache.folder()
    if folder is None:
        raise OSError(
            "expected a folder for compiled kernels that can be written to, got none (NUMBA_CACHE_DIR names one)"
        )
    print(f"compiling into {folder}: two or three minutes, or more if the machine is busy", file=sys.stderr)

    terminal = sys.stderr.isatty()

    def show(what: str, done: int, of: int) -> None:
        # on a terminal one line that changes; in a log a line for every tenth
        if terminal:
            print(f"\r{done} of {of} {what}\033[K", end="", file=sys.stderr, flush=True)
        elif done == of or done % 10 == 0:
            print(f"{done} of {of} {what}", file=sys.stderr, flush=True)

    count, seconds = warm(show)
    if terminal:
        print(file=sys.stderr)
    print(f"{count} kernels are compiled, in {seconds:.0f} s")
    return 0
