"""`orcast stream`: JSON lines in, JSON lines out, so that any language can use orcast as a filter.

`protocol` reads a line and writes an answer, `session` has the series and their games, `journal` and `snapshot` keep
them on the disk, `durable_session` does so before each answer, and `serve` is the loop.
"""
