"""What all tasks of a component do, told to the data plane, and what Python works out for it: the children
that bolts from outside make, and where groupings from outside send them.

A job, and tasks that send, call it. What the data plane learns to serve goes into ``describe_component``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tideover.models.job.components import BoltConfig
from tideover.models.job.topology import Component
from tideover.models.operators.base import Children
from tideover.models.operators.kinds import FLAT, LENGTHS, STARTS, Filter, Generic, SplitWords
from tideover.models.runtime.channels import Outlet, describe, is_given
from tideover.models.runtime.context import Context
from tideover.sim.draws import Draws, Purpose
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.runtime.node import Node


BOLTS = frozenset({"split_words", "filter", "generic", "forward"})
"""Bolts without state that the data plane knows."""


def make_children(task: Node, plane: Plane, draws: Draws) -> None:
    """Make the children of all tuples that wait at a task, or come to it."""
    component = task.component
    train, which = plane.waiting(task.number)
    children = component.bolt.children(component.name, draws, train)
    rows = np.arange(train.n, dtype=np.int64) if children.rows is None else children.rows
    copies = np.bincount(rows, minlength=train.n)
    position = np.zeros(len(rows), np.int64) if children.position is None else children.position
    key = train.key[rows] if children.key is None else children.key
    most = component.fan_out
    for holds, otherwise in (
        (len(copies) == train.n, "has children of tuples that it did not get"),
        ((rows[1:] >= rows[:-1]).all(), "has children that are not in order of their parents"),
        (copies.max(initial=0) <= most, "makes more of a tuple than its fan_out"),
        (_all_below(position, most), "has positions that its fan_out does not allow"),
        (_all_below(key, 1 << 31), "has keys that are not in [0, 2**31)"),
    ):
        if not holds:
            raise ValueError(f"{component.name}: {otherwise}")
    starts = np.concatenate([[0], copies.cumsum()])
    for name, column in (("child_starts", starts), ("child_keys", key), ("child_positions", position)):
        plane.array(plane.tasks[task.number], name, column.astype(np.int32))
    plane.kept(plane.p, "made")[which] = np.arange(train.n)
    give_targets(task.outlets, plane, draws, train, Children(rows, position, key))


def give_targets(
    outlets: Sequence[Outlet], plane: Plane, draws: Draws, train: Train, children: Children, at: str = "given"
) -> None:
    """Find out where these children go, where Python has to; ``at``: in which array of outlets."""
    for outlet in outlets:
        if is_given(outlet.edge):
            (sent,), edge, tasks = outlet.sent(train, children), outlet.edge, len(outlet.channels)
            found: Ints = edge.grouping.targets(edge.name, draws, sent.train, tasks)
            if len(found) != sent.train.n or not _all_below(found, tasks):
                raise ValueError(f"{edge.down.name}: would get tuples in no task of it")
            plane.array(outlet.c, at, found.astype(np.int32))


def _all_below(values: Ints, limit: int) -> bool:
    return bool(((values >= 0) & (values < limit)).all())


def describe_component(
    context: Context, plane: Plane, component: Component, replicas: Mapping[str, int]
) -> None:
    lib, c = plane.lib, plane.components[component.index]
    c.bits, c.anchored, c.replicas = component.bits, component.anchored, replicas[component.name]
    if component.is_spout:
        return
    config = component.config
    assert isinstance(config, BoltConfig)
    bolt = config.bolt
    if context.needs.batches:  # in which all has been done when a task hands it on
        c.serves_at_once = 1
    else:
        describe(plane, config.service, c.service)
    if c.service.kind not in (lib.DRAW_CONSTANT, lib.DRAW_ELSEWHERE):
        due = plane.ffi.new("draws_due *")
        plane.keep(due)
        c.due = due
    c.service_key = int(context.draws.key(component.name, Purpose.SERVICE))
    if component.window is not None:
        c.operator = lib.TAKES_IN
    elif bolt.kind not in BOLTS or any(is_given(edge) for edge in component.outputs):
        c.operator = lib.MADE_ELSEWHERE
        plane.make_elsewhere()
    elif isinstance(bolt, SplitWords):
        c.operator, c.sentences = lib.TABLE, len(LENGTHS)
        for name, table in (("starts", STARTS), ("lengths", LENGTHS), ("words", FLAT)):
            plane.array(c, name, np.ascontiguousarray(table, np.int64))
    elif isinstance(bolt, Filter | Generic):
        c.select = int(context.draws.key(component.name, Purpose.SELECT))
        if isinstance(bolt, Filter):
            c.operator, c.part = lib.KEEPS, bolt.keep
        else:
            c.operator, c.whole = lib.MULTIPLIES, math.floor(bolt.selectivity)
            c.part = bolt.selectivity - c.whole
    else:
        c.operator = lib.FORWARDS
    copies = sum(e.down.tasks * replicas[e.down.name] for e in component.outputs)
    plane.p.most_made = max(plane.p.most_made, 2 * component.fan_out * max(1, copies))
