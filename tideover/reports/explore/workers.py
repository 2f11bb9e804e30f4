"""Runs are done in processes of their own, which end when a run takes too long, or too much memory."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from tideover.reports.explore.requests import Answer, Answers

LONGEST_S = 10.0
"""A run that takes longer is ended."""
MOST_BYTES = 2 << 30
"""Memory that runs may take, beyond what their process has before it is asked."""
SIDES = 2
"""Strategies that are shown side by side, each asked of a process of its own."""


class TooMuch(Exception):
    """A run has taken too long, or too much memory."""


class Superseded(Exception):
    """Whoever asked has asked something else meanwhile."""


class Refused(Exception):
    """What was asked cannot be answered; the message names it, and says what is allowed."""


class Workers:
    """Two processes that answer. ``source``: the scenario that was given on the command line, if any;
    ``most_bytes``: of memory, for each beyond what it has before it is asked.
    """

    def __init__(
        self, source: str | None = None, *, longest_s: float = LONGEST_S, most_bytes: int = MOST_BYTES
    ) -> None:
        self.longest_s, self._most_bytes = longest_s, most_bytes
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, "tideover.reports.explore.answer"])
        self._source = source
        self._idle: queue.Queue[_Worker] = queue.Queue()
        self._asked: dict[str, _Worker] = {}
        self._lock = threading.Lock()
        for _ in range(SIDES):
            self._idle.put(self._started())

    def ask(self, request: Mapping[str, Any], who: str) -> Answer:
        """The answer to a request. A newer one of the same ``who`` ends this one.

        Raises Refused, TooMuch, Superseded.
        """
        with self._lock:
            if (older := self._asked.pop(who, None)) is not None:
                older.superseded = True
                older.process.kill()
        worker = self._idle.get()
        with self._lock:
            self._asked[who] = worker
        found, failed = {}, None
        try:
            found = worker.answer(request, self.longest_s)
        except TimeoutError:
            failed = f"the run did not end within {self.longest_s:g} s: choose a lower rate, or a shorter run"
        except (EOFError, OSError):
            failed = "the run has ended its process: it may have taken too much memory"
        with self._lock:
            if self._asked.get(who) is worker:
                del self._asked[who]
        superseded = worker.superseded
        self._idle.put(self._again(worker) if superseded or failed else worker)
        if superseded:
            raise Superseded
        if failed:
            raise TooMuch(failed)
        if "refused" in found:
            raise Refused(found["refused"])
        if "too_much" in found:
            raise TooMuch(found["too_much"])
        return found

    def close(self) -> None:
        """End the processes."""
        while not self._idle.empty():
            self._idle.get().process.kill()

    def _started(self) -> _Worker:
        return _Worker(self._context, self._source, self._most_bytes)

    def _again(self, worker: _Worker) -> _Worker:
        worker.process.kill()
        worker.process.join()
        return self._started()


class _Worker:
    def __init__(self, context: Any, source: str | None, most_bytes: int) -> None:
        self.superseded = False
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, source, most_bytes), daemon=True)
        self.process.start()
        theirs.close()

    def answer(self, request: Mapping[str, Any], longest_s: float) -> Answer:
        """Raises TimeoutError, and EOFError or OSError if the process is gone."""
        self._pipe.send(dict(request))
        if not self._pipe.poll(longest_s):
            raise TimeoutError
        found: Answer = self._pipe.recv()
        return found


def _work(pipe: Connection, source: str | None, most_bytes: int) -> None:
    """Answer until nobody asks any more."""
    answers = Answers(source)
    answers.warm()
    _bound_memory(most_bytes)
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            pipe.send(answers(pipe.recv()))


def _bound_memory(most_bytes: int) -> None:
    """As far as the system lets one."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        import psutil

        most = psutil.Process().memory_info().vms + most_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
