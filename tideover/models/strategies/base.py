"""What a strategy says of itself, and how its protocol begins. All rooms ask a strategy by what is here; a
new one is a file beside this, found by its being there (CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar, Literal

from tideover.models.job.components import BoltConfig
from tideover.models.job.topology import Component, Topology
from tideover.models.mechanisms.buffers import Shared
from tideover.models.remarks import Plan, Work, mixed
from tideover.models.runtime.hooks import Hooks, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.verbs import Verbs, View
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.registry import Part, Registry

STRATEGIES: Registry[Strategy] = Registry("strategy")

Promise = Literal["none", "at most once", "at least once", "exactly once"]
CRASHES = frozenset(
    {"lose_state", "crash_task", "crash_host", "crash_worker", "crash_rack", "planned_restart"}
)
"""Kinds of failures that take tasks, or their state."""
KeyPath = tuple[str | int, ...]
"""Where a value stands among a strategy's keys: ``("components", 0)``."""


class Strategy(Part):
    """Parameters of a strategy, as a scenario names them, and all that others know of it.

    Subclasses register with ``@STRATEGIES.register(name)`` and give ``protocol``, which makes the protocol of
    one simulation. A strategy describes itself: what it promises and survives, the work that it adds, its
    ``remarks`` on a run that is planned, what its keys speak of. Nobody else asks for its class or keys.
    """

    kind: ClassVar[str]
    promise: ClassVar[Promise] = "at most once"
    survives: ClassVar[frozenset[str]] = frozenset()
    """Failure kinds after which the promise holds (of one task, with nothing else failing); of one that
    may lose tuples, those after which no others are lost than its docstring says.
    """
    stateless_too: ClassVar[bool] = True
    """Whether that is so also for a bolt without state; if not, what its task had in memory may be lost."""
    composed_of: ClassVar[tuple[type[Hooks], ...]] = ()
    """The mechanisms that its protocol makes: they say what they need of the job."""
    roles: ClassVar[frozenset[str]] = frozenset()
    """What it has besides tasks that a failure can name as its component: acker, driver."""
    bounded_queues: ClassVar[bool] = False
    """Whether it goes with queues that have a bound (one that derives from such a one says so itself)."""
    reads_queues: ClassVar[bool] = False
    """Whether it says how far spouts have come in queues before them (``source`` of a spout)."""
    loses_messages: ClassVar[bool] = False
    """Whether it goes with messages that are lost on their way (one that derives says so itself)."""
    local_stores: ClassVar[frozenset[str]] = frozenset()
    """Keys by which a store is named that has to be on each host for itself (a disk)."""
    rescales: ClassVar[bool] = False
    """Whether another number of tasks can go on from what it saves (`parallelism` of a planned stop)."""
    store_may_lose: ClassVar[bool] = True
    """Whether its store may lose what it has (it keeps nothing there, or knows what is left then)."""
    counts_tuples: ClassVar[tuple[str, ...]] = ()
    """Keys that count single tuples, where they are given: they do not go with lumps (``run.lump``)."""
    spouts_wait: ClassVar[tuple[str, ...]] = ()
    """Keys by which, where they are given, spouts wait as long as too much is under way."""
    windows: ClassVar[frozenset[str]] = frozenset()
    """Windows that go with it: ``sliding``, by ``event``, ``session``, late ones ``aside``, ``join``."""
    gives_up: ClassVar[tuple[str, ...]] = ()
    """Durations after which a root that is not done is given up, and emitted again."""
    saves_every: ClassVar[str] = "checkpoint_interval"
    """The key of the time between two checkpoints, if it has such a key and a ``cycle``."""
    recurs_every: ClassVar[str | None] = None
    """The key, or property, of the period of what recurs without failures."""
    not_in_hybrid: ClassVar[str | None] = "it does not say what its tasks do beside those of others"
    """Why it cannot be the strategy of some bolts only (in ``hybrid``); None: it can, by ``member``."""
    typical: ClassVar[dict[str, Any]] = {}
    """Values for comparisons, audits and tests, as a file says them: of keys without a default, or whose
    default does not suit runs of minutes.
    """
    after_failures: ClassVar[frozenset[str]] = frozenset()
    """Parameters that make no difference as long as nothing fails; they have defaults."""
    costs: ClassVar[dict[str, tuple[str, ...]]] = {}
    """What it does to state in normal operation, and the keys that say how long that takes, if all are 0 by
    default: a remark says then that it takes no time.
    """
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {}
    """The same after a failure."""

    def promises(self) -> Promise:
        """What it promises with these parameters; ``promise`` is what it does with the default ones."""
        return self.promise

    def promises_in(self, topology: Topology) -> Promise:
        """The same for a topology, which may be less: what is in other windows is not there exactly once."""
        promise = self.promises()
        weaker = promise == "exactly once" and self.needs.batches and mixed(topology)
        return "at least once" if weaker else promise

    @property
    def uses_store(self) -> bool:
        """Whether it keeps anything in a store of the scenario: then it has a key that names which."""
        return "store" in type(self).model_fields

    @property
    def needs(self) -> Needs:
        """What its mechanisms need, together."""
        return reduce(Needs.joined, (mechanism.needs for mechanism in self.composed_of), Needs())

    def protocol(self, job: Job) -> Protocol:
        """The strategy at work in ``job``: if it goes into a hybrid, by itself for all bolts."""
        if self.not_in_hybrid is not None:
            raise NotImplementedError
        return self.member(job, View(job).bolts, Shared(job, replicated=self.needs.paths))

    def member(self, job: Job, tasks: Sequence[BoltView], shared: Shared) -> Protocol:
        """The same for some bolt tasks of a job, and for spouts, beside others with which it shares
        something; of those that go into a hybrid.
        """
        raise NotImplementedError

    def without_failures(self) -> Strategy:
        """The same, with what makes no difference as long as nothing fails at its defaults."""
        fields = type(self).model_fields
        return self.model_copy(update={name: fields[name].get_default() for name in self.after_failures})

    def prompt(self) -> bool:
        """Whether windows are what they are without it as long as nothing fails, and nothing is overdue, as
        nothing is sent again. The data plane says whether something was.
        """
        return False

    def unstated(self, failures: bool) -> list[str]:
        """What it does to state, and after ``failures``, with the keys of its time, if none is given."""
        costs = self.costs | self.recovery_costs if failures and _free(self, self.costs) else self.costs
        return _free(self, costs)

    def undisturbed(self) -> Strategy:
        """What the reference run is under: normal operation's costs, no replicas, timeouts or recovery."""
        return STRATEGIES["none"]()

    def replicas(self, component: str, keeps_state: bool) -> int:
        """Copies of each task of a bolt, the first included; ``keeps_state``: whether its tasks do."""
        return 1

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        """Most copies of any task, by the parameters that are given, be they allowed or not."""
        return 1

    def named_bolts(self) -> dict[KeyPath, str]:
        """The bolts that the parameters name, by where they do."""
        return {}

    def named_hosts(self) -> dict[KeyPath, int]:
        """The hosts that the parameters name, by where they do."""
        return {}

    def named_stores(self) -> dict[KeyPath, str]:
        """The stores that the parameters name, by where they do."""
        keys = [key for key in ("store", *self.local_stores) if key in type(self).model_fields]
        return {(key,): name for key, name in given(self, keys).items()}

    def refusal(self, bolt: BoltConfig) -> str | None:
        """Why the strategy does not go with a bolt, to follow its name; None: it does."""
        return None

    def load(self, component: Component) -> Work:
        """What the strategy adds to the work of a bolt's tasks."""
        return Work()

    def remarks(self, plan: Plan) -> list[str]:
        """What an expert would remark before a run: sentences that begin with what they are about and a
        colon. `tideover.models.remarks` has texts that strategies share.
        """
        return []

    def cycle(self) -> tuple[int, int] | None:
        """What recurs without failures (checkpoints, say): first moment and period (ns); None: nothing."""
        period = getattr(self, self.recurs_every) if self.recurs_every else None
        return None if period is None else (period, period)

    def recovers_within(self, down: int, window: int) -> int:
        """Longest time (ns) from the last failure until all is as it would have been without, where tasks
        have little to do: what failed is back after ``down``, windows last ``window``. By default two periods
        of its cycle are then done again (one was cut short), or what is given up is emitted again (two
        timeouts after it was, at most), and the window ends that this falls in.
        """
        cycle, timeouts = self.cycle(), given(self, self.gives_up).values()
        return down + 2 * max([0 if cycle is None else cycle[1], *timeouts]) + window


def _free(strategy: Strategy, costs: dict[str, tuple[str, ...]]) -> list[str]:
    """What has none of its costs given, and the keys that would give them."""
    known = strategy.model_fields_set
    return [f"{what} ({', '.join(keys)})" for what, keys in costs.items() if not known & {*keys}]


def given(strategy: Strategy, keys: Iterable[str]) -> dict[str, Any]:
    """Those of a strategy's keys that have a value (not None), and the value."""
    values = dict(strategy)
    return {key: values[key] for key in keys if values[key] is not None}


class Protocol(Hooks):
    """A strategy at work. By itself it does nothing: what remains is amnesia.

    It makes the mechanisms that it is composed of (each plugs itself in), sees the job through ``view``, and
    acts by ``do``. Its hooks are those of `tideover.models.runtime.hooks.Hooks`; the mechanisms' come first.
    """

    def __init__(self, job: Job) -> None:
        self.view = View(job)
        self.do = Verbs(job)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        """``task`` is up again, empty: it takes in what was held for it."""
        self.do.open(task)


class OpensSpouts(Protocol):
    """One whose mechanisms open bolts when these have their state."""

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            self.do.open(task)


class BatchProtocol(Protocol):
    """One whose mechanisms hand tasks what they read, batch by batch."""

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        """What is held waits for the next batch."""
