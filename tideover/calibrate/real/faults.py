"""Doing harm to the processes that we started, at a planned moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tideover.calibrate.real.events import read_events


class NoVictim(RuntimeError):
    """The process that was to be harmed is not there."""


def strike(moment: float, victim: int, harm: Callable[[], None], events: Path) -> dict[str, float]:
    """Wait for the moment (unix time), look at the query's logs, and do harm at once.

    Returns what was done: ``at`` (unix time), ``victim`` (number of the executor; -1: the driver), the
    batches that were ``logged`` last and ``committed`` last (-1: none), and ``logged_at`` (unix time of the
    former).
    """
    checkpoint = _checkpoint(events)
    time.sleep(max(0.0, moment - time.time()))
    logged, committed, logged_at = _progress(checkpoint)
    at = time.time()
    harm()
    return {"at": at, "victim": victim, "logged": logged, "committed": committed, "logged_at": logged_at}


def oldest(executors: dict[int, psutil.Process]) -> tuple[int, psutil.Process]:
    """The executor that is there longest: the one that holds state, since state stays where it is.

    Raises:
        NoVictim: there is none
    """
    if not executors:
        raise NoVictim("there is no executor that could be killed or stopped")
    return next(iter(executors.items()))


def _checkpoint(events: Path) -> Path | None:
    """The checkpoint of the run that this driver started last."""
    found = [event["checkpoint"] for event in read_events(events) if event["event"] == "query"]
    return Path(found[-1]) if found else None


def _progress(checkpoint: Path | None) -> tuple[int, int, float]:
    if checkpoint is None:
        return -1, -1, float("nan")
    logged, committed = (_newest(checkpoint / name) for name in ("offsets", "commits"))
    try:
        return logged, committed, (checkpoint / "offsets" / str(logged)).stat().st_mtime
    except OSError:
        return logged, committed, float("nan")


def _newest(directory: Path) -> int:
    names = (path.name for path in directory.glob("*"))
    return max((int(name) for name in names if name.isdigit()), default=-1)
