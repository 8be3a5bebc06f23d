"""`orcast log`: a table of what was forecast, and known, at a time."""

from __future__ import annotations

import argparse

from orcast.cli.common import Parts, need, numbers, part, say, stored

DESCRIPTION = """\
Print the forecasts of a store, one row each, with their base forecasts and the outcomes that were
known at a time.  Times without a zone are in UTC; a date is the whole day."""

EXAMPLES = """\
  orcast log wind.db --as-of 2026-03-03                     known at the end of March 3
  orcast log wind.db --series north --start 2026-03-01 -o march.parquet
  orcast log postgresql://forecasts@db/wind --levels 0.05,0.95
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    log = part(parts, "log", help="what was forecast and known at a time", description=DESCRIPTION, examples=EXAMPLES)
    log.add_argument("store", metavar="DB", help="file or URL of the store")
    log.add_argument("--series", metavar="NAME", action="append", help="series; may be repeated (default: all)")
    log.add_argument("--as-of", metavar="TIME", help="leave out what was issued or known later")
    log.add_argument("--start", metavar="TIME", help="first time that the forecasts are about")
    log.add_argument("--end", metavar="TIME", help="last time that the forecasts are about")
    log.add_argument("--levels", metavar="A,B,...", help="quantiles (default: 0.05,0.25,0.5,0.75,0.95)")
    log.add_argument("-o", "--output", metavar="FILE", default="-", help="file of the table (default: CSV to stdout)")
    log.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the log."""
    need("cli", "polars")
    from orcast.cli import tables
    from orcast.store.log import LEVELS

    if options.output != tables.PIPE:
        tables.separator_of(options.output)
    tables.check_places({"DB": options.store}, {"--output": options.output})
    with stored(options.store) as store:
        known = {str(name): name for name in store.names()}
        names = [known.get(name, name) for name in options.series or ()]
        given = {name: getattr(options, name) for name in ("as_of", "start", "end")}
        levels = numbers(options.levels, "levels") or LEVELS
        found = store.rounds(*names, **given, levels=levels, backend="polars")
        tables.write(found, options.output)
        if not found.height and store.transact(lambda: store.tables.about("frame")) is not None:
            say("no rounds: the store has the state of a frame, which keeps none; keep the frames that it returned")
        elif not found.height:
            say("no rounds of these series and times")
    return 0
