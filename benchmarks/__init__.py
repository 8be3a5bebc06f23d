"""Benchmarks: ``python -m benchmarks`` measures every target in one run and prints ok or MISSED beside each."""
