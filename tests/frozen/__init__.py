"""Answers of the library for small deterministic runs, kept in one file and compared with today's code."""
