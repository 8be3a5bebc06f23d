"""Committee of quantile forecasts: members correct the base forecast, weights by their losses mix them.

A member is one file (`regressed`, `pooled`) and one row of `members.MEMBERS`; `stream` mixes them and corrects the
levels, `group` runs streams that share information.  The files are compiled as those of `orcast.kernels` are.
"""

import orcast.kernels  # noqa: F401 - decides how the files are loaded
