"""Which tasks are coupled by bounded queues: who sends to a full one waits, and so does who sends to that."""

from __future__ import annotations

from collections.abc import Sequence

from tideover.models.job.deployment import Deployment
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.network import Edges, Network, in_order
from tideover.models.runtime.spout_task import Calling, SpoutTask
from tideover.sim.card import OUT, Port
from tideover.sim.coupled import Coupled, couple, ways
from tideover.sim.kernel import Kernel, Mover
from tideover.sim.line import Bound, Line
from tideover.sim.link import Channel
from tideover.sim.server import Callbacks
from tideover.sim.site import Member


def couple_tasks(
    kernel: Kernel, deployment: Deployment, tasks: Sequence[SpoutTask | BoltTask], network: Network
) -> bool:
    """Give tasks the bounds of their queues, and couple those that feel them, with the cards between them;
    returns whether any do. If so, ``network`` is connected.

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
    for group in couple(tasks):
        if len(group) > 1 or getattr(group[0], "bound", None) is not None:
            flows.append(_coupled(group, below, channels, deployment))
        else:
            flows += group
    kernel.nodes += (node for node in below if isinstance(node, Port))
    kernel.movers = flows
    return True


def _coupled(
    group: Sequence[Mover], below: Edges, channels: Sequence[Channel], deployment: Deployment
) -> Coupled:
    """Those that feel one another, as one; ``channels``: all that there are."""
    inside = {*group}
    members = [_member(task, deployment) for task in group if isinstance(task, SpoutTask | BoltTask)]
    ports = [node for node in group if isinstance(node, Port)]
    passing = [c for c in channels if not inside.isdisjoint((c.up, *c.stops, c.down))]
    order = in_order({node: below[node] & inside for node in group})
    return Coupled(members, _out_first(ports), passing, order if len(order) == len(group) else None)


def _out_first(ports: Sequence[Port]) -> list[Port]:
    return sorted(ports, key=lambda port: (port.card.way != OUT, port.card.host))


def _member(task: SpoutTask | BoltTask, deployment: Deployment) -> Member:
    """A task that others feel, or that feels others: what it sends may have to wait."""
    outputs: list[Channel] = []
    if task.outlets:
        task.line = Line(deployment.bounds[task.component.name].send)
        for outlet in task.outlets:
            outlet.line = task.line
            outputs += [channel for row in outlet.channels for channel in row]
    return Member(task, Callbacks(task) if isinstance(task, BoltTask) else Calling(task), outputs)
