"""The smallest example of each way in which a guarantee breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from tideover.models.accounts.space_time import Stretch
from tideover.models.accounts.trace import Trace
from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario
from tideover.models.world import World
from tideover.scenarios.audit.cases import Case
from tideover.scenarios.audit.histories import History, lost, twice
from tideover.scenarios.audit.verdict import Verdict
from tideover.sim.units import format_duration

Hit = tuple[tuple[str, str], ...]
"""What fails: the kinds of the faults, and the components that they hit."""
FEW = 6
"""Of fewer runs it cannot be said that all break alike."""
MOST_NAMED = 3
"""So many tuples are named of each sort;"""
MOST_LOOKED_AT = 100
"""so many are looked at to find those that come to it in different ways."""
MOST_EXAMPLES = 10
"""So many are named, and drawn;"""
MOST_TRIED = 24
"""so many more runs are looked at to find other causes."""


@dataclass(frozen=True)
class Example:
    """A run in which something is lost, counted twice, or put out wrong.

    harm    what is wrong
    alike   how many other runs break in the same way, at the same step; ``of``: at whatever step, of so many
            runs in which the same fails; 0: it depends on the step
    tuples  what is lost, or counted twice, and which windows are wrong, in words
    causes  how that came, for each way in which it did
    """

    case: Case
    verdict: Verdict
    alike: int
    of: int = 0
    tuples: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()

    @property
    def harm(self) -> str:
        """What is wrong, in words."""
        return self.verdict.harm

    @property
    def step(self) -> str:
        """The step beside which the last fault strikes, or that it may be any."""
        if not self.case.faults:
            return ""
        if self.of:
            return f"whatever the step ({self.alike + 1} of {self.of} runs)"
        return self.case.strikes[-1].text

    @property
    def text(self) -> str:
        """What happens, in words."""
        return told(self.case)


def told(case: Case) -> str:
    """What fails in a case, beside which steps, in words."""
    return (
        "; then ".join(
            f"{victim.kind} of {victim.name} at {format_duration(strike.at)}, {strike.text}"
            for strike, victim in zip(case.strikes, case.victims, strict=True)
        )
        or "without any failure"
    )


def examples(
    scenario: Scenario,
    found: Sequence[tuple[Case, Verdict]],
    broken: Callable[[Case, Verdict], bool] = lambda case, verdict: False,
) -> list[Example]:
    """The smallest ones (``smallest``): first those by which the strategy has ``broken`` its word, then those
    that show something new. The tuples of the first are named; where it breaks whatever the step, other steps
    are looked at, too, for other causes.
    """
    first, others = (sorted(part, key=lambda e: not broken(e.case, e.verdict)) for part in smallest(found))
    seen: set[str] = set()
    new: list[Example] = []
    old: list[Example] = []
    for example in first[:MOST_EXAMPLES]:
        one = named(scenario, example)
        (old if seen.issuperset(one.causes) else new).append(one)
        seen.update(one.causes)
    for example in others[:MOST_TRIED]:
        one = named(scenario, example)
        if not seen.issuperset(one.causes):
            new.append(one)
            seen.update(one.causes)
    return sorted([*new, *old, *first[MOST_EXAMPLES:]], key=lambda e: not broken(e.case, e.verdict))


def smallest(found: Iterable[tuple[Case, Verdict]]) -> tuple[list[Example], list[Example]]:
    """One example for each way to break: what is wrong if what fails, and beside which step, unless it is so
    beside most steps. With the fewest faults, then the fewest tuples and windows, then the earliest; losses
    and duplicates before windows that are wrong though each effect is there once.

    And others, where it is so beside most steps: one for each step, in turn of each way.
    """
    tried: dict[Hit, list[tuple[Case, Verdict]]] = {}
    for case, verdict in found:
        tried.setdefault(tuple((victim.kind, victim.place) for victim in case.victims), []).append(
            (case, verdict)
        )
    first: list[Example] = []
    others: list[list[Example]] = []
    for runs in tried.values():
        for examples in _of_one_hit(runs):
            by_size = sorted(examples, key=_size)
            if by_size[0].of:
                others.append(by_size[1:])
                by_size = by_size[:1]
            first += by_size
    others.sort(key=lambda each: [_size(one) for one in each])
    return sorted(first, key=_size), [one for row in zip_longest(*others) for one in row if one is not None]


def _of_one_hit(runs: Sequence[tuple[Case, Verdict]]) -> Iterator[list[Example]]:
    """Of runs in which the same things fail, at different moments: for each harm an example beside each step;
    ahead of them, if most break in this way, one for all.
    """
    harmful: dict[str, list[tuple[Case, Verdict]]] = {}
    for case, verdict in runs:
        if verdict.harm:
            harmful.setdefault(verdict.harm, []).append((case, verdict))
    for group in harmful.values():
        by_step: dict[tuple[str, str], list[tuple[Case, Verdict]]] = {}
        for case, verdict in group:
            step = case.strikes[-1].moment.step if case.strikes else ("", "")
            by_step.setdefault(step, []).append((case, verdict))
        each = [Example(*min(same, key=_measure), len(same) - 1) for same in by_step.values()]
        if len(runs) >= FEW and 2 * len(group) > len(runs):
            smallest = min(each, key=_size)
            each[each.index(smallest)] = replace(smallest, alike=len(group) - 1, of=len(runs))
        yield each


def _size(example: Example) -> tuple[int, bool, int, int]:
    return _measure((example.case, example.verdict))


def _measure(one: tuple[Case, Verdict]) -> tuple[int, bool, int, int]:
    case, verdict = one
    at = case.strikes[0].at if case.strikes else 0
    return len(case.faults), not verdict.lost + verdict.duplicated, verdict.size, at


def named(scenario: Scenario, example: Example) -> Example:
    """The example with the names of what is lost, counted twice, or wrong, and how that came."""
    world = struck(scenario, example.case)
    world.balance()
    causes: list[str] = []
    lines: list[str] = []
    for what, roots, history in (
        ("lost", world.ledger.lost, lost),
        ("counted twice", world.ledger.duplicated_roots(), twice),
    ):
        for cause, text in _ways(roots[:MOST_LOOKED_AT].tolist(), world, history):
            causes.append(f"{what}: {cause}")
            lines.append(f"{what}: {text}")
    bad = sorted(world.reference.bad) if world.reference is not None else []
    lines += [f"wrong: window {number} of {component}.{task}" for component, task, number in bad[:MOST_NAMED]]
    return replace(example, tuples=tuple(lines), causes=tuple(causes))


def _ways(
    roots: Sequence[int], world: World, history: Callable[[int, World], History | None]
) -> Iterator[tuple[str, str]]:
    """For each cause the first of these roots, and how many more there are."""
    trace = world.trace
    assert trace is not None
    by_cause: dict[str, list[str]] = {}
    for root in roots:
        cause, text = history(root, world) or ("", "")
        by_cause.setdefault(cause, []).append(f"{_root(root, trace)}{', ' if text else ''}{text}")
    for cause, same in list(by_cause.items())[:MOST_NAMED]:
        yield cause, same[0] + (f" ({len(same) - 1} more in this way)" if len(same) > 1 else "")


def struck(scenario: Scenario, case: Case, watched: Stretch | None = None) -> World:
    """A run with the faults of a case: with its trace and fates, or ``watched`` for a diagram."""
    found = case.scenario(scenario)
    found = coarsened(found, coarseness(found))
    world = World(found, trace=watched is None, fates=watched is None, watched=watched, looks=0)
    world.run()
    return world


def _root(root: int, trace: Trace) -> str:
    """Which tuple it is."""
    for component, task, emitted, attempt, at in trace.emitted:
        if emitted == root and attempt == 0:
            return f"root {root} ({component}.{task}, emitted at {format_duration(at)})"
    return f"root {root}"
