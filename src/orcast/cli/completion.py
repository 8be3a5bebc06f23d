"""`orcast completion`: shells that complete the command."""

from __future__ import annotations

import argparse

from orcast.cli.common import Parts, need, part

SHELLS = ("bash", "zsh", "tcsh")

EXAMPLES = """\
  orcast completion bash > ~/.local/share/bash-completion/completions/orcast
  orcast completion zsh > ~/.zfunc/_orcast        # with ~/.zfunc in $fpath
  orcast completion tcsh > ~/.orcast.tcsh         # and: source ~/.orcast.tcsh
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    completion = part(
        parts,
        "completion",
        help="print what makes a shell complete this command",
        description="Print what makes a shell complete this command.",
        examples=EXAMPLES,
    )
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the completion of a shell."""
    need("cli", "shtab")
    import shtab

    from orcast.cli import parser

    print(shtab.complete(parser(), shell=options.shell))
    return 0
