"""`python -m research compare | reproduce | bench | attack`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

COMMANDS = {
    "compare": ("research.comparison.command", "run orcast and its rivals on many streams"),
    "reproduce": ("research.experiments.command", "run the paper's experiments"),
    "bench": ("research.benchmarks.command", "measure speed and accuracy"),
    "attack": ("research.attack.command", "attack the guarantee: every payoff, space and adversary"),
}
EXAMPLES = """examples:
  python -m research compare --quick          orcast and its rivals on a few short streams
  python -m research reproduce all --quick    the paper's experiments, small
  python -m research bench --quick            speed and accuracy, as ratios from one run

exit codes:
  0  success
  1  finished, but a method failed or a target was missed
  2  the arguments or the input were not understood
  130  stopped by Ctrl-C
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    summaries = "\n".join(f"  {name}: {summary}" for name, (_, summary) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m research",
        description=f"Research around orcast.\n{summaries}",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of the command, see COMMAND --help")
    given = parser.parse_args(arguments)
    module, summary = COMMANDS[given.command]
    try:
        command = importlib.import_module(module)
        own = argparse.ArgumentParser(prog=f"python -m research {given.command}", description=summary)
        command.add_arguments(own)
        return int(command.run(own.parse_args(given.options)))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (OSError, ImportError, ValueError) as error:
        # errors of the input begin with "expected"; others are faults, and their trace is needed
        if isinstance(error, ValueError) and not str(error).startswith("expected "):
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
