"""State files as they were written by earlier versions, and what has to come of them.

A set is a folder, `v1` being what format 1 wrote: for each name the state itself, and in `NAME.json` how it is loaded,
the steps that are played after that, and the answers that the version gave which wrote it.  A set is written once, by
`python -m tests.golden.write tests/golden/v2` from the root of the repository, and never again: whatever changes,
the states in it must still be read, and give these answers.

`cases` says what is played before a state is written and after, `players` loads a state and plays a step, `given` has
the functions that no state holds, and `plain` reads steps and writes answers.
"""
