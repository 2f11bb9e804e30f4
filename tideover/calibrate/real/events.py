"""The raw record of a session: one JSON object a line, with unix times, written at once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class EventLog:
    """Appends events to a file; several threads may do so. A process that is killed loses none of them."""

    def __init__(self, path: Path, **always: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()
        self._always = always

    def write(self, event: str, at: float | None = None, **details: Any) -> None:
        """One event; ``at`` is its unix time in s, now if not given."""
        at = time.time() if at is None else at
        line = json.dumps({"event": event, "at": at, **self._always, **details})
        with self._lock:
            self._file.write(line + "\n")

    def close(self) -> None:
        """Write no more."""
        self._file.close()


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a file. A last line that was cut off by a kill is left out."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)
