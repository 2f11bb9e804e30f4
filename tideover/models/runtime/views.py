"""Tasks and outages as they can be seen from outside: read only. Instants and durations are in ns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tideover.models.job.topology import Component


class TaskView(Protocol):
    """A physical task: a spout's, or a bolt's or one replica of it.

    number      place among all tasks: the order in which tasks act at one instant
    component   its component, with what the topology says of it (`tideover.models.job.topology.Component`)
    index       number of the task in its component
    up          its process lives
    available   up, and taking in what arrives
    life        counts its interruptions: what was planned in an earlier life is void
    """

    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def host(self) -> int: ...
    @property
    def component(self) -> Component: ...
    @property
    def index(self) -> int: ...
    @property
    def up(self) -> bool: ...
    @property
    def available(self) -> bool: ...
    @property
    def life(self) -> int: ...


class SpoutView(TaskView, Protocol):
    """A spout task. ``spout_number``: its number among all spout tasks."""

    @property
    def spout_number(self) -> int: ...


class StateView(Protocol):
    """The state of a task.

    entries   what a store has to hold
    size      tuples whose effects live there
    tuples    tuples that were taken in since the last window
    """

    @property
    def entries(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def tuples(self) -> int: ...


class BoltView(TaskView, Protocol):
    """A bolt task, or one replica of it. ``state``: None if its bolt has none."""

    @property
    def replica(self) -> int: ...
    @property
    def state(self) -> StateView | None: ...


class OutageView(Protocol):
    """A fault that has struck.

    number        in the order of the strikes
    detected_at   all that it hit is noticed, or back
    ready_at      all that it hit is back; as planned, until something else changes it
    overtakes     older outages because of which not all had been sent again, or was there, when it struck
    """

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def failed_at(self) -> int: ...
    @property
    def detected_at(self) -> int: ...
    @property
    def ready_at(self) -> int: ...
    @property
    def overtakes(self) -> Sequence[OutageView]: ...
