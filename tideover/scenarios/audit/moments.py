"""The moments of a run: each step of its protocol, and what its tuples do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tideover.models.accounts.trace import Trace
from tideover.models.job.topology import Topology
from tideover.models.world import World
from tideover.sim.kernel import ORDER, Rank

EMITTED, PROCESSED, WINDOW, COMPLETED = (
    "root emitted",
    "tuple processed",
    "window put out",
    "root completed",
)
"""What tuples do, in words: steps of every topology."""
_EXTRA = (Rank.FAULT, Rank.READY)
"""What the supervisor does is no step of a protocol."""


class Moment(NamedTuple):
    """A step that is taken at an instant.

    at    the instant (ns)
    who   name of the task, or of the role, that takes it
    what  the step, in the protocol's words
    turn  its place among the actions of the instant, as a scenario names it (``checkpoint of count.1``);
          None: tuples take it by themselves
    """

    at: int
    who: str
    what: str
    turn: str | None = None

    @property
    def place(self) -> str:
        """Who takes it, without the number of the task."""
        return self.who.partition(".")[0]

    @property
    def step(self) -> tuple[str, str]:
        """What all moments of the same step share."""
        return self.place, self.what

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.who}: {self.what}"


class Strike(NamedTuple):
    """When a fault strikes, beside a moment.

    side  before, at, after, or meanwhile
    at    the instant (ns); turn: the place in it, as a scenario names it; None: behind all data, before all
          actions
    """

    moment: Moment
    side: str
    at: int
    turn: str | None

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.side} {self.moment.text}"


def moments(world: World, begin: int, end: int) -> list[Moment]:
    """All steps of a traced run in [``begin``, ``end``), in their order."""
    trace = world.trace
    assert trace is not None
    names = [task.name for task in world.job.tasks]
    found = [moment for moment in _protocol(trace, names) if begin <= moment.at < end]
    found += [moment for moment in _data(trace, world.job.topology) if begin <= moment.at < end]
    return sorted(found, key=lambda moment: moment.at)


def _protocol(trace: Trace, names: Sequence[str]) -> Iterator[Moment]:
    for step in trace.steps:
        rank, order = divmod(int(step.turn), ORDER)
        if rank in _EXTRA:
            continue
        turn = None
        if step.turn >= 0:
            turn = f"{Rank(rank).name.lower()} of {names[order] if order < len(names) else order}"
        yield Moment(step.at, step.who, step.what, turn)


def _data(trace: Trace, topology: Topology) -> Iterator[Moment]:
    for component, task, _, _, at in trace.emitted:
        yield Moment(at, f"{component}.{task}", EMITTED)
    for component, task, replica, *_, at in trace.processed:
        yield Moment(at, _name(component, task, replica), PROCESSED)
    for component, task, replica, _, at, _ in trace.windows:
        if topology.by_name[component].trigger != "tick":
            yield Moment(at, _name(component, task, replica), WINDOW)
    for *_, at in trace.completed:
        yield Moment(at, "acker", COMPLETED)


def _name(component: str, task: int, replica: int) -> str:
    return f"{component}.{task}" + (f"/{replica}" if replica else "")


def chosen(found: Sequence[Moment], each: int) -> list[Moment]:
    """Of each step so many moments, spread evenly over those that there are."""
    by_step: dict[tuple[str, str], list[Moment]] = {}
    for moment in found:
        by_step.setdefault(moment.step, []).append(moment)
    picked: list[Moment] = []
    for of_step in by_step.values():
        count = min(each, len(of_step))
        places = [round((i + 0.5) * len(of_step) / count - 0.5) for i in range(count)]
        picked += [of_step[place] for place in places]
    return sorted(picked, key=lambda moment: moment.at)


def strikes(moment: Moment, found: Sequence[Moment]) -> list[Strike]:
    """Just before a step, at its instant, just after it, and half-way to what comes next of all ``found``."""
    later = min((other.at for other in found if other.at > moment.at), default=moment.at)
    placed: list[tuple[str, int, str | None]]
    if moment.turn is None:
        placed = [("before", moment.at - 1, None), ("at", moment.at, None), ("after", moment.at + 1, None)]
    else:
        placed = [
            ("before", moment.at, f"before {moment.turn}"),
            ("at", moment.at, None),
            ("after", moment.at, f"after {moment.turn}"),
        ]
        if not any(other.at == moment.at and other != moment and other.turn for other in found):
            placed.pop(0)  # nothing is between
    if later > moment.at + 2:
        placed.append(("meanwhile", (moment.at + later) // 2, None))
    return [Strike(moment, side, at, turn) for side, at, turn in placed if at > 0]
