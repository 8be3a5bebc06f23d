"""Requests to stop the threads that run a frame."""

from __future__ import annotations

import threading


class Stopped(Exception):
    """Raised in a thread that was asked to stop; its results are not used."""


class Stop(threading.Event):
    """Request to stop; threads check it between streams, and often within long ones."""

    def check(self) -> None:
        """Raise `Stopped` if the request was made."""
        if self.is_set():
            raise Stopped


# Of runs that are not in threads: an interrupt is raised where they are.
NEVER = Stop()
