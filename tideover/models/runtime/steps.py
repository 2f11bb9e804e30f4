"""What a protocol does, step by step: for the trace, the space-time diagram and audits."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """One step of a protocol, as who takes it announces it.

    at      the instant (ns)
    who     name of the task, or of the role (driver, coordinator), that takes it
    what    the step in the protocol's own words, without numbers: the same each time
    detail  what is different each time: how many tuples, which number
    to      name of who a message goes to; empty: it is none
    turn    that of the control action which takes it (`tideover.sim.kernel.Kernel.acting`); -1: data do
    """

    at: int
    who: str
    what: str
    detail: str = ""
    to: str = ""
    turn: float = -1

    @property
    def text(self) -> str:
        """The step as the trace prints it.

        >>> Step(0, "split.0", "buffer replayed", "12 tuples", "count.1").text
        'split.0: buffer replayed to count.1 (12 tuples)'
        """
        to = f" to {self.to}" if self.to else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.who}: {self.what}{to}{detail}"
