"""How busy the machine is with other work, since that disturbs what is measured."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

EVERY_S = 1.0
"""How often to look. Looking takes some ms."""


class OtherWork:
    """Tells how many cores were busy, on average since the last look, with processes that are not ours."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._busy = _busy()
        self._ours: dict[tuple[int, float], float] | None = None

    def look(self, roots: Iterable[int]) -> float | None:
        """Cores busy with others; None at the first look, and less than a second after the last.

        roots: the pids of our processes; their descendants are ours too.
        """
        now = time.monotonic()
        if now - self._at < EVERY_S:
            return None
        busy, ours = _busy(), _spent(roots)
        others = None
        if self._ours is not None:
            own = sum(spent - self._ours.get(process, 0.0) for process, spent in ours.items())
            others = max(0.0, (busy - self._busy - own) / (now - self._at))
        self._at, self._busy, self._ours = now, busy, ours
        return others


def _busy() -> float:
    """CPU time, in s, that all cores have spent on anything."""
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))


def _spent(roots: Iterable[int]) -> dict[tuple[int, float], float]:
    """CPU time, in s, of these processes and their descendants, by pid and time of creation."""
    found = {}
    for root in roots:
        with suppress(psutil.Error):
            parent = psutil.Process(root)
            for process in [parent, *parent.children(recursive=True)]:
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    found[process.pid, process.create_time()] = times.user + times.system
    return found
