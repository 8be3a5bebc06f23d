"""Faults that the tests must catch: `python -m tests.mutate`, or `make mutate`.

`faults` is the written list.  Each is put into a copy of `src`, by itself, and the tests named for it run against
that copy: uncompiled, so that nothing has to be compiled again, and without the data folder, which not everyone has.
A fault that no test notices is a hole in the tests: write the missing one, do not remove the fault.
"""
