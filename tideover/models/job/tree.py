"""The tuple tree of each root: the topology as a pure function, without time."""

from __future__ import annotations

from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import Component, Topology
from tideover.models.operators.base import Children
from tideover.sim.draws import Draws
from tideover.sim.train import Ints, Train, join


def expected_effects(topology: Topology, draws: Draws, roots: Ints) -> dict[str, Ints]:
    """Uids of all effects that the roots must have, by component."""
    at: dict[str, list[Train]] = {c.name: [] for c in topology.components}
    owner = roots & ((1 << topology.spout_bits) - 1)
    for number, (spout, _) in enumerate(topology.spout_tasks):
        mine = roots[owner == number] if topology.spout_bits else roots
        if not len(mine):
            continue
        assert isinstance(spout.config, SpoutConfig)
        key, _value = spout.config.spout.content(spout.name, draws, mine, mine >> topology.spout_bits)
        _hand_on(spout, _untimed(mine, key), Children(), at)
    return effects_of(topology, draws, at)


def effects_of(topology: Topology, draws: Draws, at: dict[str, list[Train]]) -> dict[str, Ints]:
    """Uids of all effects that tuples waiting ``at`` components will have, by component."""
    effects: dict[str, Ints] = {}
    for component in topology.components:
        if component.is_spout or not at[component.name]:
            continue
        train = join(at.pop(component.name))
        if component.ends_roots:
            effects[component.name] = train.uid
        elif component.output_anchored:
            _hand_on(component, train, component.bolt.children(component.name, draws, train), at)
    return effects


def _hand_on(component: Component, train: Train, children: Children, at: dict[str, list[Train]]) -> None:
    rows = slice(None) if children.rows is None else children.rows
    key = train.key[rows] if children.key is None else children.key
    for edge in component.outputs:
        uid = edge.child_uid(train.uid[rows], children.position)
        copies = range(edge.down.tasks) if edge.grouping.copies else range(1)
        at[edge.down.name] += [_untimed(uid | task if task else uid, key) for task in copies]


def _untimed(uid: Ints, key: Ints) -> Train:
    """Tuples without a time."""
    return Train(uid, uid, uid, key)
