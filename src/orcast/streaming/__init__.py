"""`orcast stream`: JSON lines in, JSON lines out, so that any language can use orcast as a filter.

`lines` reads a line and writes an answer, `desk` has the series and their games, `journal` and `snapshot` keep
them on the disk, `keeper` does so before each answer, and `serve` is the loop.
"""
