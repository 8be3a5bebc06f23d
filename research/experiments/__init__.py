"""Experiments of the paper (section 6): `python -m research reproduce`."""
