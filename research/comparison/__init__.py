"""Comparison of orcast with its rivals on many streams (`python -m research compare`)."""
