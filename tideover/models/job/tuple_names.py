"""A tuple's place in the tuple tree, in words."""

from __future__ import annotations

from typing import NamedTuple

from tideover.models.job.topology import Component, Edge, Topology, key_labels


class Origin(NamedTuple):
    """What a tuple comes from: a root of a spout task, or a window of a task.

    text   in words
    whole  what is the same for all tuples of this root, or of this window
    """

    text: str
    whole: tuple[str, int]


class TupleNames:
    """Says where tuples stand in the trees of a topology (uids: see docs/semantics.md)."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._labels = {c.name: key_labels(topology, c) for c in topology.components}

    def place(self, component: Component, uid: int) -> str:
        """Of a tuple that arrives at ``component``: its origin, and which of its siblings it is."""
        way = (step for step in self._way(component, uid) if step[0].fan_bits)
        steps = [f"{_ordinal(at + 1)} tuple of {edge.up.name}" for edge, at in way]
        return ", ".join([self.origin(component, uid).text, *reversed(steps)])

    def key(self, sender: Component, key: int) -> str:
        """A key of what ``sender`` sends; keys without names go by their number."""
        labels = self._labels[sender.name]
        return str(key) if labels is None or not 0 <= key < len(labels) else labels[key]

    def origin(self, component: Component, uid: int) -> Origin:
        """What a tuple that arrives at ``component`` comes from."""
        root = uid >> component.bits
        if component.anchored:
            topology = self._topology
            spout, task = topology.spout_tasks[root & ((1 << topology.spout_bits) - 1)]
            return Origin(f"root {root >> topology.spout_bits} of {spout.name}.{task}", ("", root))
        source = self._way(component, uid)[-1][0].up
        number, task = divmod(root >> source.key_bits, source.tasks)
        return Origin(f"window {number} of {source.name}.{task}", (source.name, root >> source.key_bits))

    def _way(self, component: Component, uid: int) -> list[tuple[Edge, int]]:
        """The edges that a tuple has come over, the last first; and its position among what one input
        made.
        """
        way, path = [], uid & ((1 << component.bits) - 1)
        while component.inputs:
            edge = component.inputs[0]
            if edge.edge_bits:
                digit = (path >> edge.task_bits) & ((1 << edge.edge_bits) - 1)
                edge = component.inputs[digit]
            way.append((edge, path >> (edge.edge_bits + edge.task_bits) & ((1 << edge.fan_bits) - 1)))
            if edge.up.window:
                break
            path, component = path >> edge.digits, edge.up
        return way


def _ordinal(number: int) -> str:
    """
    >>> [_ordinal(n) for n in (1, 2, 3, 4, 11, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '21st', '112th']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
