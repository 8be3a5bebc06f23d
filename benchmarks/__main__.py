"""``python -m benchmarks [section ...]``: each target with what was measured, in one run."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from benchmarks import (
    binary,
    cold,
    exact,
    faults,
    groups,
    guarantee,
    harm,
    integrations,
    known,
    memory,
    orca,
    panel,
    quality,
    results,
    spark,
    speed,
    stream,
    unbounded,
    yardstick,
)

SECTIONS = {
    "quality": quality,
    "yardstick": yardstick,
    "harm": harm,
    "unbounded": unbounded,
    "binary": binary,
    "groups": groups,
    "guarantee": guarantee,
    "orca": orca,
    "exact": exact,
    "speed": speed,
    "cold": cold,
    "memory": memory,
    "panel": panel,
    "stream": stream,
    "integrations": integrations,
    "known": known,
    "spark": spark,
    "faults": faults,
}
# These take hours, and are quick unless they are named.
LONG = ("guarantee",)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"any of {', '.join(SECTIONS)}; none: all")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and repetitions")
    parser.add_argument("--out", metavar="FILE", help="write the numbers too, as JSON or, if it ends in .md, as tables")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    limits = parser.add_argument_group("guarantee")
    limits.add_argument("--rounds", type=int, metavar="N", help="rounds of each game")
    limits.add_argument("--seconds", type=float, metavar="S", help="CPU seconds after which a game is broken off")
    limits.add_argument("--games", metavar="REGEX", help="only the games whose name it is found in")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"expected sections among {', '.join(SECTIONS)}, got {', '.join(unknown)}")
    chosen = [name for name in SECTIONS if not options.sections or name in options.sections]
    seen: dict[str, list[results.Line | results.Remark]] = {}
    start = time.perf_counter()
    for name in chosen:
        module = SECTIONS[name]
        print(f"{'' if name == chosen[0] else chr(10)}{module.TITLE}", flush=True)
        begin = time.perf_counter()
        seen[module.TITLE] = []
        given: dict[str, Any] = {}
        if module is guarantee:
            given = {key: getattr(options, key) for key in ("rounds", "seconds", "games")}
            given = {key: value for key, value in given.items() if value is not None}
        quick = options.quick or (name in LONG and not options.sections)
        for line in module.measure(quick, **given):
            seen[module.TITLE].append(line)
            print(results.as_text(line), flush=True)
        print(f"  ({name}: {time.perf_counter() - begin:.1f} s)", flush=True)
        if options.out:  # after each section: a run that breaks off later has told what it knew
            results.write(options.out, seen)
    verdicts = [line.verdict for lines in seen.values() for line in lines if isinstance(line, results.Line)]
    missed, reached = verdicts.count("MISSED"), verdicts.count("ok")
    print(f"\n{reached} targets ok, {missed} MISSED, in {time.perf_counter() - start:.0f} s")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
