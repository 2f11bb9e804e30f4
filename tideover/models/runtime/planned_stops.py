"""Planned stops: an operator stops a job, or what runs on a host, and nothing goes down before it is saved.

`Supervisor` makes a `PlannedStop` where a fault is planned (`planned_restart`); a mechanism that saves
something first is the job's ``saver``. The rules (tests/models/test_planned_restart.py):

- A stop that is asked for (rank FAULT) while something that it takes is down, or while the saver says that
  it cannot be now, is asked for again `RETRY` later: an operator waits until the job runs.
- Spouts and the acker are not killed (but with a host that Nimbus takes for dead): where no log is read
  spouts that stop with it are silent for ``drain``, and while the rest is down. Then the
  saver saves, if there is one, and all goes down together.
- A failure before that ends the attempt; it is made again `RETRY` later.
- Stops that wait for the same savepoint, or for the same batch to end, go down together. Of a job that fails
  as one all is back when the longest of them is over. A changelog saves each task by itself, and refuses a
  stop of tasks that are about to go down.
- The next host is stopped ``pause`` after the one before is back.
- With ``parallelism`` (tests/models/test_rescaling.py) other numbers of tasks go on from what was saved.
  Those beyond them are idle: they hand markers and barriers on at once, and no fault of a task or host hits
  them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tideover.models.runtime.context import Context
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.fault_kinds import PlannedRestart, Stop
from tideover.sim.kernel import Rank
from tideover.sim.units import S

RETRY = S
"""After which a stop is asked for again (ns)."""


class Stoppable(Protocol):
    """What a stop asks a supervisor.

    stopped_with   what stops with a host, or (None) with the whole job
    spouts_of      spouts that are silent meanwhile
    is_down        whether any of these is down, or has not got back what it had
    stop           these go down now, as this stop of the fault says
    """

    def stopped_with(self, host: int | None) -> list[Any]: ...
    def spouts_of(self, host: int | None) -> list[SpoutTask]: ...
    def is_down(self, victims: Sequence[Any]) -> bool: ...
    def stop(self, fault: PlannedRestart, stop: Stop, victims: list[Any]) -> None: ...


class PlannedStop:
    """One stop, from when it is asked for until what it takes is down; and those that follow it."""

    def __init__(
        self, supervisor: Stoppable, context: Context, fault: PlannedRestart, left: Sequence[Stop]
    ) -> None:
        """``left``: this stop, and those after it."""
        self._supervisor, self._context, self._fault, self._left = supervisor, context, fault, left
        self.victims: list[Any] = []
        self.down = left[0].down

    def ask(self) -> None:
        """Stop it, as soon as that is possible."""
        victims = self._supervisor.stopped_with(self._left[0].host)
        if not self._fault.drain or self._supervisor.is_down(victims):
            self._save()
            return
        self._silence(self._fault.drain)
        self._later(self._fault.drain, self._save)

    def _save(self) -> None:
        saver, self.victims = self._context.saver, self._supervisor.stopped_with(self._left[0].host)
        if self._supervisor.is_down(self.victims):
            self.give_up()
        elif saver is None or not self.victims:
            self.go_down()
        elif not saver.save_to_stop(self):
            self.give_up()

    def give_up(self) -> None:
        """It cannot be stopped now."""
        self._later(RETRY, self.ask)

    def go_down(self) -> None:
        """What is to be saved is."""
        fault, stop = self._fault, self._left[0]
        self._supervisor.stop(fault, stop, self.victims)
        for name, working in fault.parallelism.items():
            assert self._context.saver is not None
            self._context.saver.rescale(self._context.topology.by_name[name], working)
        self._silence(stop.down + 1)  # a spout speaks behind the return of those that read it
        if len(self._left) > 1:
            following = PlannedStop(self._supervisor, self._context, fault, self._left[1:])
            following._later(stop.down + fault.pause, following.ask)

    def _later(self, delay: int, act: Callable[[], None]) -> None:
        self._context.kernel.at(self._context.kernel.now + delay, Rank.FAULT, act)

    def _silence(self, duration: int) -> None:
        """Spouts that stop with it emit nothing for so long; producers that fill a log go on."""
        if duration and not self._context.needs.log:
            for spout in filter(lambda spout: spout.up, self._supervisor.spouts_of(self._left[0].host)):
                spout.stop_until(self._context.kernel.now + duration)
