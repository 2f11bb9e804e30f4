"""What failures do to the world, by their kind, and how random worlds have them.

A new kind is a function here, called when it strikes, and its draw in ``troubles``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tideover.models.config import Scenario, deployment_of
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.distributions import Exponential, Weibull
from tideover.sim.faults import FAULTS, Fault
from tideover.sim.registry import kind_of

from .bolts import Bolt
from .clock import Rank, control
from .coordinators import Group
from .layout import MACHINES
from .making import TICK, TICK_MS
from .worlds import fault as fault_of

if TYPE_CHECKING:
    from .program import World
    from .record import Outage
    from .tasks import Task


def strike(world: World, fault: Fault) -> None:
    """A fault strikes now, and the protocol is told."""
    befall(world, fault, world.outages.strikes(fault), STRIKES.get(kind_of(fault), take_down))


def befall(world: World, fault: Fault, outage: Outage, act: Callable[[World, Any, Outage], None]) -> None:
    """It does what it does."""
    act(world, fault, outage)
    if not fault.kills:
        world.outages.stops(outage)
    world.protocol.struck(fault)
    outage.masked = world.is_masked(outage)


def is_hit(world: World, task: Task, fault: Any) -> bool:
    if task.idle:
        return False
    if kind_of(fault) in MACHINES:
        return world.layout.fails(fault, *task.home)
    return task.physical == (fault.component, fault.task, fault.replica)


def take_down(world: World, fault: Any, outage: Outage, found: list[Task] | None = None) -> None:
    """A task, a worker, a host or a rack with all that is there, or the acker; ``found``: these tasks are
    stopped on purpose, which nobody has to notice.
    """
    kind, machines = kind_of(fault), kind_of(fault) in MACHINES
    listener, layout, now = world.listener if found is None else None, world.layout, world.clock.now
    down_for = max(fault.detection + fault.restart, fault.out_of_order) if listener is None else None
    for host in layout.every_host:
        if layout.breaks(fault, host):
            world.repaired[host] = max(world.repaired.get(host, 0), now + fault.out_of_order)
    found = [task for task in world.tasks if is_hit(world, task, fault)] if found is None else found
    if listener is not None:
        found = listener.taken_down(found, fault)
    hit = [task for task in found if not world.protocol.spares(task)]
    job = [task for task in hit if isinstance(task, Bolt)] and layout.needs.one_job
    hit = [task for task in world.tasks if task in hit or (job and isinstance(task, Bolt))]
    also = world.protocol.hit(fault)
    outage.tasks = [*hit, *(task for thing in also for task in world.protocol.tasks_of(thing))]
    world.outages.struck(outage, [*hit, *also], listener)
    outage.unfelt = not outage.hit
    for task in hit:
        task.fault = outage.number
        crash = machines or (job and isinstance(task, Bolt))
        task.fail("crash_task" if crash else kind, down_for, fault.while_down)
    if machines:
        world.protocol.machines_failed(fault, down_for)
    elif fault.component == "acker":
        world.protocol.acker_failed(down_for)
    if listener is not None:
        listener.struck(outage, [*found, *also])


def pause(world: World, fault: Any, outage: Outage) -> None:
    outage.tasks = [task for task in world.tasks if is_hit(world, task, fault)]
    until = world.clock.now + fault.duration
    for task in outage.tasks:
        if not world.protocol.spares(task):
            task.stop(until)
            if isinstance(world.listener, Group) and not task.down:
                world.listener.paused(task, until)


def slow_host(world: World, fault: Any, outage: Outage) -> None:
    cores = world.cores[fault.host]
    cores.slow_down(fault, fault.factor)
    outage.tasks = [task for task in world.tasks if task.host == fault.host]
    rank = min((task.rank for task in outage.tasks), default=0)
    well = partial(cores.slow_down, fault, 1.0)
    world.clock.at(world.clock.now + fault.duration, control(Rank.READY, rank), well)
    outage.unfelt = world.layout.needs.batches or not any(isinstance(t, Bolt) for t in outage.tasks)


def cut(world: World, fault: Any, outage: Outage) -> None:
    """Links that are slow, or nothing comes over them."""
    world.cuts.strike(fault, outage)


STRIKES: dict[str, Callable[[World, Any, Outage], None]] = {
    "pause": pause,
    "slow_host": slow_host,
    "slow_link": cut,
    "partition": cut,
}
"""What takes a while and kills nothing; the other kinds take down what they hit."""


FACTORS = (0.5, 0.3, 0.7)
"""By which a host is slow in random worlds."""


def hosts_of(scenario: Scenario) -> list[int]:
    """The hosts that have a task."""
    return sorted(set(deployment_of(scenario).hosts.values()))


@st.composite
def troubles(draw: st.DrawFn, found: Scenario) -> Any:
    """A host or a link that is slow for a while, or a host that is cut off."""
    hosts = hosts_of(found)
    kinds = ("slow_host", "slow_link", "partition") if len(hosts) > 1 else ("slow_host",)
    kind, host = draw(st.sampled_from(kinds)), draw(st.sampled_from(hosts))
    at = draw(st.integers(5, 60)) * TICK_MS + draw(st.sampled_from((0, 0, 0.000137)))
    more: dict[str, Any] = {"duration": draw(st.integers(1, 30)) * TICK}
    if kind == "slow_host":
        return fault_of(kind, at, host=host, factor=draw(st.sampled_from(FACTORS)), **more)
    other = draw(st.sampled_from([None, *((each,) for each in hosts if each != host)]))
    more |= {"hosts": (host,), "others": other}
    if kind == "slow_link":
        more["latency_factor"] = draw(st.sampled_from((1.5, 3.0, 10.0)))
        more["transfer_factor"] = draw(st.sampled_from((1.0, 1.5, 4.0)))
    elif STRATEGIES[found.strategy.kind].loses_messages:
        more["messages"] = draw(st.sampled_from(("hold", "lose")))
    return fault_of(kind, at, **more)


@st.composite
def flapping(draw: st.DrawFn, hosts: int, one: Fault) -> Fault:
    times = {"times": draw(st.integers(2, 4)), "period": draw(st.integers(1, 12)) * TICK}
    return one.model_copy(update={"in_interval": None, **times})


@st.composite
def cascade(draw: st.DrawFn, hosts: int, one: Fault) -> Any:
    followers = {"probability": draw(st.sampled_from((0.5, 1.0))), "span": draw(st.integers(0, 20)) * TICK}
    own = {"at": draw(st.integers(5, 40)) * TICK, "restart": draw(st.sampled_from((0, 7))) * TICK}
    return FAULTS["cascade"](host=draw(st.integers(0, hosts - 1)), **followers, **own)


@st.composite
def machines_fail(draw: st.DrawFn, hosts: int, one: Fault) -> Any:
    life = draw(st.integers(20, 80)) * TICK
    spread = draw(st.sampled_from((Exponential(mean=life), Weibull(mean=life, shape=0.7))))
    repair = Exponential(mean=draw(st.integers(1, 10)) * TICK)
    return FAULTS["machines_fail"](lifetime=spread, repair=repair, crews=draw(st.sampled_from((None, 1))))
