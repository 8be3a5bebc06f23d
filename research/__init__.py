"""Research code around orcast, outside the wheel: the comparison with rivals, the paper's experiments, benchmarks."""
