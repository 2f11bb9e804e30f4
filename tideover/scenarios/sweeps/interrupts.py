"""Ctrl-C while Spark works."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noted(asked: threading.Event) -> Iterator[None]:
    """Ctrl-C sets an event. An exception in the middle of a call would break Spark's connection."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
