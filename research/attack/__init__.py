"""Attacks on the guarantee: `python -m research attack`."""
