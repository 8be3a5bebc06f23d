"""Kill a stream again and again: the script behind a test, because it forks and a test runner should not.

``python stream_kills.py SEED KILLS FOLDER``: plays lines once undisturbed and once under SIGKILL at random moments,
each time sending again what was not answered, and says in JSON whether all answers and the final file are the same.
"""

import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from stream_lines import content, some_lines

OPTIONS = ["--levels", "0.05,0.5,0.95"]


def start(state: Path) -> tuple[int, int, int]:
    """A child that is `orcast stream`, with the ends of its pipes."""
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(to_child, 0)
            os.dup2(from_child, 1)
            os.closerange(3, 64)
            from orcast.cli import main

            os._exit(main(["stream", "--state", str(state), *OPTIONS]))
        finally:
            os._exit(70)
    os.close(to_child)
    os.close(from_child)
    os.set_blocking(from_parent, False)
    return child, from_parent, to_parent


def talk(state: Path, lines: list[bytes], deadline: float | None, at_most: int | None) -> tuple[list[bytes], int]:
    """Send lines, gather whole answers, kill at the deadline or after some answers; also the exit status."""
    child, sink, source = start(state)
    os.set_blocking(source, False)
    left, got, ended = memoryview(b"".join(line + b"\n" for line in lines)), b"", False
    begin = time.perf_counter()
    while not ended:
        if left is not None:
            try:
                left = left[os.write(sink, left[: 2**12]) :]
            except BlockingIOError:
                pass
            except BrokenPipeError:
                left = left[:0]
            if not left:
                os.close(sink)
                left = None
        try:
            part = os.read(source, 2**16)
            ended = not part
            got += part
        except BlockingIOError:
            time.sleep(1e-5)
        late = deadline is not None and time.perf_counter() - begin > deadline
        if late or (at_most is not None and got.count(b"\n") >= at_most):
            os.kill(child, signal.SIGKILL)
            deadline = at_most = None
    if left is not None:
        os.close(sink)
    os.close(source)
    _, status = os.waitpid(child, 0)
    return got.split(b"\n")[:-1], status


def without_number(answer: bytes) -> bytes:
    """Lines are counted from 0 in each process."""
    plain = json.loads(answer)
    plain.pop("line", None)
    return json.dumps(plain).encode() if "error" in plain else answer


def main(seed: int, kills: int, folder: Path) -> None:
    random.seed(seed)
    lines = some_lines(seed, 400)
    calm, stormy = folder / "calm", folder / "stormy"
    begin = time.perf_counter()
    expected, status = talk(calm, lines, None, None)
    usual = time.perf_counter() - begin
    answers: list[bytes] = []
    killed = back = 0
    while True:
        last = killed >= kills
        # the one before may be sent again too: a client need not know which was the last
        again = random.randint(0, 1) if answers else 0
        rest = lines[len(answers) - again :]
        # the first ones by their answers: a machine that is less busy than a moment ago may be through before its time
        by_time = random.random() < 0.7 and killed >= kills // 4
        deadline = None if last or not by_time else random.expovariate(1.0) * 2.5 * usual / max(kills, 1) + 5e-3
        at_most = None if last or by_time else random.randint(0, 2 * len(lines) // kills + 1)
        got, status = talk(stormy, rest, deadline, at_most)
        if again and got:
            if without_number(got[0]) != without_number(answers[-1]):
                print(json.dumps({"repeat": [got[0].decode(), answers[-1].decode()]}))
                return
            back += 1
            got = got[1:]
        elif again:
            again = 0
        answers += got
        killed += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):
            break
    differ = [
        i for i, (a, b) in enumerate(zip(expected, answers, strict=False)) if without_number(a) != without_number(b)
    ]
    left = sorted(path.name for path in folder.iterdir())
    told = {
        "lines": len(lines),
        "answers": [len(expected), len(answers)],
        "differ": differ[:3],
        "state": content(calm) == content(stormy),
        "killed": killed,
        "back": back,
        "left": left,
        "status": status,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    # compiled and imported before the first fork: a child then starts at once
    from orcast.stream.session import Session

    session = Session()
    for line in some_lines(0, 60):
        with contextlib.suppress(TypeError, ValueError):
            session.answer(line)
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
