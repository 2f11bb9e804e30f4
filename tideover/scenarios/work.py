"""The runs of a sweep that have to be done: their order, how they are shared out, and doing them here.

A run with failures is held against one without them (`tideover.models.evaluation.undisturbed`). Runs that
differ only in what matters after a failure have it in common, and a process keeps it for the next of them. So
they follow one another, and are shared out together as far as the shares stay about equal.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tideover.models.config import Scenario
from tideover.models.evaluation.undisturbed import identity, without_failures
from tideover.scenarios.runs import Outcome, attempt, keys

Tell = Callable[[str, float], None]
Work = Callable[[Sequence["Unit"], bool, Tell], Iterator[list[Outcome]]]

_SAVE_EVERY_S = 2.0


@dataclass(frozen=True)
class Unit:
    """One run that has to be done. Units of the same ``reference`` share it."""

    key: str
    scenario: Scenario
    replication: int
    reference: str


def units(scenario: Scenario) -> list[Unit]:
    """A scenario's replications."""
    quiet = hashlib.sha256(identity(without_failures(scenario), 0).encode()).hexdigest()[:16]
    return [Unit(key, scenario, n, f"{quiet} {n}") for n, key in enumerate(keys(scenario))]


def together(todo: Iterable[Unit]) -> list[Unit]:
    """The same units, those that share a reference one after the other."""
    groups: dict[str, list[Unit]] = {}
    for unit in todo:
        groups.setdefault(unit.reference, []).append(unit)
    return [unit for group in groups.values() for unit in group]


def shares(todo: Sequence[Unit], count: int) -> list[list[Unit]]:
    """The units in ``count`` shares, one after the other (one each if there are fewer units).

    All are about equal; a cut is moved by up to a quarter of a share to where the reference changes.
    """
    count = min(count, len(todo))
    ends = [cut(todo, number * len(todo) // count, len(todo) // count) for number in range(1, count)]
    return [list(todo[a:b]) for a, b in zip([0, *ends], [*ends, len(todo)], strict=True)]


def cut(todo: Sequence[Unit], at: int, share: int) -> int:
    """Where the reference changes next to ``at``, at most a quarter of ``share`` away; else ``at``."""
    for distance in range(share // 4 + 1):
        for index in (at + distance, at - distance):
            if 0 < index < len(todo) and todo[index - 1].reference != todo[index].reference:
                return index
    return at


def in_process(todo: Sequence[Unit], timeline: bool, tell: Tell) -> Iterator[list[Outcome]]:
    """Outcomes of runs in this process, those of about two seconds at a time."""
    batch: list[Outcome] = []
    since = time.monotonic()
    for unit in todo:
        batch.append(attempt(unit.scenario, unit.replication, unit.key, timeline))
        tell("simulating", len(batch))
        if time.monotonic() - since > _SAVE_EVERY_S:
            yield batch
            batch, since = [], time.monotonic()
    yield batch
