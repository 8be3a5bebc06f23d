"""Benchmarks: `python -m research bench`."""
