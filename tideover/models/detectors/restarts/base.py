"""What a restart strategy is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from tideover.sim.registry import Part, Registry

RESTARTS: Registry[RestartStrategy] = Registry("restart strategy")


class Earlier(NamedTuple):
    """A restart that there was: when the failure was noticed, and when it was over (ns); if the next failure
    came before that, when this one was noticed.
    """

    noticed: int
    ready: int


class RestartStrategy(Part):
    """How long a restart waits after a failure was noticed.

    Subclasses register themselves with ``@RESTARTS.register(name)`` and give ``wait``.
    """

    kind: ClassVar[str]

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        """How long (ns) the restart waits after a failure that is ``noticed`` then (ns), after these
        ``earlier`` ones; None: it is given up.
        """
        raise NotImplementedError
