"""The smallest example of each way in which a guarantee breaks, and how it came about.

`audit` asks for the ``examples`` of its runs, the page runs one again (``struck``). A history may name only
what the tuple and its task did; what is new to tell is a case of ``_Run.lost`` or ``_Run.twice``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple

from tideover.models.accounts import trace as traced
from tideover.models.accounts.trace import Stretch
from tideover.models.coarsening import coarsened
from tideover.models.config import Scenario
from tideover.models.runtime.announcements import Step
from tideover.models.world import World
from tideover.scenarios.audit.cases import Case, Verdict
from tideover.sim.units import format_duration

MOST_STEPS, MOST_LATER = 6, 4
"""So many steps are named that were taken between what a tuple did and its loss, and then."""
_CHANGE = {traced.PROCESSED: 1, traced.BACK: 1, traced.UNDONE: -1}
"""By how much an event changes how often a tuple has had its effect."""

History = tuple[str, str]
"""What became of a root: what is the same of all that come to it in the same way, and the same in full."""


class _Effect(NamedTuple):
    """A tuple where its root ends: who had it, and what happened to it, in order."""

    component: str
    uid: int
    events: list[traced.Event]

    def alive(self, at: int) -> bool:
        """Whether it had an effect at a moment (ns), or had been put out."""
        return sum(_CHANGE.get(event.what, 0) for event in self.events if event.at <= at) > 0

    def last(self, what: str, before: int | None = None) -> traced.Event | None:
        """The last of such events, at or before a moment (ns; None: at all)."""
        found = [e for e in self.events if e.what == what and (before is None or e.at <= before)]
        return found[-1] if found else None

    def sender(self, event: traced.Event) -> str:
        sent = [e for e in self.events if e.what == traced.SENT and e.at <= event.at]
        return sent[-1].who if sent else ""

    def from_sender(self, event: traced.Event) -> str:
        sender = self.sender(event)
        return f", from {sender}" if sender else ""


class _Run:
    """A traced run, and how its roots came to what they did."""

    def __init__(self, world: World) -> None:
        assert world.trace is not None
        self.world, self.steps, self.trace = world, world.trace.steps, world.trace
        self.tasks = {task.name for task in world.job.tasks}

    def twice(self, root: int) -> History | None:
        """Why a root is counted twice: what of its first time is still there, and why it came again. None: it
        cannot be said.
        """
        effects = list(self._effects(root))
        for effect in effects:
            counted = 0
            first: traced.Event | None = None
            for place, event in enumerate(effect.events):
                change = _CHANGE.get(event.what, 0)
                if change > 0 and counted and first is not None:
                    return self._twice(effects, effect, first, effect.events[: place + 1])
                counted += change
                if event.what == traced.PROCESSED or (first is None and event.what == traced.BACK):
                    first = event
        return None

    def _twice(
        self, effects: Sequence[_Effect], effect: _Effect, first: traced.Event, events: Sequence[traced.Event]
    ) -> History:
        second, whose = events[-1], first.who
        since = [event for event in events[:-1] if (event.at, event.order) > (first.at, first.order)]
        how = "by" if first.what == traced.PROCESSED else "with the state of"
        begins = f"{how} {whose} at {format_duration(first.at)}"
        begins += effect.from_sender(first) + self._between(first)
        back = [event for event in since if event.what == traced.BACK]
        out = [event for event in since if event.what == traced.PUT_OUT]
        if second.what == traced.BACK:
            at = out[-1].at if out else first.at
            return (
                "put out, and there again with the state",
                f"{begins}; put out at {format_duration(at)}, and in the state to which {whose} went back at "
                f"{format_duration(second.at)}",
            )
        cause, kept = "kept", f"{whose} has kept it"
        if back:
            cause = "in a state that was saved"
            kept = f"it is in the state to which {whose} went back at {format_duration(back[-1].at)}"
        elif out:
            cause, kept = "put out", f"it was put out at {format_duration(out[-1].at)}"
        again, why = self._again(effects, effect, first, second)
        return f"{cause}; {again}", f"{begins}; {kept}; {why}; again at {format_duration(second.at)}"

    def _again(
        self, effects: Sequence[_Effect], effect: _Effect, first: traced.Event, second: traced.Event
    ) -> tuple[str, str]:
        """Why a tuple came again, in the same words for all of its sort, and in full."""
        if second.number == first.number:
            sent = effect.last(traced.AGAIN, second.at)
            if sent is None:
                return "came again", f"it came again{self._after(second.at)}"
            return "sent again", f"it was sent to {sent.who} again at {format_duration(sent.at)}"
        # The root was emitted once more, for another attempt: when, and by whom?
        bits = self.world.job.topology.by_name[effect.component].bits
        emitted = (e for e in self.trace.of(effect.uid >> bits) if e.what == traced.EMITTED)
        came = [(e.at, e.who) for e in emitted if e.number == second.number]
        at, spout = came[0] if came else (second.at, "")
        then = f"and so the root came again{self._after(at, spout)}"
        for one in effects:
            if not one.alive(at):
                return "a part of the root was not", f"{self._gone(one, at)}, {then}"
        for one in (effect, *effects):
            did = one.last(traced.PROCESSED, at)
            if did is not None and not any(
                e.what == traced.ACKED and e.number == did.number and e.at <= at for e in one.events
            ):
                what = "it" if one is effect else "another tuple of the root"
                text = f"{did.who} had not acked {what}"
                for outage in self.world.outages:
                    names = [getattr(task, "name", "") for task in outage.tasks]
                    if did.at <= (failed := outage.failed_at) <= at and did.who in names:
                        text += f" when it failed at {format_duration(failed)}{self._after(failed, did.who)}"
                        break
                return "not acked", f"{text}, {then}"
        return "acked in vain", f"all of it was acked, {then}"

    def _gone(self, effect: _Effect, at: int) -> str:
        did, undone = effect.last(traced.PROCESSED, at), effect.last(traced.UNDONE, at)
        if did is not None and undone is not None:
            how = f"at {format_duration(did.at)}{effect.from_sender(did)}{self._between(did)}"
            return f"the root's tuple at {did.who} ({how}) was undone at {format_duration(undone.at)}"
        if (lost := effect.last(traced.DESTROYED, at)) is not None:
            return f"the root's tuple at {lost.who} was destroyed at {format_duration(lost.at)}"
        return f"the root's tuple at {effect.component} had done nothing"

    def lost(self, root: int) -> History | None:
        """How a root was lost: where the first of its tuples that is missing had its effect, or ended, and
        which steps were taken since. None: it cannot be said.
        """
        now = self.world.kernel.now
        for effect in self._effects(root):
            if effect.alive(now):
                continue
            ends = (traced.PROCESSED, traced.UNDONE, traced.DESTROYED)
            did, undone, gone = (effect.last(what) for what in ends)
            if did is not None and undone is not None:
                who = (did.who, effect.sender(did))
                begins = f"by {did.who} at {format_duration(did.at)}"
                begins += effect.from_sender(did) + self._between(did)
                acked = effect.last(traced.ACKED, undone.at)
                told = "" if acked is None else f"; acked at {format_duration(acked.at)}"
                since, then = self._since(who, did.at, undone.at), self._then(who, undone.at)
                cause = "undone" if acked is None else "acked, and undone"
                return cause, f"{begins}{told}{since}; undone at {format_duration(undone.at)}{then}"
            if gone is not None:
                since = self._since((gone.who, effect.sender(gone)), gone.at, now)
                at = f"destroyed at {gone.who} at {format_duration(gone.at)}"
                return "destroyed", f"{at}{effect.from_sender(gone)}{since}"
            if (sent := effect.last(traced.SENT)) is not None:
                since = self._since((sent.who,), sent.at, now)
                at = f"{sent.who} sent it to {effect.component} at {format_duration(sent.at)}"
                return "nothing came of it", f"{at}{since}"
        events = [event for event in self.trace.of(root) if event.who]
        if not events:
            return None
        last = events[-1]  # no tuple has come, or was sent, to where the root ends
        at = f"{last.what} at {last.who} at {format_duration(last.at)}"
        return f"{last.what} on its way", f"{at}{self._since((last.who,), last.at, now)}"

    def _effects(self, root: int) -> Iterator[_Effect]:
        """The tuples of a root where it ends, those that were sent and never came included."""
        found: dict[tuple[str, int, int], list[traced.Event]] = {}
        ways: dict[tuple[str, int], list[traced.Event]] = {}
        for event in self.trace.of(root):
            if self.world.job.topology.by_name[event.component].ends_roots:
                if event.what == traced.SENT:
                    ways.setdefault((event.component, event.uid), []).append(event)
                else:
                    found.setdefault((event.component, event.uid, event.replica), []).append(event)
        for component, uid in ways:
            if not any(place[:2] == (component, uid) for place in found):
                found[component, uid, 0] = []
        for (component, uid, _), events in found.items():
            whole = sorted([*events, *ways.get((component, uid), [])], key=lambda e: e[:2])
            yield _Effect(component, uid, whole)

    def _after(self, at: int, who: str | None = None) -> str:
        """After which step of a task something was; None: of a role, which acts for all tasks."""
        mine = (step for step in self.steps if step.at <= at)
        before = [step for step in mine if (step.who not in self.tasks if who is None else step.who == who)]
        if not before:
            return ""
        last = before[-1]
        return f", after {last.text if who is None else _told(last)} at {format_duration(last.at)}"

    def _between(self, event: traced.Event) -> str:
        mine = [step for step in self.steps if step.who == event.who]
        before = [step for step in mine if step.at < event.at]
        after = [step for step in mine if step.at >= event.at]
        return f", between {_told(before[-1])} and {_told(after[0])}" if before and after else ""

    def _since(self, who: Sequence[str], begin: int, end: int) -> str:
        """The last steps of some tasks, or to them, in a stretch (ns): of each sort one."""
        sorts: dict[tuple[str, str], Step] = {}
        names = set(who) - {""}
        for step in self.steps:
            if begin <= step.at <= end and (step.who in names or step.to in names):
                sorts.pop((step.who, step.what), None)
                sorts[step.who, step.what] = step
        return _listed("meanwhile", list(sorts.values())[-MOST_STEPS:])

    def _then(self, who: Sequence[str], begin: int) -> str:
        """The first steps of some tasks, or to them, and of roles, after a moment (ns): of each sort one."""
        sorts: dict[tuple[str, str], Step] = {}
        names = set(who) - {""}
        for step in self.steps:
            mine = step.who in names or step.to in names or step.who not in self.tasks
            if step.at > begin and mine:
                sorts.setdefault((step.who, step.what), step)
        return _listed("then", list(sorts.values())[:MOST_LATER])


def _told(step: Step) -> str:
    return f"{step.what} ({step.detail})" if step.detail else step.what


def _listed(when: str, steps: Sequence[Step]) -> str:
    told = "; ".join(f"{step.text} at {format_duration(step.at)}" for step in steps)
    return f"; {when} {told}" if steps else ""


FEW = 6
"""Of fewer runs it cannot be said that all break alike."""
MOST_NAMED, MOST_LOOKED_AT = 3, 100
"""Tuples that are named of each sort, and that are looked at to find different ways."""
MOST_EXAMPLES, MOST_TRIED = 10, 24
"""Examples that are named, and drawn; more runs that are looked at to find other causes."""


@dataclass(frozen=True)
class Example:
    """A run in which something is lost, counted twice, or put out wrong.

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
    return (
        "; then ".join(
            f"{victim.kind} of {victim.name} at {format_duration(strike.at)}, {strike.text}"
            for strike, victim in zip(case.strikes, case.victims, strict=True)
        )
        or "without any failure"
    )


def examples(
    scenario: Scenario, found: Sequence[tuple[Case, Verdict]], broken: Callable[[Case, Verdict], bool]
) -> list[Example]:
    """The smallest ones (``smallest``): first those by which the strategy has ``broken`` its word, then those
    that show something new. The tuples of the first are named; where it breaks whatever the step, other steps
    are looked at, too, for other causes.
    """
    first, others = (sorted(part, key=lambda e: not broken(e.case, e.verdict)) for part in smallest(found))
    seen: set[str] = set()
    new: list[Example] = []
    old: list[Example] = []
    for place, example in enumerate([*first[:MOST_EXAMPLES], *others[:MOST_TRIED]]):
        one = named(scenario, example)
        if not seen.issuperset(one.causes):
            new.append(one)
        elif place < len(first[:MOST_EXAMPLES]):
            old.append(one)
        seen.update(one.causes)
    return sorted([*new, *old, *first[MOST_EXAMPLES:]], key=lambda e: not broken(e.case, e.verdict))


def smallest(found: Iterable[tuple[Case, Verdict]]) -> tuple[list[Example], list[Example]]:
    """One example for each way to break: what is wrong if what fails, and beside which step, unless it is so
    beside most steps. With the fewest faults, then the fewest tuples and windows, then the earliest; losses
    and duplicates before windows that are wrong though each effect is there once.

    And others, where it is so beside most steps: one for each step, in turn of each way.
    """
    tried: dict[object, list[tuple[Case, Verdict]]] = {}
    for case, verdict in found:
        hit = tuple((victim.kind, victim.place) for victim in case.victims)
        tried.setdefault(hit, []).append((case, verdict))
    first: list[Example] = []
    others: list[list[Example]] = []
    for runs in tried.values():
        harmful: dict[str, dict[object, list[tuple[Case, Verdict]]]] = {}
        for case, verdict in runs:
            if verdict.harm:
                step = case.strikes[-1].moment.step if case.strikes else ("", "")
                harmful.setdefault(verdict.harm, {}).setdefault(step, []).append((case, verdict))
        for by_step in harmful.values():
            least = [(min(same, key=lambda one: _measure(*one)), len(same)) for same in by_step.values()]
            each = sorted((Example(*one, n - 1) for one, n in least), key=_size)
            many = sum(map(len, by_step.values()))
            if len(runs) >= FEW and 2 * many > len(runs):
                first.append(replace(each[0], alike=many - 1, of=len(runs)))
                others.append(each[1:])
            else:
                first += each
    others.sort(key=lambda each: [_size(one) for one in each])
    return sorted(first, key=_size), [one for row in zip_longest(*others) for one in row if one is not None]


def _size(example: Example) -> tuple[int, bool, int, int]:
    return _measure(example.case, example.verdict)


def _measure(case: Case, verdict: Verdict) -> tuple[int, bool, int, int]:
    at = case.strikes[0].at if case.strikes else 0
    return len(case.faults), not verdict.lost + verdict.duplicated, verdict.size, at


def named(scenario: Scenario, example: Example) -> Example:
    """The example with the names of what is lost, counted twice, or wrong, and how that came: for each cause
    the first root, and how many more there are.
    """
    world = struck(scenario, example.case)
    world.balance()
    run, trace = _Run(world), world.trace
    assert trace is not None
    emitted: dict[int, str] = {}
    for component, task, root, attempt, at in trace.emitted:
        if attempt == 0:
            emitted.setdefault(root, f" ({component}.{task}, emitted at {format_duration(at)})")
    causes: list[str] = []
    lines: list[str] = []
    for what, roots, history in (
        ("lost", world.ledger.lost, run.lost),
        ("counted twice", world.ledger.duplicated_roots(), run.twice),
    ):
        by_cause: dict[str, list[str]] = {}
        for root in roots[:MOST_LOOKED_AT].tolist():
            cause, text = history(root) or ("", "")
            name = f"root {root}{emitted.get(root, '')}"
            by_cause.setdefault(cause, []).append(f"{name}, {text}" if text else name)
        for cause, same in list(by_cause.items())[:MOST_NAMED]:
            causes.append(f"{what}: {cause}")
            more = f" ({len(same) - 1} more in this way)" if len(same) > 1 else ""
            lines.append(f"{what}: {same[0]}{more}")
    bad = sorted(world.reference.bad) if world.reference is not None else []
    lines += [f"wrong: window {number} of {component}.{task}" for component, task, number in bad[:MOST_NAMED]]
    return replace(example, tuples=tuple(lines), causes=tuple(causes))


def struck(scenario: Scenario, case: Case, watched: Stretch | None = None) -> World:
    """A run with the faults of a case: with its trace, or ``watched`` for a diagram."""
    found = case.scenario(scenario)
    found = coarsened(found)
    world = World(found, trace=watched is None, watched=watched, looks=0)
    world.run()
    return world
