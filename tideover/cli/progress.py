"""A progress bar for whatever takes more than two seconds."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

APPEARS_AFTER_S = 2.0


class Bar:
    """A bar on standard error, if that is a terminal; it appears after two seconds and goes away at the end.

    Call it with what is being done, how much is done, and of how much.
    """

    def __init__(self, what: str = "simulating") -> None:
        self._state = (what, 0.0, 0)
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._timer = threading.Timer(APPEARS_AFTER_S, self._appear)
        self._timer.daemon = True

    def __enter__(self) -> Bar:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._timer.function = lambda: None
            if self._progress is not None:
                self._progress.stop()

    def __call__(self, what: str, done: float, total: int) -> None:
        with self._lock:
            self._state = (what, done, total)
            self._update()

    def runs(self, done: int, total: int) -> None:
        """The same for simulated runs."""
        self("simulating", done, total)

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        with self._lock:
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
