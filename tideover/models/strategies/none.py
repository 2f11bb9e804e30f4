"""Amnesia: restart with empty state, replay nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy

if TYPE_CHECKING:
    from tideover.models.world import World


@STRATEGIES.register("none")
class Amnesia(Strategy):
    """No recovery at all: the baseline. What it loses is what the others save.

    >>> Amnesia().promise
    'at most once'
    """

    promise: ClassVar[Promise] = "at most once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host"})

    def protocol(self, world: World) -> Protocol:
        return Protocol(world)
