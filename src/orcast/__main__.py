"""`python -m orcast` is the command `orcast`."""

import sys

from orcast.cli import main

if __name__ == "__main__":
    sys.exit(main())
