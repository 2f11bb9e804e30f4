"""Ctrl-C, and SIGTERM where that is to end as it does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noted(asked: threading.Event) -> Iterator[None]:
    """Ctrl-C sets an event, and so does SIGTERM where it is `terminable`. An exception in the middle of a
    call would break Spark's connection.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    which = [signal.SIGINT]
    if signal.getsignal(signal.SIGTERM) is signal.default_int_handler:
        which.append(signal.SIGTERM)
    before = {one: signal.signal(one, lambda *_: asked.set()) for one in which}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
