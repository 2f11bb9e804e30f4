"""One fault, and when what it hit is back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Return(NamedTuple):
    """When something that was hit is noticed, and when it is back (ns)."""

    detected: int
    ready: int


@dataclass(eq=False)
class Outage:
    """A fault that struck (moments in ns).

    detected_at   all that it hit is noticed, or back
    ready_at      all that it hit is back; as planned, until something else changes it
    tasks         the physical tasks that it hit
    returns       the same two moments for each thing that it hit: tasks and machines
    masked        each of them had a live replica that went on
    overtakes     older outages that were not settled when it struck: not all was sent again because of them
    """

    number: int
    kind: str
    component: str
    failed_at: int
    detected_at: int
    ready_at: int
    tasks: list[Any] = field(default_factory=list)
    returns: dict[Any, Return] = field(default_factory=dict)
    masked: bool = False
    overtakes: tuple[Outage, ...] = ()

    def hit(self, victims: list[Any]) -> None:
        """These are down."""
        self.returns = {victim: Return(self.detected_at, self.ready_at) for victim in victims}

    def struck_again(self, victim: Any, newer: Outage) -> None:
        """A newer fault has hit what is not back yet: it is back from both when it is back from that one, and
        if nobody has noticed yet, detection begins anew too.
        """
        detected = self.returns[victim].detected
        detected = detected if detected < newer.failed_at else newer.detected_at
        self._revise(victim, Return(detected, newer.ready_at))

    def expect(self, victim: Any, ready: int) -> None:
        """What it hit is back at ``ready`` (ns), or will be."""
        self._revise(victim, self.returns[victim]._replace(ready=ready))

    def _revise(self, victim: Any, back: Return) -> None:
        self.returns[victim] = back
        self.detected_at = max(min(back) for back in self.returns.values())
        self.ready_at = max(back.ready for back in self.returns.values())
