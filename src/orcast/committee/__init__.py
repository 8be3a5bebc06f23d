"""Committee of quantile forecasts: members correct the base forecast, weights by their losses mix them.

A member is one file (`base`, `correction`, `house`, `pooled`) and one row of `members.MEMBERS`; `stream` mixes them and
corrects the levels, `group` runs streams that share information. The files are compiled as those of
`orcast.kernels` are.
"""

import os
import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader

if os.environ.get("ORCAST_KERNELS") == "python":
    sys.path_importer_cache[__path__[0]] = FileFinder(__path__[0], (SourceFileLoader, SOURCE_SUFFIXES))
