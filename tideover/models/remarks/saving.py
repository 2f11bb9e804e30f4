"""State that is saved again and again: longer than the interval, or than the store keeps up with."""

from __future__ import annotations

from dataclasses import dataclass

from tideover.models.job.topology import Component
from tideover.models.remarks.plan import Plan, Work, entries_of
from tideover.sim.units import S


@dataclass(frozen=True)
class Saving:
    """How state is saved: what a strategy's parameters say of it.

    key         name of the interval
    interval    distance of two checkpoints (ns)
    time, cost  how long one keeps a task: always, and for each entry of the state (ns)
    entry_size  bytes of an entry of a bolt's own in the store
    """

    key: str
    interval: int
    time: int
    cost: int
    entry_size: int

    def keeps(self, entries: int) -> int:
        """How long a checkpoint of so many entries keeps its task (ns)."""
        return self.time + entries * self.cost

    def load(self, entries: int) -> Work:
        """What it adds to the work of a task with so many entries."""
        return Work(saving=self.keeps(entries) / self.interval)


def always(component: Component) -> int:
    """Entries of the `state` of one task that each checkpoint has to write (an incremental one: none, if
    nothing has changed).
    """
    return 0 if component.backend is None else component.backend.to_write(0)


def _backed(component: Component) -> tuple[int, int]:
    """Entries of the `state` of one task, which the first checkpoint has all; and their bytes."""
    backend = component.backend
    return (0, 0) if backend is None else (backend.entries, backend.entries * backend.entry_size)


def by_task(plan: Plan, saving: Saving) -> list[str]:
    """Remarks if a task's checkpoint takes longer than the interval, or if the store does not keep up with
    all of them. Each task saves for itself, every interval and at the end of each window.
    """
    entries = max((c.keys + _backed(c)[0] for c in plan.stateful), default=0)
    size = max((c.keys * saving.entry_size + _backed(c)[1] for c in plan.stateful), default=0)
    write = plan.store.latency + size * S // plan.store.bandwidth
    takes = saving.keeps(entries) + write
    if takes > saving.interval:
        return [
            f"{saving.key} {saving.interval / S:g} s: a checkpoint of {entries} entries takes up to "
            f"{takes / S:.4g} s, longer than the interval"
        ]
    writers = sum(c.tasks for c in plan.stateful)
    windows = [c.window for c in plan.stateful if c.window and (c.window.length or c.trigger == "tick")]
    lengths = [w.slide or w.length or w.beat or 0 for w in windows]
    often = min([saving.interval, *lengths])
    if writers * write > often:
        return [
            f"store: {writers} tasks write for {write / S:.4g} s each, but every {often / S:g} s a write is "
            "asked for: they fall behind"
        ]
    return []


def job_takes(plan: Plan, saving: Saving, upload: int) -> int:
    """Up to how long a snapshot of the whole job takes (ns), of all that its tasks have; ``upload``: from the
    end of a task's write until it counts (ns).
    """
    kept = [c for c in plan.topology.components if c.keeps_state]
    own = {c.name: entries_of(c) if c.window else 0 for c in kept}
    entries = max((own[c.name] + _backed(c)[0] for c in kept), default=0)
    size = sum(c.tasks * (own[c.name] * saving.entry_size + _backed(c)[1]) for c in kept)
    write = sum(c.tasks for c in kept) * plan.store.latency + size * S // plan.store.bandwidth
    return saving.keeps(entries) + write + upload


def of_the_job(plan: Plan, saving: Saving, upload: int, timeout: int) -> list[str]:
    """A remark if a snapshot of the whole job takes longer than its ``timeout`` or its interval: as long as
    its slowest task, and all of them at the store, which writes one after the other.

    ``upload``: from the end of a task's write until it counts (ns).
    """
    takes = job_takes(plan, saving, upload)
    if takes > timeout:
        return [
            f"checkpoint_timeout {timeout / S:g} s: a snapshot takes up to {takes / S:.4g} s: it may be "
            "abandoned each time, and a failure then goes back to the beginning"
        ]
    if takes > saving.interval:
        return [
            f"{saving.key} {saving.interval / S:g} s: a snapshot takes up to {takes / S:.4g} s, longer than "
            "the interval: the next one begins when it has ended"
        ]
    return []
