"""What is noted while a world runs, tuple by tuple; `figures.py` makes the figures of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .layout import Datum

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


@dataclass(frozen=True)
class Done:
    """A tuple that the measured component was done with. ``because``: of which fault it was replayed."""

    time: int
    born: int
    first: int  # first emission of its root
    because: int | None


class Record:
    """Which roots are there, what was measured and put out, and what each task did with its time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.first: dict[int, int] = {}
        self.done: list[Done] = []
        self.tuples: Counter[int] = (
            Counter()
        )  # by root: those queued, in service, on a wire, waiting for a retry
        self.moves: list[tuple[int, int, int]] = []  # time, root, 1 (comes) or -1 (goes)
        self.windows_out: dict[tuple[str, int, int], int] = {}  # where nobody reads them: the first time
        self.tuples_out: list[int] = []
        self.window_times: dict[tuple[str, int, int], tuple[int, int]] = {}  # first emission: time, replica
        self.busy: Counter[Task] = Counter()  # a part of a core's time, where tasks share them
        self.blocked: Counter[Task] = Counter()
        self.up: Counter[Task] = Counter()
        self.control_bytes = 0
        self.most_kept = 0

    # -- roots come and go ---------------------------------------------------------------------------------

    def there(self, datum: Datum | None) -> None:
        """One more tuple (or retry) of a root is on its way."""
        if datum is not None and datum.anchored:
            self.tuples[datum.root] += 1
            if self.tuples[datum.root] == 1:
                self.moves.append((self.world.clock.now, datum.root, 1))

    def gone(self, datum: Datum | None) -> None:
        """One less."""
        if datum is not None and datum.anchored:
            self.tuples[datum.root] -= 1
            assert self.tuples[datum.root] >= 0
            if self.tuples[datum.root] == 0:
                self.moves.append((self.world.clock.now, datum.root, -1))

    # -- tuples --------------------------------------------------------------------------------------------

    def emitted(self, datum: Datum) -> None:
        """A root leaves its spout; ``gone`` follows when its tuples have left."""
        self.first.setdefault(datum.root, datum.born)
        self.there(datum)

    def served(self, task: Task, datum: Datum, arrived: int, because: int | None) -> None:
        """A bolt is done with a tuple."""
        now = self.world.clock.now
        if not datum.anchored:
            return
        self.world.outages.replayed(task, because, now if self.world.layout.needs.log else arrived)
        if task is self.lead(task) and task.component == self.world.layout.measured:
            self.done.append(Done(now, datum.born, self.first[datum.root], because))

    def applied(self, task: Task, datum: Datum) -> None:
        """An effect has taken place: in a count, or for whoever reads what leaves."""
        if not datum.anchored:
            return
        if self.world.ledger.times((task.component, datum.uid), task) > 1:
            self.world.outages.extra()
        left = not self.world.layout.stateful(task.component) and not self.world.sinks.withholds(task)
        if left and task is self.lead(task):
            self.tuples_out.append(self.world.clock.now)

    def window(self, task: Task, number: int) -> None:
        """A window is emitted."""
        place, now = (task.component, task.index, number), self.world.clock.now
        self.window_times[place] = min((now, task.replica), self.window_times.get(place, (now, task.replica)))
        if not self.world.layout.down[task.component] and not self.world.sinks.withholds(task):
            self.windows_out.setdefault(place, now)

    def lead(self, task: Task) -> Task:
        """The replica that is measured: the live one with the lowest number, of those that say anything."""
        replicas = self.world.replicas[task.logical]
        heard = [one for one in replicas if not one.silent] or replicas
        return next((one for one in heard if one.live), heard[0])

    # -- time ----------------------------------------------------------------------------------------------

    def passes(self, until: int) -> None:
        """All events of this instant are over, and the next is at ``until``."""
        span, is_busy = until - self.world.clock.now, self.world.protocol.is_busy
        for task in self.world.tasks:
            if is_busy(task):  # with tuples, for as long as it has a core
                shares = task.cores is not None and task in task.cores.jobs
                self.busy[task] += span * task.cores.share if shares else span
            if task.line.full:
                self.blocked[task] += span
            if not task.down:
                self.up[task] += span
        self.looks()

    def looks(self) -> None:
        """How much is kept at this moment."""
        self.most_kept = max(self.most_kept, self.world.protocol.kept_for_replay())
