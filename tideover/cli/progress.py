"""What shows that something goes on: a bar for whatever takes more than two seconds, or lines."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

APPEARS_AFTER_S = 2.0
"""When a bar appears."""
LINE_EVERY_S = 5.0
"""How often a line is written where there is no terminal for a bar."""


class Bar:
    """A bar on standard error, which appears after two seconds and goes away at the end; if that is no
    terminal, a line there every five seconds.

    Call it with what is being done, how much is done, and of how much (0: that is not known).
    """

    def __init__(self, what: str = "simulating") -> None:
        self._state = (what, 0.0, 0)
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._ended = threading.Event()
        self._begun = 0.0

    def __enter__(self) -> Bar:
        self._begun = time.monotonic()
        work = self._appear if sys.stderr.isatty() else self._tell
        threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended.set()
            if self._progress is not None:
                self._progress.stop()

    def __call__(self, what: str, done: float, total: int) -> None:
        with self._lock:
            self._state = (what, done, total)
            self._update()

    def runs(self, done: int, total: int) -> None:
        """The same for simulated runs."""
        self("simulating", done, total)

    def _tell(self) -> None:
        while not self._ended.wait(LINE_EVERY_S):
            with self._lock, suppress(OSError, ValueError):  # nobody reads it, or it is closed
                if not self._ended.is_set():
                    sys.stderr.write(f"{self._line()}\n")
                    sys.stderr.flush()

    def _line(self) -> str:
        """What is being done, as ``simulating: 12 of 2,000, 35 s``."""
        what, done, total = self._state
        of = f": {int(done):,} of {total:,}" if total else f": {int(done):,}" if done else ""
        seconds = int(time.monotonic() - self._begun)
        minutes = f"{seconds // 60} min " if seconds >= 60 else ""
        return f"{what}{of}, {minutes}{seconds % 60} s"

    def _appear(self) -> None:
        if self._ended.wait(APPEARS_AFTER_S):
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        with self._lock:
            if self._ended.is_set():
                return
            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                Elapsed(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.add_task("", total=None)
            self._update()
            self._progress.start()

    def _update(self) -> None:
        if self._progress is not None:
            what, done, total = self._state
            self._progress.update(
                self._progress.task_ids[0], description=what, completed=int(done), total=total or None
            )
