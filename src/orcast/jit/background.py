"""Compiled code for entry kernels: from the cache, or from a process beside this one.

A thread cares for what is wanted: it loads what the cache has, and has the rest compiled by a process of low priority
(`orcast.jit.worker`) that ends with this one.  Only one process compiles for a cache; the others look for what it
leaves there.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from orcast.jit import cache as kernel_cache
from orcast.jit.entry import EntryKernel
from orcast.jit.registry import reached_from
from orcast.jit.signature import Signature, key_of, signature_of
from orcast.validation import warn_user

BOOT = "import sys; sys.path[:] = {path!r}; from orcast.jit.worker import main; main()"
# Seconds between two looks at the cache.
POLL = 0.1
# Seconds that a kernel takes to compile, about, as long as nothing better is known.
SECONDS_A_KERNEL = 0.3
# Seconds that loading compiled code takes, about: most of it the import of numba.
LOAD_SECONDS = 1.0
# Seconds of waiting, or of playing in Python, before it is said.
SILENCE = 2.0
# Seconds between two lines of progress where there is no terminal.
PAUSE = 15.0
# How often the process that compiles may end by itself.
MOST_FAILURES = 3
# Held while an entry gets code: two threads would each begin a dispatcher of their own, and one would be lost.  Nobody
# forks meanwhile: a child would wait for ever for the locks of numba and of its import, whose thread it does not have.
loading = threading.RLock()


@dataclass
class Wanted:
    """Compiled code that an entry could use."""

    entry: EntryKernel
    signature: Signature
    key: str
    sent: bool = False  # to the process that compiles
    compiled: bool = False

    def request(self) -> bytes:
        """As the worker reads it."""
        module, name = self.entry.path.rsplit(".", 1)
        return json.dumps({"module": module, "name": name, "signature": self.signature}).encode() + b"\n"


@dataclass
class Progress:
    """How far the worker is."""

    began: float = 0.0
    done: int = 0
    of: int = 0


@cache
def compiler() -> Any:
    """The module that compiles, or None where numba is missing or does not import; said once."""
    try:
        from orcast.jit import compiler as module
    except Exception as reason:
        if os.environ.get("ORCAST_KERNELS", "").strip().lower() == "compiled":
            warn_user(f"kernels play in Python: numba cannot be imported ({reason})", RuntimeWarning)
        return None
    return module


@cache
def installed() -> bool:
    """Whether numba is there; it may still fail to import."""
    from importlib.util import find_spec

    try:
        return find_spec("numba") is not None
    except (ImportError, ValueError):
        return False


def wanted_for(entry: EntryKernel, args: tuple[Any, ...]) -> Wanted:
    """What a call could use."""
    signature = signature_of(args)
    return Wanted(entry, signature, key_of(entry.path, signature))


def load(wanted: Wanted) -> bool:
    """Give an entry its compiled code from the cache, if that has it and it fits."""
    code = kernel_cache.read(wanted.key)
    if code is None:
        return False
    with loading:
        module = compiler()
        if module is None:
            return False
        try:
            use_code(wanted.entry, module, code)
        except Exception:  # damaged, or for another processor: it will be replaced
            return False
    return True


def use_code(entry: EntryKernel, module: Any, code: bytes) -> None:
    """Let an entry play compiled code from now on, beside what it has for other types."""
    with loading:
        dispatcher = entry.code or module.new_entry(entry.source)
        module.load_entry(dispatcher, code)
        dispatcher.disable_compile()
        entry.code = dispatcher


def compile_here(wanted: Wanted) -> bool:
    """Load or compile an entry in this process; False where there is no compiler."""
    with loading:
        module, entry = compiler(), wanted.entry
    if module is None:
        return False
    own = entry.path.startswith("orcast.")  # the digest of the cache knows no others
    if own and load(wanted):
        return True
    with kernel_cache.lock(wanted.key, wait=True):
        if own and load(wanted):  # another process has compiled it meanwhile
            return True
        code = module.compile_entry(module.new_entry(entry.source), wanted.signature)
        if own:
            try:
                kernel_cache.write(wanted.key, code)
            except OSError as reason:
                _say_once(f"compiled kernels cannot be kept: {reason}")
    use_code(entry, module, code)
    return True


class Background:
    """What is wanted, and the thread that cares for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wanted: dict[str, Wanted] = {}
        self.given_up: dict[str, str] = {}
        self.thread: threading.Thread | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.progress = Progress()
        self.failures = 0
        self.stopped = False

    def want(self, wanted: Wanted) -> None:
        """Have an entry compiled beside."""
        with self.lock:
            if self.stopped or wanted.key in self.wanted or wanted.key in self.given_up:
                return
            self.wanted[wanted.key] = wanted
            if self.thread is None:
                self.thread = threading.Thread(target=self._care, name="orcast kernels", daemon=True)
                self.thread.start()

    def pending(self) -> list[Wanted]:
        """What is still wanted."""
        with self.lock:
            return list(self.wanted.values())

    def _care(self) -> None:
        """Load what the cache has and have the rest compiled, until nothing is wanted."""
        try:
            self._care_until_done()
        except Exception as reason:  # nobody may wait for a thread that is gone
            self._give_up(f"{type(reason).__name__}: {reason}")
            with self.lock:
                self._end_process()
                self.thread = None

    def _care_until_done(self) -> None:
        while True:
            for wanted in self.pending():
                if self.stopped:
                    break
                compiled = wanted.compiled  # before the look at the cache: it may come between the two
                if load(wanted):
                    self._settle(wanted)
                elif compiled:
                    self._settle(wanted, "compiled code cannot be loaded")
            with self.lock:
                if self.stopped or not self.wanted:
                    self._end_process()
                    self.thread = None
                    return
            self._have_compiled()
            time.sleep(POLL)

    def _settle(self, wanted: Wanted, reason: str = "") -> None:
        with self.lock:
            self.wanted.pop(wanted.key, None)
            if reason:
                self.given_up[wanted.key] = reason

    def _give_up(self, reason: str) -> None:
        """Nothing can be compiled here: everything goes on in Python."""
        for wanted in self.pending():
            self._settle(wanted, reason)
        _say_once(f"kernels go on in Python, some fifty times slower than compiled: {reason}")

    def _have_compiled(self) -> None:
        """See to it that a process compiles, this one's or another's."""
        if kernel_cache.folder() is None:
            self._give_up("there is no folder to keep compiled ones in (NUMBA_CACHE_DIR names one)")
            return
        if self.process is not None and self.process.poll() is not None:
            self._after_end(self.process.returncode)
        if self.process is None:
            with kernel_cache.lock(wait=False) as free:
                pass
            if not free:
                return
            try:
                self.process = start_worker()
            except OSError as reason:
                self._give_up(f"no process can be started that compiles ({reason})")
                return
            threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
            for wanted in self.pending():
                wanted.sent = False
        for wanted in self.pending():
            if not wanted.sent:
                wanted.sent = True
                self._send(wanted.request())

    def _send(self, line: bytes) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # if it has ended, that is seen soon
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def _after_end(self, code: int) -> None:
        """The process has ended by itself: another one compiles, or something is wrong."""
        from orcast.jit.worker import BUSY

        self._end_process()
        if code != BUSY and not self.stopped:
            self.failures += 1
            if self.failures >= MOST_FAILURES:
                self._give_up(f"the process that compiles ended {MOST_FAILURES} times (code {code})")

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """Read what the worker reports."""
        assert process.stdout is not None
        try:
            for line in process.stdout:
                message = json.loads(line)
                wanted = self.wanted.get(message.get("key", ""))
                if "reason" in message:
                    if wanted is not None:
                        self._settle(wanted, message["reason"])
                        _say_once(f"a kernel goes on in Python: {wanted.entry.path}: {message['reason']}")
                elif wanted is not None:
                    wanted.compiled = True
                elif "done" in message:
                    self.progress = Progress(message["began"], message["done"], message["of"])
        except (OSError, ValueError):
            return

    def _end_process(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def stop(self) -> None:
        """End what runs beside, before this process ends."""
        self.stopped = True
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=10.0)
        self._end_process()


def start_worker() -> subprocess.Popen[bytes]:
    """A process that compiles what it reads."""
    if not sys.executable or getattr(sys, "frozen", False):
        raise OSError("this program has no interpreter to start")
    own: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {"creationflags": 0x00004200}
    return subprocess.Popen(
        [sys.executable, "-c", BOOT.format(path=[str(place) for place in sys.path])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ORCAST_KERNELS": "python"},
        **own,
    )


_background = Background()
atexit.register(lambda: _background.stop())


def _forget() -> None:
    """After a fork the thread and the process are the parent's; pipes left open here would keep that one alive."""
    global _background
    if _background.process is not None:
        for pipe in (_background.process.stdin, _background.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    os.close(pipe.fileno())
    _background = Background()
    loading.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=loading.acquire, after_in_parent=loading.release, after_in_child=_forget)


def compile_beside(entry: EntryKernel, args: tuple[Any, ...]) -> None:
    """Have an entry compiled for the types of a call, and go on."""
    if installed():
        _background.want(wanted_for(entry, args))


def wait_if_faster(entry: EntryKernel, args: tuple[Any, ...], rounds: int, seconds: float) -> None:
    """Before so many rounds, which take these seconds in Python: wait for compiled code if that is faster."""
    if not installed():
        return
    wanted = wanted_for(entry, args)
    cached = kernel_cache.read(wanted.key) is not None
    expected = LOAD_SECONDS if cached else SECONDS_A_KERNEL * len(reached_from(entry.source))
    if expected <= seconds:
        _background.want(wanted)
        _wait(wanted, expected, seconds)
    if entry.code is None and seconds > SILENCE:
        text = f"playing {rounds:,} rounds in Python, about {seconds:.0f} s; compiled ones are faster (orcast warm)"
        _say_once(text, about=entry.path)


def _wait(wanted: Wanted, expected: float, seconds: float) -> None:
    """Wait until an entry has its code, for as long as that is expected to take less than these seconds."""
    line, began = ProgressLine(), time.perf_counter()
    try:
        while wanted.entry.code is None and wanted.key in _background.wanted:
            waited, progress = time.perf_counter() - began, _background.progress
            if progress.done > 0.1 * progress.of:
                share = progress.done / progress.of
                expected = waited + (time.time() - progress.began) * (1.0 / share - 1.0)
            if expected - waited > seconds:
                return
            if waited > SILENCE:
                line.show(_how_far(waited, progress))
            time.sleep(POLL)
    finally:
        line.end()


def _how_far(waited: float, progress: Progress) -> str:
    """What is known, and no forecast: the last kernels are the largest, and other programs want the machine too."""
    done = f"{progress.done} of {progress.of}, " if progress.of else ""
    return f"compiling kernels, once on this machine (a minute, or some if it is busy): {done}{waited:.0f} s so far"


class ProgressLine:
    """A line on the error stream: written over on a terminal, elsewhere a new one now and then."""

    def __init__(self) -> None:
        self.shown = ""
        self.next = 0.0  # when there may be another one

    def show(self, text: str) -> None:
        """Say it."""
        # whatever stands for the error stream, it must not be in the way of a game
        with contextlib.suppress(Exception):
            terminal = sys.stderr.isatty()
            if terminal or time.monotonic() >= self.next:
                sys.stderr.write(f"\r\x1b[Korcast: {text}" if terminal else f"orcast: {text}\n")
                sys.stderr.flush()
                self.next = time.monotonic() + PAUSE
            self.shown = text

    def end(self) -> None:
        """Go to the next line."""
        with contextlib.suppress(Exception):
            if self.shown and sys.stderr.isatty():
                sys.stderr.write("\n")
                sys.stderr.flush()
        self.shown = ""


_told: set[str] = set()


def _say_once(message: str, about: str = "") -> None:
    """A line on the error stream, once in this process of each thing that it is about."""
    if (about or message) not in _told:
        _told.add(about or message)
        line = ProgressLine()
        line.show(message)
        line.end()
