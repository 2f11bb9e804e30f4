"""The smallest example of each way in which a guarantee breaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tideover.models.accounts.space_time import Stretch
from tideover.models.accounts.trace import Trace
from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario
from tideover.models.world import World
from tideover.scenarios.audit.cases import Case
from tideover.scenarios.audit.verdict import Verdict
from tideover.sim.units import format_duration

Hit = tuple[tuple[str, str], ...]
"""What fails: the kinds of the faults, and the components that they hit."""
FEW = 6
"""Of fewer runs it cannot be said that all break alike."""
MOST_NAMED = 3
"""So many tuples are named of each sort."""


@dataclass(frozen=True)
class Example:
    """A run in which something is lost, counted twice, or put out wrong.

    harm    what is wrong
    alike   how many other runs break in the same way, at the same step; ``of``: at whatever step, of so many
            runs in which the same fails; 0: it depends on the step
    tuples  what is lost, or counted twice, and which windows are wrong, in words
    """

    case: Case
    verdict: Verdict
    alike: int
    of: int = 0
    tuples: tuple[str, ...] = ()

    @property
    def harm(self) -> str:
        """What is wrong, in words."""
        return self.verdict.harm

    @property
    def step(self) -> str:
        """The step beside which the last fault strikes, or that it may be any."""
        if self.of:
            return f"whatever the step ({self.alike + 1} of {self.of} runs)"
        return self.case.strikes[-1].text

    @property
    def text(self) -> str:
        """What happens, in words."""
        told = [
            f"{victim.kind} of {victim.name} at {format_duration(strike.at)}, {strike.text}"
            for strike, victim in zip(self.case.strikes, self.case.victims, strict=True)
        ]
        return "; then ".join(told)


def smallest(found: Iterable[tuple[Case, Verdict]]) -> list[Example]:
    """One example for each way to break: what is wrong if what fails, and beside which step, unless it is so
    beside most steps. With the fewest faults, then the fewest tuples and windows, then the earliest; losses
    and duplicates before windows that are wrong though each effect is there once.
    """
    tried: dict[Hit, list[tuple[Case, Verdict]]] = {}
    for case, verdict in found:
        tried.setdefault(tuple((victim.kind, victim.place) for victim in case.victims), []).append(
            (case, verdict)
        )
    examples = [example for runs in tried.values() for example in _of_one_hit(runs)]
    return sorted(examples, key=lambda one: _measure((one.case, one.verdict)))


def _of_one_hit(runs: Sequence[tuple[Case, Verdict]]) -> Iterator[Example]:
    """Of runs in which the same things fail, at different moments."""
    harmful: dict[str, list[tuple[Case, Verdict]]] = {}
    for case, verdict in runs:
        if verdict.harm:
            harmful.setdefault(verdict.harm, []).append((case, verdict))
    for group in harmful.values():
        if len(runs) >= FEW and 2 * len(group) > len(runs):
            yield Example(*min(group, key=_measure), len(group) - 1, len(runs))
            continue
        by_step: dict[tuple[str, str], list[tuple[Case, Verdict]]] = {}
        for case, verdict in group:
            by_step.setdefault(case.strikes[-1].moment.step, []).append((case, verdict))
        for same in by_step.values():
            yield Example(*min(same, key=_measure), len(same) - 1)


def _measure(one: tuple[Case, Verdict]) -> tuple[int, bool, int, int]:
    case, verdict = one
    return len(case.faults), not verdict.lost + verdict.duplicated, verdict.size, case.strikes[0].at


def named(scenario: Scenario, example: Example) -> Example:
    """The example with the names of what is lost, counted twice, or wrong."""
    world = struck(scenario, example.case)
    world.balance()
    ledger, trace = world.ledger, world.trace
    assert trace is not None
    told = [f"lost: {_root(root, trace)}" for root in ledger.lost[:MOST_NAMED].tolist()]
    twice = ledger.duplicated_roots()[:MOST_NAMED].tolist()
    told += [f"counted twice: {_root(root, trace)}{_history(root, world)}" for root in twice]
    bad = sorted(world.reference.bad) if world.reference is not None else []
    told += [f"wrong: window {number} of {component}.{task}" for component, task, number in bad[:MOST_NAMED]]
    return replace(example, tuples=tuple(told))


def struck(scenario: Scenario, case: Case, watched: Stretch | None = None) -> World:
    """A run with the faults of a case: traced, or ``watched`` for a diagram."""
    found = case.scenario(scenario)
    found = coarsened(found, coarseness(found))
    world = World(found, trace=watched is None, watched=watched, looks=0)
    world.run()
    return world


def _root(root: int, trace: Trace) -> str:
    """Which tuple it is."""
    for component, task, emitted, attempt, at in trace.emitted:
        if emitted == root and attempt == 0:
            return f"root {root} ({component}.{task}, emitted at {format_duration(at)})"
    return f"root {root}"


def _history(root: int, world: World) -> str:
    """Where, and between which steps of its task, a tuple of a root took effect the first time, and when it
    did again.
    """
    trace, topology = world.trace, world.job.topology
    assert trace is not None
    seen: dict[tuple[str, int, int, int], int] = {}
    for component, task, replica, uid, _, _, at in trace.processed:
        of = topology.by_name[component]
        if not of.ends_roots or uid >> of.bits != root:
            continue
        first = seen.setdefault((component, task, replica, uid), at)
        if first < at:
            who = f"{component}.{task}" + (f"/{replica}" if replica else "")
            mine = [step for step in trace.steps if step.who == who]
            before = [step.what for step in mine if step.at < first]
            after = [step.what for step in mine if step.at >= first]
            between = f", between {before[-1]} and {after[0]}" if before and after else ""
            return f", by {who} at {format_duration(first)}{between}, and at {format_duration(at)}"
    return ""
