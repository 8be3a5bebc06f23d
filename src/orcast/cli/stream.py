"""`orcast stream`: JSON lines in, JSON lines out."""

from __future__ import annotations

import argparse

from orcast.cli.common import Parts, numbers, part

DESCRIPTION = """\
Recalibrate forecasts as they come: JSON lines in, JSON lines out, each answer flushed.  One line in is one line
out; empty lines are skipped.  A forecast is answered with a calibrated one in the same form, and its certificate:
  {"series": "a", "id": "14:00", "forecast": {"0.1": 3, "0.5": 4, "0.9": 6}}
Its outcome is answered with the guarantee so far, and with "alarm" if it raises one:
  {"series": "a", "id": "14:00", "y": 3.2}

Other forecasts are {"mean": 4, "sd": 1}, {"members": [3, 4, 6]}, {"p": 0.7} with outcomes 0 and 1, and
{"probabilities": {"home": 0.5, "draw": 0.3, "away": 0.2}} with labels as outcomes.  "drop": true says that an
outcome will never come.  Without "series" there is one, without "id" one round at a time.  The first line of a
series may have its "low", "high", "binary" or "labels".

A line that cannot be used is answered with {"error": "expected ..., got ...", "line": n} and changes nothing;
the exit code stays 0."""

STATE = """\
With --state each line is one transaction of FILE, a SQLite database or postgresql://HOST/DATABASE, which
several processes may share.  After a kill, start it again and send the lines that were not answered: a line that
comes again (same series, id and content) gets the same answer.  A series keeps the options with which it began."""

EXAMPLES = """\
  orcast stream --low 0 --high 36000 < lines.jsonl > answers.jsonl
  orcast stream --state wind.orcast --levels 0.05,0.5,0.95
  echo '{"forecast": {"mean": 4, "sd": 1}}' | orcast stream
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    told = "recalibrate line by line: JSON lines in, JSON lines out"
    stream = part(parts, "stream", help=told, description=DESCRIPTION, examples=EXAMPLES)
    series = stream.add_argument_group("series")
    series.add_argument("--low", type=float, metavar="X", help="lower bound of the outcomes")
    series.add_argument("--high", type=float, metavar="X", help="upper bound of the outcomes")
    series.add_argument("--memory", type=float, metavar="ROUNDS", help="forget the past at this rate (default: never)")
    outside = "outcomes beyond the bounds: refused (default), or moved to the bound"
    series.add_argument("--outside", choices=("raise", "clip"), help=outside)
    pending = "rounds that may be pending; then the oldest is evicted (default: 1000)"
    series.add_argument("--max-pending", type=int, metavar="N", help=pending)
    pool = "all series learn together: send the outcomes of a step before its next forecasts"
    series.add_argument("--pool", action="store_const", const=True, help=pool)
    levels = "quantiles to answer with (default: the forecast's)"
    series.add_argument("--levels", metavar="A,B,...", help=levels)
    state = stream.add_argument_group("state", description=STATE)
    state.add_argument("--state", metavar="FILE", help="keep the state in FILE and continue from it")
    state.add_argument("--sync", action="store_true", help="be safe against loss of power too; slower")
    state.add_argument("--remember", type=int, metavar="N", help="settled rounds to remember (default: 10000)")
    stream.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Answer stdin on stdout."""
    if options.sync and options.state is None:
        raise ValueError("expected --state beside --sync, got none")
    levels = numbers(options.levels, "levels")
    from orcast.stream.serve import serve
    from orcast.stream.session import Session

    given = {**vars(options), "levels": levels}
    names = ("low", "high", "levels", "outside", "memory", "max_pending", "remember", "pool")
    wanted = {name: given[name] for name in names if given[name] is not None}
    session = Session(options.state, sync=options.sync, **wanted)
    try:
        return serve(session)
    finally:
        session.close()
