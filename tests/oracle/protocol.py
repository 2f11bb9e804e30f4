"""What a strategy may do; doing nothing is the strategy `none`.

A protocol names its strategy (``class Mine(Protocol, kind="mine")``), draws its settings for random worlds,
and is found in `PROTOCOLS` as soon as its file is in this folder.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

from .clock import Part
from .layout import Datum

if TYPE_CHECKING:
    from tideover.sim.faults import Fault

    from .bolts import Bolt
    from .channels import Message
    from .making import Maker
    from .planned import PlannedStop
    from .program import World
    from .record import Outage
    from .spouts import SpoutTask
    from .tasks import Control, Task


def median_gap(moments: list[int]) -> int:
    """The median distance of two that follow one another; 0: there are none."""
    return int(median([after - before for before, after in pairwise(moments)] or [0]))


PROTOCOLS: dict[str, type[Protocol]] = {}
"""By the kind of their strategy."""


class Protocol(Part):
    """After a fault, start again with nothing."""

    host_counts: ClassVar[tuple[int | None, ...]] = (None, None, 1, 2, 3, 4)
    """Numbers of hosts that random worlds have; None: each task has one of its own."""
    fault_kinds: ClassVar[tuple[str, ...]] = (*["lose_state"] * 2, *["crash_task"] * 2, "crash_host", "pause")
    """Kinds of failure in random worlds."""
    can_move: ClassVar[bool] = False
    """Whether tasks move between members of a group that live."""
    boss: ClassVar[str | None] = None
    """The process that a planned stop of the whole job takes; None: all bolts' tasks."""

    def __init_subclass__(cls, kind: str | None = None) -> None:
        if kind is not None:
            PROTOCOLS[kind] = cls

    @classmethod
    def of(cls, strategy: Any) -> type[Protocol]:
        """This, or a variant of it, as the strategy's settings say."""
        return cls

    @classmethod
    def undisturbed(cls) -> type[Protocol]:
        """What windows are held against is under: all that costs time where nothing fails."""
        return Protocol

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        """The strategy's settings in a random world."""
        return {}

    @staticmethod
    def also_crash(tasks: int) -> list[str]:
        """What can crash beside that many components, as often as it is to be drawn."""
        return []

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.params = self.layout.scenario.strategy
        self.store: Any = None  # where it saves states
        self.stops: list[PlannedStop] = []  # that wait until the same is saved

    def start(self) -> None:
        """Time 0: the tasks are there."""

    def buffers(self, up: Task, down: Task) -> bool:
        """Whether ``up`` keeps what it sends on this channel."""
        return False

    def sends(self, message: Message) -> None:
        """A message is made."""

    def comes(self, task: Task, message: Message) -> bool:
        """Whether a message that has come over its wire can be read."""
        return True

    def unreadable(self, task: Task) -> list[Message]:
        """What has come, and cannot be read yet."""
        return []

    def admit(self, task: Task, message: Message) -> bool:
        """Whether a message that arrives enters the queue."""
        return True

    def came_first(self, task: Task, what: Message | Control, others: list[Message | Control]) -> None:
        """Of what comes at one instant this is read before the others, which were admitted before it."""

    def extra_service(self, task: Task, datum: Datum) -> int:
        """Time that the strategy adds to a tuple's service."""
        return 0

    def more_service(self, task: Task) -> int | None:
        """How much longer the service takes that seems to end; None: it does."""
        return None

    def served(self, task: Bolt, message: Message) -> None:
        """A message leaves the server; its effect comes next."""

    def because(self, task: Task, message: Message) -> int | None:
        """Because of which fault (its number) a message that is served was replayed; None: it was not."""
        return None

    def done(self, datum: Datum, sent: list[Datum]) -> None:
        """A bolt has handed an anchored tuple on (as ``sent``), or ended it."""

    def done_late(self, task: Bolt, datum: Datum) -> None:
        """A tuple has come too late for a window."""

    def known(self, task: Bolt, datum: Datum) -> None:
        """By its id a tuple has left the window already."""

    def ack_window(self, task: Bolt, data: list[Datum]) -> None:
        """A window has been emitted; these were in it."""

    def window_ended(self, task: Bolt, number: int) -> None:
        """A window has been emitted."""

    def held_window(self, task: Bolt, number: int, sums: dict[int, int], again: bool) -> None:
        """A task that keeps what it would send has ended a window (``again``: once more)."""

    def to_be_said(self, task: Task) -> list[int]:
        """Numbers of the windows that a task has ended, and keeps."""
        return []

    def said_window(self, task: Bolt, number: int) -> None:
        """A window has gone to whoever reads it."""

    def ticked(self, task: Bolt) -> None:
        """A tick has ended a window."""

    def may_emit(self, spout: SpoutTask) -> bool:
        """Whether calls go on."""
        return True

    def call_cost(self, spout: SpoutTask) -> int:
        """What each call takes besides its gap."""
        return 0

    def retry(self, spout: SpoutTask) -> Datum | None:
        """The root that this call serves again, if any."""
        return None

    def has_retries(self, spout: SpoutTask) -> bool:
        """Whether a root waits to be served again."""
        return False

    def unconfirmed(self, spout: SpoutTask) -> set[int]:
        """Roots that the spout has emitted, and would emit again."""
        return set()

    def give_up(self, spout: SpoutTask, roots: set[int]) -> None:
        """What the spout waits for has taken too long: it is to be emitted again."""

    def emit_again(self, spout: SpoutTask, data: list[Datum]) -> None:
        """The spout emits these behind all that it is to emit again."""

    def emitted(self, spout: SpoutTask, datum: Datum, sent: list[Datum]) -> None:
        """A root has left."""

    def failed(self, task: Task, crash: bool) -> None:
        """A fault has struck (its state is gone already)."""

    def ready(self, task: Task, was_down: bool) -> None:
        """Detection and restart are over; what was held meanwhile has not yet arrived."""

    def rebalances(self, task: Task, begins: bool, eager: bool) -> None:
        """Its process has joined a rebalance, or that is over."""

    def closes(self, task: Task) -> bool:
        """Whether it commits to go down, or has, and is up still."""
        return False

    def warm_up(self, task: Task, host: int | None) -> None:
        """A copy of its state follows it there; None: there are as many as there are always."""

    def is_warm(self, task: Task) -> bool:
        """Whether there is a copy of all of its state."""
        return False

    def spares(self, task: Task) -> bool:
        """Whether faults leave a task alone, as the protocol deals with them."""
        return False

    def hit(self, fault: Fault) -> list[Hashable]:
        """What a fault hits besides tasks, or in their place."""
        return []

    def struck(self, fault: Fault) -> None:
        """A fault has struck."""

    def machines_failed(self, fault: Any, down_for: int | None) -> None:
        """All tasks in a worker, on a host or in a rack have crashed."""

    def saves_to_stop(self, stop: PlannedStop) -> bool:
        """What is there is saved before ``stop`` goes down; returns whether that is possible now."""
        stop.go_down()
        return True

    def all_stop(self) -> None:
        """Those that wait until the same is saved; who is down for longest is the last."""
        stops, self.stops = self.stops, []
        for stop in sorted(stops, key=lambda stop: stop.left[0].down):
            stop.go_down()

    def none_stops(self) -> None:
        stops, self.stops = self.stops, []
        for stop in stops:
            stop.again()

    def rescale(self, component: str, working: int) -> None:
        """So many tasks of a component go on from what was saved."""
        raise NotImplementedError

    def acker_failed(self, down_for: int | None) -> None:
        """The acker alone has crashed."""

    def acker_ready_again(self) -> None:
        """The acker is back."""

    def tasks_of(self, thing: Hashable) -> list[Task]:
        """The tasks that fail with what is ``hit`` in the place of tasks."""
        return []

    def settled(self, outage: Outage) -> bool:
        """Whether everything that was to be replayed because of a fault was."""
        return True

    def is_busy(self, task: Task) -> bool:
        """Whether a task does something that takes its time."""
        return task.busy

    def kept_for_replay(self) -> int:
        """Tuples that are kept now, to be replayed if need be."""
        return 0

    def bytes_stored(self) -> int:
        """What was written to a store, and read from it."""
        return 0 if self.store is None else self.store.bytes

    def beat(self) -> int:
        """Period of what interrupts the flow in normal operation; 0: nothing does."""
        return 0

    def kept_roots(self) -> set[int]:
        """Roots that a spout would emit again."""
        return set()

    def waiting_roots(self) -> set[int]:
        """Roots that wait for a retry."""
        return set()

    def elsewhere(self) -> list[Message]:
        """Copies that can still be served."""
        return []

    def kept_data(self) -> list[tuple[Task, Datum]]:
        """Tuples whose effect is in a checkpoint."""
        return []


PROTOCOLS["none"] = Protocol
