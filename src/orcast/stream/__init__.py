"""`orcast stream`: JSON lines in, JSON lines out, so that any language can use orcast as a filter.

`session` answers lines from and to a store, and `serve` is the loop.
"""
