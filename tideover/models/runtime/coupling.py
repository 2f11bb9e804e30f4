"""Which tasks are coupled by bounded queues: who sends to a full one waits, and so does who sends to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tideover.models.job.deployment import Deployment
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.network import Edges, Network, in_order
from tideover.models.runtime.spout_task import Calling, SpoutTask
from tideover.sim.card import OUT, Port
from tideover.sim.cores import Cores
from tideover.sim.coupled import Coupled, couple, ways
from tideover.sim.kernel import Kernel, Mover
from tideover.sim.line import Bound, Line
from tideover.sim.link import Channel
from tideover.sim.server import Callbacks
from tideover.sim.site import Member


def couple_tasks(
    kernel: Kernel,
    deployment: Deployment,
    tasks: Sequence[SpoutTask | BoltTask],
    network: Network,
    cores: Mapping[int, Cores],
) -> bool:
    """Give tasks the bounds of their queues, and couple those that feel them, with the cards between them and
    those with which they share ``cores`` (by host); returns whether any do. If so, ``network`` is connected.

    ``tasks``: all, in physical order.
    """
    bounds = deployment.bounds
    for task in tasks:
        bound = bounds[task.component.name]
        if isinstance(task, BoltTask) and bound.length is not None:
            task.bind(Bound(bound.length, bound.when_full))
    if not any(isinstance(task, BoltTask) and task.bound is not None for task in tasks):
        return False
    network.connect(deployment.topology)
    below = ways(tasks)
    channels = [channel for task in tasks if isinstance(task, BoltTask) for channel in task.inputs]
    flows: list[Mover] = []
    sharing = _sharing(tasks)
    for host, together in sharing.items():
        cores[host].share([together], kernel.now)
    for group in couple(tasks, sharing.values()):
        first = group[0]
        if len(group) > 1 or (isinstance(first, BoltTask) and (first.bound is not None or first.shares)):
            members = [_member(task, deployment, cores) for task in group if not isinstance(task, Port)]
            flows.append(_coupled(group, members, below, channels))
        else:
            flows += group
    kernel.nodes += (node for node in below if isinstance(node, Port))
    kernel.movers = flows
    return True


def _sharing(tasks: Sequence[SpoutTask | BoltTask]) -> dict[int, list[BoltTask]]:
    """Those that share the cores of a host, by host."""
    found: dict[int, list[BoltTask]] = {}
    for task in tasks:
        if isinstance(task, BoltTask) and task.shares:
            found.setdefault(task.host, []).append(task)
    return found


def _coupled(
    group: Sequence[Mover], members: list[Member], below: Edges, channels: Sequence[Channel]
) -> Coupled:
    """Those that feel one another, as one; ``channels``: all that there are."""
    inside = {*group}
    ports = [node for node in group if isinstance(node, Port)]
    passing = [c for c in channels if not inside.isdisjoint((c.up, *c.stops, c.down))]
    order = in_order({node: below[node] & inside for node in group})
    one_way = len(order) == len(group) and all(member.cores is None for member in members)
    return Coupled(members, _out_first(ports), passing, order if one_way else None)


def _out_first(ports: Sequence[Port]) -> list[Port]:
    return sorted(ports, key=lambda port: (port.card.way != OUT, port.card.host))


def _member(task: Mover, deployment: Deployment, cores: Mapping[int, Cores]) -> Member:
    """A task that others feel, or that feels others: what it sends may have to wait."""
    assert isinstance(task, SpoutTask | BoltTask)
    outputs: list[Channel] = []
    if task.outlets:
        task.line = Line(deployment.bounds[task.component.name].send)
        for outlet in task.outlets:
            outlet.line = task.line
            outputs += [channel for row in outlet.channels for channel in row]
    if isinstance(task, SpoutTask):
        return Member(task, Calling(task), outputs)
    return Member(task, Callbacks(task), outputs, cores[task.host] if task.shares else None)
