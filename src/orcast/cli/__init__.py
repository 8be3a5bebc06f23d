"""The command `orcast`: one module for each of its parts."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from orcast.cli import check, log, recalibrate, serve, stream, watch
from orcast.cli.common import Examples, say

__all__ = ["main", "parser"]

EPILOG = """exit codes:
  0  fine
  1  done, but rows or forecasts need attention: stderr says which
  2  the input or the command was not understood: nothing was written
  130  stopped by Ctrl-C

`orcast COMMAND --help` describes each command.
"""


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command and its parts."""
    from orcast import __version__

    command = argparse.ArgumentParser(
        prog="orcast",
        description="Keeps probabilistic forecasts calibrated on any sequence of outcomes.",
        epilog=EPILOG,
        formatter_class=Examples,
    )
    command.add_argument("--version", action="version", version=f"orcast {__version__}")
    parts = command.add_subparsers(dest="part", required=True, metavar="command")
    for part in (recalibrate, check, watch, stream, log, serve):
        part.add(parts)
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        say("stopped")
        return 130
    except BrokenPipeError:
        # the reader is gone: avoid an error from the flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, RuntimeError, ValueError, TypeError, ImportError) as reason:
        # any other message is a fault of ours: its trace is wanted
        if not isinstance(reason, (OSError, ImportError)) and not str(reason).startswith("expected "):
            raise
        say(str(reason))
        return 2
