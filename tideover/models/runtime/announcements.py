"""What a run announces: events for the accounts, and the steps of a protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tideover.models.job.topology import Component
from tideover.models.operators.state import Closed
from tideover.models.runtime.channels import Sent, Wire
from tideover.models.runtime.views import BoltView, Outage, SpoutView
from tideover.sim.train import Ints, Train

# What a protocol does, step by step: for the trace, the space-time diagram and audits.


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


class Announcements:
    """Everything that is announced. Times are in ns; trains carry no markers.

    Who defines ``on_emitted`` (with the same arguments) hears of ``emitted``, and so on.
    """

    # -- tuples ----------------------------------------------------------------------------------------------

    def emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        """A spout task has emitted roots, first attempts and retries."""

    def processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        """A bolt task is done with tuples, and has handed on ``sent``."""

    def window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        """A task has put out a window; ``again``: it had put it out before, so for its readers it is void."""

    def handed_on(self, task: BoltView, sent: list[Sent]) -> None:
        """With a window a task has handed on ``sent``."""

    def destroyed(self, task: SpoutView | BoltView, train: Train, times: Ints, outage: int) -> None:
        """Destroyed in a task's queue, or because they found it down, by the ``outage`` (-1: unknown)."""

    def overflowed(self, task: BoltView, train: Train) -> None: ...

    def discarded(self, task: BoltView, train: Train) -> None:
        """Arrivals were filtered out: what they carry is known already, or will come again."""

    def repeated(self, task: BoltView, train: Train) -> None:
        """The same, because another replica has sent it too, as it does also where nothing fails."""

    # -- tuples that come again ------------------------------------------------------------------------------

    def timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        """Roots were given up by their spout; ``outage`` (-1: none) is why they were not done."""

    def retrying(self, spout: SpoutView, roots: Ints) -> None: ...

    def retries_lost(self, spout: SpoutView, roots: Ints) -> None:
        """They do so no more: the spout has crashed."""

    def expired(self, spout: SpoutView, roots: Ints) -> None:
        """Records were deleted before a spout had read them, or read them again."""

    def reopened(self, task: BoltView, train: Train) -> None:
        """Tuples are on their way to ``task`` once more (a replay, a copied queue)."""

    def replayed(self, task: BoltView, train: Train, channel: Wire | None) -> None:
        """Tuples leave a buffer for ``task`` again, over ``channel``, or (None) are read again from a log."""

    def unsent(self, task: BoltView, train: Train) -> None:
        """Replays to ``task`` will not be sent after all."""

    def completed(self, root: Ints, attempt: Ints, emitted: Ints, time: Ints) -> None: ...

    def acked(self, task: BoltView, to: str, train: Train) -> None:
        """A task tells ``to`` (a task, or a role) that it is done with tuples, each at its time."""

    # -- state -----------------------------------------------------------------------------------------------

    def forgotten(self, task: BoltView, outage: int, uid: Ints) -> None:
        """The outage has taken a task's state, and these effects with it."""

    def restored(self, task: BoltView, outage: int, uid: Ints) -> None:
        """A task has its state back (read, or copied), and with it these effects."""

    def reloaded(self, task: BoltView, outage: int, since: int) -> None:
        """A task has had its state again since ``since``, which the outage took."""

    def rolled_back(self, task: BoltView, gone: Ints, back: Ints) -> None:
        """A task went back to an earlier state: some effects are undone, others are there again."""

    def void(self, component: Component, uid: Ints, replica: int) -> None:
        """Effects are undone: their state is lost, or what was put out of them is void."""

    def copies_lost(self, task: BoltView, uid: Ints) -> None:
        """Copies of tuples to ``task`` are gone: if their effects are missing, they may be so for good."""

    # -- transactions of a sink ------------------------------------------------------------------------------

    def pre_committed(self, task: BoltView, number: int) -> None:
        """What a task has put out since it last did this is its transaction ``number``."""

    def committed(self, task: BoltView, number: int, now: int) -> None:
        """Readers see what is in a task's transaction."""

    def aborted(self, task: BoltView, number: int | None, lost: bool) -> None:
        """A transaction (None: the open one) is undone. ``lost``: though it was to be committed."""

    # -- the rest --------------------------------------------------------------------------------------------

    def struck(self, outage: Outage) -> None: ...

    def moved(self, now: int) -> None:
        """The data plane was moved to ``now``: all tasks have announced what they did up to there."""

    def kept(self, tuples: int) -> None:
        """So many tuples are kept in buffers, logs or maps now."""

    def transferred(self, bytes_: int) -> None:
        """Bytes went over the network besides the streams: acks, copies between replicas."""

    def snapshot(self, begun: int, ended: int, aligning: int) -> None:
        """A snapshot of the job is complete; a task has waited for its barriers for ``aligning`` at most."""

    def put_out(self, what: object, now: int) -> None:
        """Something rare was put out that is no window: the output of a batch."""

    def step(self, step: Step) -> None: ...


EVENTS = tuple(
    name for name, value in vars(Announcements).items() if callable(value) and not name.startswith("_")
)


class Announcer(Announcements):
    """Tells every listener what it wants to hear, in their order."""

    def __init__(self, listeners: Iterable[object]) -> None:
        told: dict[str, list[Callable[..., None]]] = {}
        for listener in listeners:
            for name in _heard_by(type(listener)):
                told.setdefault(name, []).append(getattr(listener, f"on_{name}"))
        self.hears_steps = "step" in told
        """Whether any does of steps: mostly none does, and there are many."""
        for name, heard in told.items():
            setattr(self, name, heard[0] if len(heard) == 1 else _to_all(heard))


_HEARD: dict[type, list[str]] = {}


def _heard_by(kind: type) -> list[str]:
    """The events that listeners of a class want to hear of; asked once, since small runs would notice."""
    if kind not in _HEARD:
        _HEARD[kind] = [name for name in EVENTS if hasattr(kind, f"on_{name}")]
    return _HEARD[kind]


def _to_all(heard: list[Callable[..., None]]) -> Callable[..., None]:
    def announce(*what: Any) -> None:
        for listener in heard:
            listener(*what)

    return announce
