"""What a strategy says of itself, and how its protocol begins."""

from __future__ import annotations

from typing import ClassVar, Literal

from tideover.models.runtime.hooks import Hooks, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.view import View
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.registry import Part, Registry

STRATEGIES: Registry[Strategy] = Registry("strategy")

Promise = Literal["at most once", "at least once", "exactly once"]


class Strategy(Part):
    """Parameters of a strategy, as a scenario names them, and what it promises.

    Subclasses register themselves with ``@STRATEGIES.register(name)`` and give ``protocol``, which makes the
    running protocol for one simulation. ``replicas`` says how many copies of a component's tasks there are.
    """

    kind: ClassVar[str]
    promise: ClassVar[Promise] = "at most once"
    survives: ClassVar[frozenset[str]] = frozenset()
    """Failure kinds after which the promise holds (of one task, with nothing else failing)."""

    composed_of: ClassVar[tuple[type[Hooks], ...]] = ()
    """The mechanisms that its protocol makes: they say what they need of the job."""

    after_failures: ClassVar[frozenset[str]] = frozenset()
    """Parameters that make no difference as long as nothing fails; they have defaults."""
    costs: ClassVar[dict[str, tuple[str, ...]]] = {}
    """What it does to state in normal operation, and the keys that say how long that takes."""
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {}
    """The same after a failure."""

    @property
    def needs(self) -> Needs:
        """What its mechanisms need, together."""
        needs = Needs()
        for mechanism in self.composed_of:
            needs = needs.together(mechanism.needs)
        return needs

    def protocol(self, job: Job) -> Protocol:
        """The strategy at work in ``job``."""
        raise NotImplementedError

    def undisturbed(self) -> Strategy:
        """What the reference run is under: the costs of normal operation, without replicas, timeouts or
        recovery.
        """
        return STRATEGIES["none"]()

    def replicas(self, component: str) -> int:
        """Copies of each task of a bolt, the first included."""
        return 1

    def cycle(self) -> tuple[int, int] | None:
        """What recurs in normal operation (checkpoints, say): its first moment and its period, ns; None:
        nothing does.
        """
        return None


class Protocol(Hooks):
    """A strategy at work. By itself it does nothing: what remains is amnesia.

    It makes the mechanisms that it is composed of (each plugs itself in), sees the job through ``view``, and
    acts by ``do``. Its hooks are those of `tideover.models.runtime.hooks.Hooks`; the mechanisms' come first.
    It measures nothing: the accounts listen to what its verbs and mechanisms do.
    """

    def __init__(self, job: Job) -> None:
        self.view = View(job)
        self.do = Verbs(job)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        """``task`` is up again, empty: it takes in what was held for it."""
        self.do.open(task)
