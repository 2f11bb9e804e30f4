"""Which tasks are coupled by bounded queues: who sends to a full one waits, and so does who sends to that."""

from __future__ import annotations

from collections.abc import Sequence

from tideover.models.job.deployment import Deployment
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.spout_task import Calling, SpoutTask
from tideover.sim.coupled import Coupled, couple
from tideover.sim.kernel import Kernel, Mover
from tideover.sim.line import Bound, Line
from tideover.sim.link import Channel
from tideover.sim.server import Callbacks
from tideover.sim.site import Member


def couple_tasks(kernel: Kernel, deployment: Deployment, tasks: Sequence[SpoutTask | BoltTask]) -> bool:
    """Give tasks the bounds of their queues, and couple those that feel them; returns whether any do.

    ``tasks``: all, in physical order.
    """
    bounds = deployment.bounds
    for task in tasks:
        bound = bounds[task.component.name]
        if isinstance(task, BoltTask) and bound.length is not None:
            task.bind(Bound(bound.length, bound.when_full))
    if not any(isinstance(task, BoltTask) and task.bound is not None for task in tasks):
        return False
    flows: list[Mover] = []
    for group in couple(tasks):
        if len(group) > 1 or getattr(group[0], "bound", None) is not None:
            members = [_member(tasks[node.number], deployment) for node in group]
            flows.append(Coupled(members))
        else:
            flows += group
    kernel.movers = flows
    return True


def _member(task: SpoutTask | BoltTask, deployment: Deployment) -> Member:
    """A task that others feel, or that feels others: what it sends may have to wait."""
    outputs: list[Channel] = []
    if task.outlets:
        task.line = Line(deployment.bounds[task.component.name].send)
        for outlet in task.outlets:
            outlet.line = task.line
            outputs += [channel for row in outlet.channels for channel in row]
    return Member(task, Callbacks(task) if isinstance(task, BoltTask) else Calling(task), outputs)
