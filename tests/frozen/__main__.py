"""Write the frozen answers: `python -m tests.frozen [CASE ...]` from the root of the repository; all cases by default.

Rewrite a case only for a deliberate change of behaviour, in a commit of its own with its reason and numbers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from .answers import PATH, arrays, write
from .cases import CASES


def main(names: list[str]) -> None:
    """Run the named cases and store their answers."""
    unknown = set(names) - CASES.keys()
    if unknown:
        raise SystemExit(f"expected names of cases ({', '.join(CASES)}), got {', '.join(sorted(unknown))}")
    new = {}
    for name in names or CASES:
        begin = time.process_time()
        new[name] = arrays(name, CASES[name].run())
        print(f"{name:24} {sum(each.size for each in new[name].values()):6} values"
              f" {time.process_time() - begin:7.2f} CPU s", flush=True)  # fmt: skip
    write(new, list(CASES))
    print(f"{PATH.name}: {PATH.stat().st_size:,} bytes")


main(sys.argv[1:])
