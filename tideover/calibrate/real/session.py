"""The raw record of a session, as the supervisor and the drivers have written it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tideover.calibrate.real.events import read_events
from tideover.calibrate.real.plan import SessionPlan
from tideover.calibrate.real.schedule import Schedule
from tideover.calibrate.real.sink import read_windows

Row = dict[str, Any]
"""An event, or a row of a table, by field."""
NAN = float("nan")


@dataclass(frozen=True)
class Session:
    """The raw record of one session.

    java        its version
    lives       the events of each life of each driver, by the numbers of query and life
    supervisor  the supervisor's own events
    """

    directory: Path
    plan: SessionPlan
    schedule: Schedule
    java: str
    lives: dict[tuple[int, int], list[Row]]
    supervisor: list[Row]

    @classmethod
    def read(cls, directory: Path) -> Session:
        """Read what the supervisor and the drivers have written."""
        begun = json.loads((directory / "session.json").read_text())
        plan = TypeAdapter(SessionPlan).validate_python(begun["plan"])
        schedule, lives = plan.schedule(begun["t0"]), {}
        for path in directory.glob("driver-*.jsonl"):
            _, query, life = path.stem.split("-")
            lives[int(query), int(life)] = list(read_events(path))
        supervisor = list(read_events(directory / "supervisor.jsonl"))
        return cls(directory, plan, schedule, begun["java"], dict(sorted(lives.items())), supervisor)

    @cached_property
    def windows(self) -> dict[int, dict[str, int]]:
        """The results of all finished windows, by number."""
        return read_windows(self.directory / "sink")

    def since(self, unix: float) -> float:
        """A unix time as seconds since t0."""
        return unix - self.schedule.t0

    def first_after(self, at: float, events: list[Row], **fields: object) -> float:
        """When the first event with these fields came after ``at`` (unix time), s since t0; NaN: none did."""
        found = [event["at"] for event in events if event["at"] > at and fields.items() <= event.items()]
        return self.since(min(found)) if found else NAN
