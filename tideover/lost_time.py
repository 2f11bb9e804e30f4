"""Settings that lose the least time: ``tideover.interval`` and ``tideover.detector``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tideover.api import loaded
from tideover.scenarios.lost_time import detector as by_timeout
from tideover.scenarios.lost_time import interval as by_interval
from tideover.scenarios.lost_time.curve import Report
from tideover.scenarios.lost_time.detector import BestTimeout
from tideover.scenarios.lost_time.interval import BestInterval
from tideover.scenarios.scenario import Source
from tideover.scenarios.settings import Settings
from tideover.sim.units import parse_duration


def interval(
    scenario: Source,
    mtbf: Mapping[str, str] = {},
    settings: Settings = (),
    *,
    intervals: Sequence[str] | None = None,
    replications: int | None = None,
    report: Report | None = None,
) -> BestInterval:
    """Find the checkpoint interval at which the least time is lost: to checkpoints, which keep tasks from
    work, and to failures, after which what came since the last one is done again.

    ``scenario``, ``settings`` and ``mtbf`` as for ``availability``. ``intervals``: those that are tried, as
    ``["30 s", "2 min"]``; None: around the optimum of a formula. ``replications``: runs for each interval and
    cause; None: those of the scenario, at least 10. ``report``: called with what is being done, how many runs
    are done, and of how many.

    Raises like ``availability``, and ScenarioError for a strategy without checkpoints, or with free ones.
    """
    values = None if intervals is None else [parse_duration(text) for text in intervals]
    return by_interval.find(by_interval.ask(loaded(scenario, settings), mtbf, values, replications), report)


def detector(
    scenario: Source,
    pauses: str | Mapping[str, Any],
    every: str,
    mtbf: Mapping[str, str] = {},
    settings: Settings = (),
    *,
    timeouts: Sequence[str] | None = None,
    replications: int | None = None,
    report: Report | None = None,
) -> BestTimeout:
    """Find the timeout of a detector of kind ``heartbeats`` at which the least time is lost: to failures that
    are noticed late, and to processes that only paused, and are restarted all the same.

    ``pauses``: how long a bolt task's process stops, again and again, as a scenario says it: ``"12 s"`` or
    ``{"kind": "exponential", "mean": "3 s"}``; ``every``: from one pause of a process to its next on average,
    as ``"1 h"``. ``timeouts``: those that are tried, as ``["50 s", "20 s"]``. The rest as for ``interval``.

    Raises like ``interval``, and ScenarioError for a scenario without such a detector.
    """
    values = None if timeouts is None else [parse_duration(text) for text in timeouts]
    given = by_timeout.pauses_of(pauses), parse_duration(every)
    asked = by_timeout.ask(loaded(scenario, settings), *given, mtbf, values, replications)
    return by_timeout.find(asked, report)
