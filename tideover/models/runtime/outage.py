"""One fault, and when what it hit is back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

NEVER = 1 << 62
"""The moment at which something that is given up is back."""


class Return(NamedTuple):
    """When something that was hit is noticed, and when it is back (ns), as it is expected.

    ordered     a process in its place is to be launched, after a delay or when there is room for it
    launched    that process runs; from here on its tasks are prepared
    (None: nobody tells the stages of the restart apart)
    """

    detected: int
    ready: int
    ordered: int | None = None
    launched: int | None = None


@dataclass(eq=False)
class Outage:
    """A fault that struck (moments in ns).

    detected_at   all that it hit is noticed, or back
    ready_at      all that it hit is back; as planned, until something else changes it
    tasks         the physical tasks that it hit
    returns       the same two moments for each thing that it hit: tasks and machines
    passes        nothing is down: nobody notices, and it passes by itself when all would be back
    broken        hosts whose machines it has broken: they are repaired, and what was on their disks is gone
    masked        each of them had a live replica that went on
    unfelt        nothing that runs has anything to do with what it hit
    written_at    live replicas have written all the state that it took (ns); None: they have not, or need not
    overtakes     older outages of which not all had been sent again, or was there, when it struck
    watched       these, and older ones that were not over by then: they may take what is sent again later
    late          it has struck when what comes back at this instant was back, and what is noticed was
    unsettled     older ones of which something was not back by then, or waited to be sent again
    """

    number: int
    kind: str
    component: str
    failed_at: int
    detected_at: int
    ready_at: int
    tasks: list[Any] = field(default_factory=list)
    returns: dict[Any, Return] = field(default_factory=dict)
    passes: bool = False
    broken: frozenset[int] = frozenset()
    masked: bool = False
    unfelt: bool = False
    overtakes: tuple[Outage, ...] = ()
    watched: tuple[Outage, ...] = ()
    unsettled: tuple[Outage, ...] = ()
    written_at: int | None = None
    late: bool = False

    def hit(self, returns: dict[Any, Return]) -> None:
        """These are down, and expected back."""
        self.returns = dict(returns)
        self._settle()

    @property
    def stages(self) -> tuple[int, int] | None:
        """When all that it hit was ordered anew, and when all of it was launched (ns); None: nobody tells
        these stages apart.
        """
        found = [back for back in self.returns.values() if back.ordered is not None]
        if not found:
            return None
        ordered = max(min(back.ordered or 0, back.ready) for back in found)
        return ordered, max(min(back.launched or 0, back.ready) for back in found)

    def struck_again(self, victim: Any, newer: Outage) -> None:
        """A newer fault has hit what is not back yet: it is back from both when it is back from that one, and
        if nobody has noticed yet, detection begins anew too.
        """
        detected, again = self.returns[victim].detected, newer.returns[victim]
        noticed = detected < newer.failed_at + newer.late
        self._revise(victim, again._replace(detected=detected) if noticed else again)

    def expect(self, victim: Any, ready: int) -> None:
        """What it hit is back at ``ready`` (ns), or will be."""
        self._revise(victim, self.returns[victim]._replace(ready=ready))

    def _revise(self, victim: Any, back: Return) -> None:
        self.returns[victim] = back
        self._settle()

    def _settle(self) -> None:
        if self.returns:
            noticed = max(min(back.detected, back.ready) for back in self.returns.values())
            self.detected_at = max(self.failed_at, noticed)  # what is known to be down may be struck again
            self.ready_at = max(back.ready for back in self.returns.values())
