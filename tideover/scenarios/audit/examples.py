"""The smallest example of each way in which a guarantee breaks, and how it came about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple

from tideover.models.accounts.trace import (
    ACKED,
    AGAIN,
    BACK,
    DESTROYED,
    EMITTED,
    PROCESSED,
    PUT_OUT,
    SENT,
    UNDONE,
    Event,
    Stretch,
    Trace,
)
from tideover.models.coarsening import coarsened
from tideover.models.config import Scenario
from tideover.models.runtime.announcements import Step
from tideover.models.world import World
from tideover.scenarios.audit.cases import Case, Verdict
from tideover.sim.units import format_duration

MOST_STEPS, MOST_LATER = 6, 4
"""So many steps are named that were taken between what a tuple did and its loss, and then."""
_ADDS = (PROCESSED, BACK)


class History(NamedTuple):
    """What became of a root.

    cause  what is the same of all that come to it in the same way
    text   the same in full: tuples, tasks, steps and moments; only from what the tuple and its task did
    """

    cause: str
    text: str


class _Effect(NamedTuple):
    """A tuple where its root ends: who had it, and what happened to it, in order."""

    component: str
    uid: int
    events: list[Event]

    def alive(self, at: int) -> bool:
        """Whether it had an effect at a moment (ns), or had been put out."""
        counted = 0
        for event in self.events:
            if event.at <= at:
                counted += (event.what in _ADDS) - (event.what == UNDONE)
        return counted > 0

    def acked(self, attempt: int, at: int) -> bool:
        """Whether it was acked at or before a moment (ns)."""
        return any(e.what == ACKED and e.number == attempt and e.at <= at for e in self.events)

    def last(self, *what: str, before: int | None = None) -> Event | None:
        """The last of such events, at or before a moment (ns; None: at all)."""
        found = [e for e in self.events if e.what in what and (before is None or e.at <= before)]
        return found[-1] if found else None


def twice(root: int, world: World) -> History | None:
    """Why a root is counted twice: what of its first time is still there, and why it came again. None: it
    cannot be said.
    """
    effects = list(_effects(root, world))
    for effect in effects:
        counted = 0
        first: Event | None = None
        for place, event in enumerate(effect.events):
            if event.what in _ADDS and counted and first is not None:
                return _twice(world, effects, effect, first, effect.events[: place + 1])
            counted += (event.what in _ADDS) - (event.what == UNDONE)
            if event.what == PROCESSED or (first is None and event.what == BACK):
                first = event
    return None


def _twice(
    world: World, effects: Sequence[_Effect], effect: _Effect, first: Event, events: Sequence[Event]
) -> History:
    second, whose = events[-1], first.who
    since = [event for event in events[:-1] if (event.at, event.order) > (first.at, first.order)]
    how = "by" if first.what == PROCESSED else "with the state of"
    begins = f"{how} {whose} at {format_duration(first.at)}{_sender(effect, first)}{_between(world, first)}"
    back = [event for event in since if event.what == BACK]
    out = [event for event in since if event.what == PUT_OUT]
    if second.what == BACK:
        at = out[-1].at if out else first.at
        return History(
            "put out, and there again with the state",
            f"{begins}; put out at {format_duration(at)}, and in the state to which {whose} went back at "
            f"{format_duration(second.at)}",
        )
    if back:
        kept = f"it is in the state to which {whose} went back at {format_duration(back[-1].at)}"
    elif out:
        kept = f"it was put out at {format_duration(out[-1].at)}"
    else:
        kept = f"{whose} has kept it"
    again, why = _again(world, effects, effect, first, second)
    cause = "in a state that was saved" if back else "put out" if out else "kept"
    return History(f"{cause}; {again}", f"{begins}; {kept}; {why}; again at {format_duration(second.at)}")


def _again(
    world: World, effects: Sequence[_Effect], effect: _Effect, first: Event, second: Event
) -> tuple[str, str]:
    """Why a tuple came again, in the same words for all of its sort, and in full."""
    if second.number == first.number:
        sent = effect.last(AGAIN, before=second.at)
        if sent is None:
            return "came again", f"it came again{_after_all(world, second.at)}"
        return "sent again", f"it was sent to {sent.who} again at {format_duration(sent.at)}"
    at, spout = _came(world, effect.uid, effect.component, second.number) or (second.at, "")
    came = f"and so the root came again{_after(world, spout, at)}"
    gone = [one for one in effects if not one.alive(at)]
    if gone:
        return "a part of the root was not", f"{_gone(world, gone[0], at)}, {came}"
    for one in (effect, *effects):
        did = one.last(PROCESSED, before=at)
        if did is not None and not one.acked(did.number, at):
            what = "it" if one is effect else "another tuple of the root"
            return "not acked", f"{_unacked(world, did, what, at)}, {came}"
    return "acked in vain", f"all of it was acked, {came}"


def _gone(world: World, effect: _Effect, at: int) -> str:
    """What became of a tuple that has no effect."""
    did, undone = effect.last(PROCESSED, before=at), effect.last(UNDONE, before=at)
    if did is not None and undone is not None:
        when = format_duration(did.at)
        how = f"at {when}{_sender(effect, did)}{_between(world, did)}"
        return f"the root's tuple at {did.who} ({how}) was undone at {format_duration(undone.at)}"
    lost = effect.last(DESTROYED, before=at)
    if lost is not None:
        return f"the root's tuple at {lost.who} was destroyed at {format_duration(lost.at)}"
    return f"the root's tuple at {effect.component} had done nothing"


def _unacked(world: World, did: Event, what: str, until: int) -> str:
    """That a task did not ack a tuple until then (ns), and what it did last before it failed."""
    for outage in world.outages:
        names = [getattr(task, "name", "") for task in outage.tasks]
        if did.at <= (failed := outage.failed_at) <= until and did.who in names:
            after = _after(world, did.who, failed)
            return f"{did.who} had not acked {what} when it failed at {format_duration(failed)}{after}"
    return f"{did.who} had not acked {what}"


def lost(root: int, world: World) -> History | None:
    """How a root was lost: where the first of its tuples that is missing had its effect, or ended, and which
    steps were taken since. None: it cannot be said.
    """
    for effect in _effects(root, world):
        if effect.alive(world.kernel.now):
            continue
        did, undone, gone = effect.last(PROCESSED), effect.last(UNDONE), effect.last(DESTROYED)
        if did is not None and undone is not None:
            sender = _sender_of(effect, did)
            begins = f"by {did.who} at {format_duration(did.at)}{_sender(effect, did)}{_between(world, did)}"
            since = _since(world, (did.who, sender), did.at, undone.at)
            acked = effect.last(ACKED, before=undone.at)
            told = "" if acked is None else f"; acked at {format_duration(acked.at)}"
            cause = "undone" if acked is None else "acked, and undone"
            then = _then(world, (did.who, sender), undone.at)
            return History(cause, f"{begins}{told}{since}; undone at {format_duration(undone.at)}{then}")
        if gone is not None:
            since = _since(world, (gone.who, _sender_of(effect, gone)), gone.at, world.kernel.now)
            at = format_duration(gone.at)
            return History("destroyed", f"destroyed at {gone.who} at {at}{_sender(effect, gone)}{since}")
        sent = effect.last(SENT)
        if sent is not None:
            since = _since(world, (sent.who,), sent.at, world.kernel.now)
            when = format_duration(sent.at)
            return History("nothing came of it", f"{sent.who} sent it to {effect.component} at {when}{since}")
    assert world.trace is not None
    events = [event for event in world.trace.of(root) if event.who]
    if not events:
        return None
    last = events[-1]  # no tuple has come, or was sent, to where the root ends
    since = _since(world, (last.who,), last.at, world.kernel.now)
    text = f"{last.what} at {last.who} at {format_duration(last.at)}{since}"
    return History(f"{last.what} on its way", text)


def _effects(root: int, world: World) -> Iterator[_Effect]:
    """The tuples of a root where it ends, those that were sent and never came included."""
    assert world.trace is not None
    found: dict[tuple[str, int, int], list[Event]] = {}
    ways: dict[tuple[str, int], list[Event]] = {}
    for event in world.trace.of(root):
        if world.job.topology.by_name[event.component].ends_roots:
            if event.what == SENT:
                ways.setdefault((event.component, event.uid), []).append(event)
            else:
                found.setdefault((event.component, event.uid, event.replica), []).append(event)
    for component, uid in ways:
        if not any(place[:2] == (component, uid) for place in found):
            found[component, uid, 0] = []
    for (component, uid, _), events in found.items():
        whole = sorted([*events, *ways.get((component, uid), [])], key=lambda e: e[:2])
        yield _Effect(component, uid, whole)


def _sender_of(effect: _Effect, event: Event) -> str:
    """Who sent the tuple that an event is of."""
    sent = [e for e in effect.events if e.what == SENT and e.at <= event.at]
    return sent[-1].who if sent else ""


def _sender(effect: _Effect, event: Event) -> str:
    sender = _sender_of(effect, event)
    return f", from {sender}" if sender else ""


def _came(world: World, uid: int, component: str, attempt: int) -> tuple[int, str] | None:
    """When the root of a tuple was emitted for that attempt (ns), and by whom."""
    assert world.trace is not None
    root = uid >> world.job.topology.by_name[component].bits
    times = [(e.at, e.who) for e in world.trace.of(root) if e.what == EMITTED and e.number == attempt]
    return times[0] if times else None


def _steps(world: World, who: str) -> list[Step]:
    assert world.trace is not None
    return [step for step in world.trace.steps if step.who == who]


def _after(world: World, who: str, at: int) -> str:
    """After which step of a task something was."""
    before = [step for step in _steps(world, who) if step.at <= at]
    return f", after {_told(before[-1])} at {format_duration(before[-1].at)}" if before else ""


def _after_all(world: World, at: int) -> str:
    """After which step of a role, who acts for all tasks, something was."""
    assert world.trace is not None
    tasks = {task.name for task in world.job.tasks}
    before = [step for step in world.trace.steps if step.at <= at and step.who not in tasks]
    return f", after {before[-1].text} at {format_duration(before[-1].at)}" if before else ""


def _told(step: Step) -> str:
    return f"{step.what} ({step.detail})" if step.detail else step.what


def _between(world: World, event: Event) -> str:
    """Between which steps of its task something was."""
    mine = _steps(world, event.who)
    before = [step for step in mine if step.at < event.at]
    after = [step for step in mine if step.at >= event.at]
    return f", between {_told(before[-1])} and {_told(after[0])}" if before and after else ""


def _since(world: World, who: Sequence[str], begin: int, end: int) -> str:
    """The last steps of some tasks, or to them, in a stretch (ns): of each sort one."""
    assert world.trace is not None
    who = [name for name in who if name]
    sorts: dict[tuple[str, str], Step] = {}
    for step in world.trace.steps:
        if begin <= step.at <= end and (step.who in who or step.to in who):
            sorts.pop((step.who, step.what), None)
            sorts[step.who, step.what] = step
    return _listed("meanwhile", list(sorts.values())[-MOST_STEPS:])


def _then(world: World, who: Sequence[str], begin: int) -> str:
    """The first steps of some tasks, or to them, and of roles, after a moment (ns): of each sort one."""
    assert world.trace is not None
    who, tasks = [name for name in who if name], {task.name for task in world.job.tasks}
    sorts: dict[tuple[str, str], Step] = {}
    for step in world.trace.steps:
        if step.at > begin and (step.who in who or step.who not in tasks or step.to in who):
            sorts.setdefault((step.who, step.what), step)
    return _listed("then", list(sorts.values())[:MOST_LATER])


def _listed(when: str, steps: Sequence[Step]) -> str:
    told = "; ".join(f"{step.text} at {format_duration(step.at)}" for step in steps)
    return f"; {when} {told}" if steps else ""


Hit = tuple[tuple[str, str], ...]
"""What fails: the kinds of the faults, and the components that they hit."""
FEW = 6
"""Of fewer runs it cannot be said that all break alike."""
MOST_NAMED, MOST_LOOKED_AT = 3, 100
"""Tuples that are named of each sort, and that are looked at to find different ways."""
MOST_EXAMPLES, MOST_TRIED = 10, 24
"""Examples that are named, and drawn; runs that are looked at besides to find other causes."""


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
        hit = tuple((victim.kind, victim.place) for victim in case.victims)
        tried.setdefault(hit, []).append((case, verdict))
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
    """A run with the faults of a case: with its trace, or ``watched`` for a diagram."""
    found = case.scenario(scenario)
    found = coarsened(found)
    world = World(found, trace=watched is None, watched=watched, looks=0)
    world.run()
    return world


def _root(root: int, trace: Trace) -> str:
    for component, task, emitted, attempt, at in trace.emitted:
        if emitted == root and attempt == 0:
            return f"root {root} ({component}.{task}, emitted at {format_duration(at)})"
    return f"root {root}"
