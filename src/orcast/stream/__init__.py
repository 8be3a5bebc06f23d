"""`orcast stream`: JSON lines in, JSON lines out, so that any language can use orcast as a filter.

`protocol` reads a line and writes an answer, `series` has the states, `session` answers lines from and to a store, and
`serve` is the loop.
"""
