"""What all tasks of a component do, told to the data plane."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tideover.models.job.components import BoltConfig
from tideover.models.job.topology import Component
from tideover.models.operators.filter import Filter
from tideover.models.operators.forward import Forward
from tideover.models.operators.generic import Generic
from tideover.models.operators.split_words import SplitWords
from tideover.models.operators.vocabulary import FLAT, LENGTHS, STARTS
from tideover.models.runtime.context import Context
from tideover.models.runtime.laws import describe
from tideover.models.runtime.outside import makes_children
from tideover.sim.draws import Purpose
from tideover.sim.plane.plane import Plane


def describe_component(
    context: Context, plane: Plane, component: Component, replicas: Mapping[str, int]
) -> None:
    """What all tasks of a component do."""
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
    elif makes_children(component):
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
        assert isinstance(bolt, Forward)
        c.operator = lib.FORWARDS
    copies = sum(e.down.tasks * replicas[e.down.name] for e in component.outputs)
    plane.p.most_made = max(plane.p.most_made, 2 * component.fan_out * max(1, copies))
