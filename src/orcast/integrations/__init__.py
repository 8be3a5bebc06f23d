"""orcast inside other libraries: a module each, imported by its own name and only when used."""
