"""`orcast watch`: alarms of tables or a store, as they come."""

from __future__ import annotations

import argparse
import signal
import time

from orcast.cli.columns import add_columns
from orcast.cli.common import Parts, part, say

DESCRIPTION = """\
Print alarms on the calibration of forecasts as they come: the worst first, then each new one and its
end.  SOURCE is a table that `orcast check` reads, a folder of such tables, or a store.  A table is
read again when it has changed; one that is missing, half written or wrong is named on stderr.

An alarm says that forecasts were miscalibrated at some time; a change, that they err in another way
than before.  Whenever you stop, a share of at most --alpha of the series that raised an alarm is
expected to be calibrated.  A series has one false change in --run-length rounds on average.

With --once the exit code is 1 if an alarm has not ended, 2 if a table could not be read."""

EXAMPLES = """\
  orcast watch forecasts.csv                     follow a table that grows
  orcast watch forecasts/ --every 60 --json      all tables of a folder, also new ones
  orcast watch sqlite:///wind.db                 the monitors of a store
  orcast watch wind.csv --once                   for a schedule: exits with 1 if an alarm has not ended
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    watch = part(parts, "watch", help="print alarms as they come", description=DESCRIPTION, examples=EXAMPLES)
    watch.add_argument("source", metavar="SOURCE", help="a table, a folder of tables, or file or URL of a store")
    watch.add_argument("--once", action="store_true", help="look once, and exit with 1 if an alarm has not ended")
    watch.add_argument("--every", type=float, metavar="S", default=10.0, help="seconds between looks (default: 10)")
    watch.add_argument("--json", action="store_true", help="print a line of JSON for each alarm")
    watch.add_argument("-q", "--quiet", action="store_true", help="print alarms and errors alone")
    watch.add_argument("--alpha", type=float, metavar="A", default=0.05, help="share of false alarms (default: 0.05)")
    rounds = "mean rounds to a false change of a series (default: 100000)"
    watch.add_argument("--run-length", type=float, metavar="N", default=100_000.0, help=rounds)
    add_columns(watch)
    watch.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look, print, and wait, until a signal comes."""
    from orcast.cli.alarms import Watch
    from orcast.stream.serve import Signals, Stopped
    from orcast.validation import number

    number(options.every, "--every (in seconds)", 0.01, 1e6)
    number(options.alpha, "--alpha", 1e-9, 0.5)
    number(options.run_length, "--run-length (in rounds)", 2.0, 1e12)
    watch = Watch(options)
    with Signals() as signals:
        try:
            watch.look()
            if not options.quiet:
                then = "" if options.once else f"; looking every {options.every:g} s, Ctrl-C ends"
                say(f"{watch.streams:,} streams of forecasts, {watch.standing:,} in alarm{then}")
            while not options.once:
                signals.wait(lambda: time.sleep(options.every))
                watch.look()
            return 1 if watch.standing else 2 if watch.errors else 0
        except Stopped:
            return 130 if signals.by == signal.SIGINT else 0
        finally:
            watch.close()
