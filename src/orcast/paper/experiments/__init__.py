"""Real series, ordinary experts and the experiments made with them."""
