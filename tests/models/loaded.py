"""log ──▶ job, as a file would say it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tideover.models.config import Scenario
from tideover.scenarios.loader import load


def log_and_job(
    log: Mapping[str, Any],
    job: Mapping[str, Any],
    failures: Iterable[Mapping[str, Any]] = (),
    strategy: Any = "none",
    settings: Iterable[str] = (),
    more: Mapping[str, Any] = {},
    **run: Any,
) -> Scenario:
    """Ten keys; a job that has windows counts. It crashes, where its failures do not say something else.
    ``more``: what a scenario has besides.
    """
    reads = (
        {"bolt": "windowed_count", "from": {"log": {"fields": ["key"]}}}
        if "window" in job
        else {"bolt": "forward", "from": {"log": "shuffle"}}
    )
    topology = {"log": {"spout": "keys", "keys": 10, **log}, "job": reads | job}
    crashes = [{"kind": "crash_task", "component": "job", **failure} for failure in failures]
    given = {"topology": topology, "strategy": strategy, "failures": crashes, "run": run, **more}
    return load(given, list(settings))


def markers(seconds: float) -> dict[str, str]:
    """Windows of so many seconds, ended by markers."""
    return {"length": f"{seconds} s", "trigger": "marker"}
