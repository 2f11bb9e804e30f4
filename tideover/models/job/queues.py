"""Bounded queues: how many messages wait before a task, and what their senders do when there is no room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import Field

from tideover.sim.registry import Part

WhenFull = Literal["block", "drop", "credits"]


class QueueSettings(Part):
    """The receive queue of a component's tasks, and the send queue of those tasks.

    block    a message takes a place when it leaves its sender, which waits until there is one
    drop     a message that finds the queue full is lost
    credits  as block, but ``length`` places for each channel, and the sender learns of a free one a link's
             latency later (Flink)

    What waits in a log takes no place: a task that reads one has it behind its own queue.
    """

    length: Annotated[
        int | None,
        Field(ge=1, le=10**9, description="messages that may wait before a task; default: any number"),
    ] = None
    when_full: Annotated[
        WhenFull | None, Field(description="what its senders do when it is full; default: block")
    ] = None
    send: Annotated[
        int | None,
        Field(
            ge=0, le=10**9, description="messages that a task may have to send and still go on; default: 0"
        ),
    ] = None


UNSAID = QueueSettings()
"""Of a component, or a scenario, that says nothing of queues."""


@dataclass(frozen=True)
class Bounds:
    """What holds for the tasks of a component; ``length`` None: any number may wait."""

    length: int | None
    when_full: WhenFull
    send: int

    @property
    def holds_back(self) -> bool:
        """Whether senders may have to wait."""
        return self.length is not None and self.when_full != "drop"


class HasQueue(Protocol):
    """The configuration of a component."""

    @property
    def queue(self) -> QueueSettings | None: ...


def bounds_of(topology: Mapping[str, HasQueue], default: QueueSettings | None) -> dict[str, Bounds]:
    """Bounds by component: what it does not say itself is said by ``default``."""
    found, other = {}, default or UNSAID
    for name, config in topology.items():
        own = config.queue or UNSAID
        length = other.length if own.length is None else own.length
        send = other.send if own.send is None else own.send
        found[name] = Bounds(length, own.when_full or other.when_full or "block", send or 0)
    return found
