"""States on disk: a game as plain data and arrays, and the files that hold them."""
