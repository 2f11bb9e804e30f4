"""The seam for strategies: what a strategy is told while a job runs, and what keeps tuples or effects for
it. A job calls it; protocols and mechanisms, those from outside too, are what it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.job.topology import Component
from tideover.models.operators.state import Effects
from tideover.models.runtime.announcements import to_all
from tideover.models.runtime.channels import Sent
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.train import Ints, Train

Mask = npt.NDArray[np.bool_]
NOTHING: Ints = np.zeros(0, np.int64)


class CopyHolder:
    """Whatever has copies registers as a holder (``job.context.holders``); the accounts ask it what it has.

    A root is lost only if nobody keeps anything that could still complete it, and a recovery is over only
    when every holder has sent again what the outage took. Copies of state that only spare a restart (a
    standby's) change neither, and need no holder.

    knows_the_plane   what it says of ``replayed`` the data plane sees itself, once it is ``watched``
    steady            of the same tuples it says the same of ``replayed`` until a fault strikes
    """

    knows_the_plane = False
    steady = False

    def roots(self) -> Ints:
        """Roots that can still be emitted again as a whole."""
        return NOTHING

    def effects(self) -> list[tuple[Component, Ints]]:
        """Effects of which there is a copy that can be brought back: components and uids."""
        return []

    def tuples(self) -> list[tuple[Component, Train]]:
        """Tuples that can be sent again: the components that they go to, and trains without markers."""
        return []

    def watched(self) -> None:
        """From now on somebody watches what is sent again."""

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        """Mask of the tuples that were sent again because of the outage; None: none of them."""
        return None

    def settled(self, outage: OutageView) -> bool:
        """Whether everything that was to be sent again because of the outage was."""
        return True

    def store_lost(self, store: str | None) -> None:
        """The store of that name (None: that of the job) has lost all that it had."""

    def on_the_way(self, outage: OutageView) -> bool:
        """Whether something sent again because of the outage may not have arrived at the next one."""
        return False


class Needs(NamedTuple):
    """What a mechanism needs of the job that it works in.

    paths            tuples carry the logical path by which they came
    log              spouts stand for producers and a durable log: what they send waits there to be read, and
                     markers in the data end all windows of time (event time)
    one_job          a fault of one bolt task takes all of them down
    batches          tuples are done in batches: the mechanism hands them to the tasks when they are done,
                     keeps the tasks busy, and takes the faults of bolts upon itself; what passes between
                     bolts takes no time on links
    readers_go_back  who reads a window is rolled back with it: it is sent to them again
    look_ups         tasks with a `state` wait for one another at the store where it lies
    comparison       windows can come out wrong without a failure (a false timeout, replicas that disagree)
    """

    paths: bool = False
    log: bool = False
    one_job: bool = False
    batches: bool = False
    readers_go_back: bool = False
    look_ups: bool = False
    comparison: bool = False

    def joined(self, other: Needs) -> Needs:
        return Needs(*(mine or theirs for mine, theirs in zip(self, other, strict=True)))


class Hooks:
    """What happens in a job, for those who have to act on it: a strategy's protocol and its mechanisms.

    All nine do nothing here. Five are called by control events, when the data plane stands still, and may do
    anything:

    start          all tasks exist, the clock stands at 0
    failed         a fault has struck a task now
    ready          a task that a fault had struck is up again, and empty; nothing arrives yet: the first
                   thing to do, or the last, is ``verbs.open``
    barrier        the turn of a message with mark BARRIER has come in a task's queue
    moved          the data plane was moved to an instant

    Four tell of what the data plane has done, many tuples at a time, and may touch only records of their own:

    emitted        a spout has emitted roots, first attempts and retries: before ``moved``
    processed      a bolt is done with tuples of roots (not with other bolts' windows), and has sent their
                   children: before somebody looks at its state. `BoltTask.show` tells of all tuples.
    window_ended   a bolt has put out a window: how long that keeps it (ns)
    destroyed      tuples or state of these roots were destroyed
    """

    needs: ClassVar[Needs] = Needs()
    occupies: ClassVar[bool] = True
    """Whether it may keep a task for longer, where nothing fails, than under the strategy's `undisturbed`."""

    def start(self) -> None: ...
    def emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None: ...
    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None: ...

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        return 0

    def barrier(self, task: BoltView, message: Train) -> None: ...
    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None: ...
    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None: ...
    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None: ...
    def moved(self, now: int) -> None: ...


HOOKS = tuple(name for name, value in vars(Hooks).items() if callable(value) and not name.startswith("_"))


class Dispatcher(Hooks):
    """Calls the hooks of several, in order; stalls add up."""

    def __init__(self) -> None:
        self._plugged: list[Hooks] = []

    def plug(self, hooks: Hooks) -> None:
        self._plugged.append(hooks)
        for name in HOOKS:
            own = [each for each in self._plugged if getattr(type(each), name) is not getattr(Hooks, name)]
            if own:
                several = _stalls if name == "window_ended" else to_all
                setattr(self, name, several([getattr(each, name) for each in own]))

    def has(self, name: str) -> bool:
        return name in vars(self)


def _stalls(called: list[Callable[..., int]]) -> Callable[..., int]:
    return called[0] if len(called) == 1 else lambda *what: sum(each(*what) for each in called)
