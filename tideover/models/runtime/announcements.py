"""What a run announces: events for the accounts, and the steps of a protocol.

Tasks, mechanisms and supervision say it, accounts and the trace listen. Who needs to hear of something new
adds it here, with its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from tideover.models.job.topology import Component
from tideover.models.operators.state import Closed
from tideover.models.runtime.channels import Sent, Wire
from tideover.models.runtime.views import BoltView, Outage, SpoutView
from tideover.sim.train import Ints, Train


class Step(NamedTuple):
    """One step of a protocol, as who takes it announces it.

    at      the instant (ns)
    who     name of the task, or of the role (driver, coordinator), that takes it
    what    the step in the protocol's own words, without numbers: the same each time
    detail  what is different each time: how many tuples, which number
    to      name of who a message goes to; empty: it is none
    turn    that of the control action which takes it (`tideover.sim.kernel.Kernel.acting`); -1: data do
    """

    at: int
    who: str
    what: str
    detail: str = ""
    to: str = ""
    turn: float = -1

    @property
    def text(self) -> str:
        """The step as the trace prints it.

        >>> Step(0, "split.0", "buffer replayed", "12 tuples", "count.1").text
        'split.0: buffer replayed to count.1 (12 tuples)'
        """
        to = f" to {self.to}" if self.to else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.who}: {self.what}{to}{detail}"


class TupleEvents:
    """What is announced of tuples. Times are in ns; trains carry no markers.

    emitted        a spout task has emitted roots, first attempts and retries
    processed      a bolt task is done with tuples, and has handed on ``sent``
    window         a task has put out a window; ``again``: it had before, so for its readers it is void
    handed_on      with a window a task has handed on ``sent``
    destroyed      destroyed in a task's queue, or because they found it down, by the ``outage`` (-1: unknown)
    overflowed     arrivals found a task's queue full, and are lost
    discarded      arrivals were filtered out: what they carry is known already, or will come again
    repeated       the same, because another replica has sent it too, as it does also where nothing fails

    Tuples that come again:
    timed_out      roots were given up by their spout; ``outage`` (-1: none) is why they were not done
    retrying       roots wait in a spout's retry queue
    retries_lost   they do so no more: the spout has crashed
    expired        records were deleted before a spout had read them, or read them again
    reopened       tuples are on their way to ``task`` once more (a replay, a copied queue)
    replayed       tuples leave a buffer for ``task`` again, over ``channel``; None: are read again from a log
    unsent         replays to ``task`` will not be sent after all
    completed      an acker saw trees complete
    acked          a task tells ``to`` (a task, or a role) that it is done with tuples, each at its time
    """

    def emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None: ...
    def processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None: ...
    def window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None: ...
    def handed_on(self, task: BoltView, sent: list[Sent]) -> None: ...
    def destroyed(self, task: SpoutView | BoltView, train: Train, times: Ints, outage: int) -> None: ...
    def overflowed(self, task: BoltView, train: Train) -> None: ...
    def discarded(self, task: BoltView, train: Train) -> None: ...
    def repeated(self, task: BoltView, train: Train) -> None: ...
    def timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None: ...
    def retrying(self, spout: SpoutView, roots: Ints) -> None: ...
    def retries_lost(self, spout: SpoutView, roots: Ints) -> None: ...
    def expired(self, spout: SpoutView, roots: Ints) -> None: ...
    def reopened(self, task: BoltView, train: Train) -> None: ...
    def replayed(self, task: BoltView, train: Train, channel: Wire | None) -> None: ...
    def unsent(self, task: BoltView, train: Train) -> None: ...
    def completed(self, root: Ints, attempt: Ints, emitted: Ints, time: Ints) -> None: ...
    def acked(self, task: BoltView, to: str, train: Train) -> None: ...


class Announcements(TupleEvents):
    """Everything that is announced. Who defines ``on_emitted`` (with the same arguments) hears of
    ``emitted``, and so on.

    State:
    forgotten      the outage has taken a task's state, and these effects with it
    restored       a task has its state back (read, or copied), and with it these effects
    reloaded       a task has had its state again since ``since``, which the outage took
    rolled_back    a task went back to an earlier state: some effects are undone, others are there again
    void           effects are undone: their state is lost, or what was put out of them is void
    copies_lost    copies of tuples to ``task`` are gone: missing effects may be so for good

    Transactions of a sink:
    pre_committed  what a task has put out since it last did this is its transaction ``number``
    committed      readers see what is in a task's transaction
    aborted        a transaction (None: the open one) is undone. ``lost``: though it was to be committed

    The rest:
    struck         a fault strikes
    moved          the data plane was moved to ``now``: all tasks have announced what they did up to there
    kept           so many tuples are kept in buffers, logs or maps now
    transferred    bytes went over the network besides the streams: acks, copies between replicas
    snapshot       a snapshot of the job is complete; a task has waited for its barriers for ``aligning``
    put_out        something rare was put out that is no window: the output of a batch
    step           a protocol takes a step
    """

    def forgotten(self, task: BoltView, outage: int, uid: Ints) -> None: ...
    def restored(self, task: BoltView, outage: int, uid: Ints) -> None: ...
    def reloaded(self, task: BoltView, outage: int, since: int) -> None: ...
    def rolled_back(self, task: BoltView, gone: Ints, back: Ints) -> None: ...
    def void(self, component: Component, uid: Ints, replica: int) -> None: ...
    def copies_lost(self, task: BoltView, uid: Ints) -> None: ...
    def pre_committed(self, task: BoltView, number: int) -> None: ...
    def committed(self, task: BoltView, number: int, now: int) -> None: ...
    def aborted(self, task: BoltView, number: int | None, lost: bool) -> None: ...
    def struck(self, outage: Outage) -> None: ...
    def moved(self, now: int) -> None: ...
    def kept(self, tuples: int) -> None: ...
    def transferred(self, bytes_: int) -> None: ...
    def snapshot(self, begun: int, ended: int, aligning: int) -> None: ...
    def put_out(self, what: object, now: int) -> None: ...
    def step(self, step: Step) -> None: ...


EVENTS = tuple(
    name for kind in (TupleEvents, Announcements) for name in vars(kind) if not name.startswith("_")
)


class Announcer(Announcements):
    """Tells every listener what it wants to hear, in their order.

    hears_steps   whether any does of steps: mostly none does, and there are many
    """

    def __init__(self, listeners: Iterable[object]) -> None:
        told: dict[str, list[Callable[..., None]]] = {}
        for listener in listeners:
            for name in _heard_by(type(listener)):  # type: ignore[arg-type]  # classes are hashable
                told.setdefault(name, []).append(getattr(listener, f"on_{name}"))
        self.hears_steps = "step" in told
        for name, heard in told.items():
            setattr(self, name, to_all(heard))


@cache  # small runs would notice
def _heard_by(kind: type) -> list[str]:
    """The events that listeners of a class want to hear of."""
    return [name for name in EVENTS if hasattr(kind, f"on_{name}")]


def to_all(heard: list[Callable[..., None]]) -> Callable[..., None]:
    def tell(*what: Any) -> None:
        for listener in heard:
            listener(*what)

    return heard[0] if len(heard) == 1 else tell
