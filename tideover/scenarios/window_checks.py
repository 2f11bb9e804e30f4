"""What must hold between windows and the rest of a scenario."""

from __future__ import annotations

from collections.abc import Iterator

from tideover.models.config import Scenario, deployment_of
from tideover.models.job.topology import Component
from tideover.models.strategies.base import STRATEGIES

Found = tuple[tuple[str, ...], str]
"""Where it is wrong, and what."""


def check(scenario: Scenario) -> Iterator[Found]:
    """All problems of windows that slide, or go by event."""
    for c in deployment_of(scenario).topology.components:
        for sort in _sorts(c):
            able = sorted(kind for kind, cls in STRATEGIES.items() if sort in cls.windows)
            if sort not in scenario.strategy.windows:
                key = _KEYS[sort]
                yield (
                    ("topology", c.name, "bolt") if key is None else ("topology", c.name, "window", key),
                    f"does not go with the strategy {scenario.strategy.kind}: {_reason(sort, scenario)} "
                    f"{', '.join(able)}",
                )
        if c.window is not None and c.window.by == "event" and not c.anchored:
            message = (
                "is of what spouts emit: windows that it reads put out no events; read the spouts' tuples"
            )
            yield ("topology", c.name, "window", "by"), message


def _reason(sort: str, scenario: Scenario) -> str:
    if sort == "arrival session" and scenario.strategy.needs.log:
        return (
            "what it reads again in a log comes at another time, so sessions by arrival would not be put out "
            "again as they were; add by: event; they go with"
        )
    return f"what becomes of {_NAMES[sort]} after a failure is told for"


_KEYS: dict[str, str | None] = {
    "sliding": "slide",
    "event": "by",
    "session": "gap",
    "arrival session": "gap",
    "aside": "late",
    "join": None,
    "ids": "saved",
}
_NAMES: dict[str, str] = {
    "sliding": "windows that slide",
    "event": "windows by event",
    "session": "sessions by event",
    "arrival session": "sessions by arrival",
    "aside": "what is put aside",
    "join": "joins",
    "ids": "windows of which ids are saved",
}


def _sorts(c: Component) -> Iterator[str]:
    """What a component's windows ask of a strategy."""
    if c.window is None:
        return
    if c.bolt.sides is not None:
        yield "join"
    if c.window.slide is not None or c.window.slide_tuples is not None:
        yield "sliding"
    if c.window.saved == "ids":
        yield "ids"
    if c.window.gap is not None and c.window.by == "arrival":
        yield "arrival session"
    if c.window.by == "event":
        yield "event"
        if c.window.gap is not None:
            yield "session"
        if c.window.late == "aside":
            yield "aside"
