"""Where every root ended up, by sets of effects.

An effect is one (component, uid) at which the tree of a root ends: in a windowed count, or in a bolt that
nothing follows. It is *out* when it has left in an emitted window (of any replica) or through a last bolt,
*live* while it is in a count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .channels import Message
from .layout import Datum

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task

Effect = tuple[str, int]


class Ledger:
    """Kept along the way, settled at the end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.effects: dict[int, set[Effect]] = {}
        self.out: dict[tuple, dict[int | None, list[Effect]]] = {}  # by physical task and window
        self.replayed: set[int] = set()
        self.damaged: dict[tuple[int, int], int] = {}  # root and attempt: number of the newest fault
        self.dropped: set[tuple[int, int]] = set()  # root and attempt of what found a queue full
        self.false_timeouts: set[int] = set()
        self.late: set[int] = set()

    def emitted(self, datum: Datum) -> None:
        spout = self.world.layout.owner(datum.root)[0]
        self.effects[datum.root] = self.world.layout.effects(spout, datum)

    # -- effects -------------------------------------------------------------------------------------------

    def left(self, task: Task, datum: Datum) -> None:
        """A tuple has left through a last bolt."""
        left = self.out.setdefault(task.physical, {}).setdefault(None, [])
        known = self.world.layout.needs.paths and (task.component, datum.uid) in left
        if not known:  # else its reader drops it
            left.append((task.component, datum.uid))

    def not_left(self, task: Task, datum: Datum) -> None:
        """It has not, after all."""
        self.out[task.physical][None].remove((task.component, datum.uid))

    def came_late(self, task: Task, datum: Datum) -> None:
        """It is in no window; put aside, it has left."""
        if datum.anchored:
            self.late.add(datum.root)
            if self.world.layout.config[task.component].bolt.window.late == "aside":
                effect = task.component, datum.uid
                self.out.setdefault(task.physical, {}).setdefault(None, []).append(effect)
                self.world.record.applied(task, datum)

    def emitted_window(self, task: Task, number: int, data: list[Datum]) -> bool:
        """The same window once more, out of a replay, is void; returns whether it is that."""
        windows = self.out.setdefault(task.physical, {})
        again = number in windows
        windows.setdefault(number, [(task.component, datum.uid) for datum in data])
        return again

    def has_not_left(self, task: Task, datum: Datum) -> None:
        """What a tuple was before it left is undone."""
        self.out[task.physical][None].remove((task.component, datum.uid))

    def reopened(self, task: Task, number: int) -> None:
        """A window will be emitted again, with the same tuples: until then they are not out."""
        self.out[task.physical].pop(number, None)

    def _applied(self, task: Task) -> list[Effect]:
        """What is in the task's counts, or has left it for good; twice if it is there twice."""
        live = [(task.component, datum.uid) for datum in task.state.effects]
        return live + [effect for window in self.out.get(task.physical, {}).values() for effect in window]

    def times(self, effect: Effect, task: Task) -> int:
        """How often an effect is in a task's counts, or has left it."""
        return self._applied(task).count(effect)

    def missing(self, effects: list[Effect]) -> int:
        """How many of these nowhere are."""
        there = {effect for task in self.world.tasks for effect in self._applied(task)}
        return sum(effect not in there for effect in effects)

    def _duplicated(self) -> set[int]:
        roots = set()
        for task in self.world.tasks:
            for (component, uid), times in Counter(self._applied(task)).items():
                if times > 1:
                    roots.add(uid >> self.world.layout.bits[component])
        return roots

    # -- damage --------------------------------------------------------------------------------------------

    def hurt(self, data: list[Datum], fault: int | None) -> None:
        """A fault has destroyed these, or their acks."""
        self.hurt_trees({(datum.root, datum.attempt) for datum in data if datum.anchored}, fault)

    def hurt_trees(self, trees: set[tuple[int, int]], fault: int | None) -> None:
        assert fault is not None
        for tree in trees:
            self.damaged[tree] = max(fault, self.damaged.get(tree, fault))

    def overflowed(self, datum: Datum) -> None:
        """A queue was full."""
        if datum.anchored:
            self.dropped.add((datum.root, datum.attempt))

    def timed_out(self, datum: Datum) -> int | None:
        """A root is given up; because of which fault."""
        tree = datum.root, datum.attempt
        because = self.damaged.get(tree)
        if because is None and tree not in self.dropped:
            self.false_timeouts.add(datum.root)
        self.world.outages.timed_out(because)
        return because

    # -- the end -------------------------------------------------------------------------------------------

    def moving(self) -> list[tuple[str, Datum]]:
        """(component, tuple) of everything anchored in queues, in service or on the wire."""
        found = []
        for task in self.world.tasks:
            entries = [*([task.serving] if task.serving else []), *task.queue]
            messages = (
                [entry.what for entry in entries if isinstance(entry.what, Message)]
                + task.inbox
                + task.memory
                + self.world.protocol.unreadable(task)
            )
            for channel in task.inputs.values():
                messages += channel.wire
            messages += task.line.messages
            sent = [(m.channel.down.component, m.datum) for m in messages if m.datum is not None]
            found += [(component, datum) for component, datum in sent if datum.anchored]
        return found

    def settle(self) -> dict[str, int]:
        """Every root is completed, in flight or lost."""
        world, layout = self.world, self.world.layout
        there = {effect for task in world.tasks for effect in self._applied(task)}
        copies: set[Effect] = set()
        buffered = [
            (task.component, message.datum)
            for task in world.tasks
            for channel in task.inputs.values()
            for message in channel.buffer
            if message.datum is not None and message.datum.anchored
        ]
        for component, datum in self.moving() + buffered + world.protocol.elsewhere():
            copies |= layout.effects(component, datum)
        for task, datum in world.protocol.kept_data():
            copies.add((task.component, datum.uid))
        kept = world.protocol.kept_roots()
        kept |= {root for spout in world.spouts if spout.log is not None for root in spout.log.kept()}
        completed = {root for root, effects in self.effects.items() if effects <= there}
        lost = {
            root
            for root, effects in self.effects.items()
            if root not in kept and not effects <= there | copies
        }
        return {
            "emitted": len(self.effects),
            "completed": len(completed),
            "in_flight": len(self.effects) - len(completed) - len(lost),
            "lost": len(lost),
            "replayed": len(self.replayed),
            "duplicated": len(self._duplicated()),
            "false_timeouts": len(self.false_timeouts),
            "late": len(self.late),
        }
