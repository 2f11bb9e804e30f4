"""What a space-time diagram shows: every message as the per-tuple reference sends it, and nothing changed by
looking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings

from tests.models.chain import ONES, chain, crashed
from tests.models.test_exactness import LISTS, LONG, QUICK, few_and_many
from tests.models.test_exactness import TRIED as ALL
from tests.oracle.channels import Channel
from tests.oracle.program import play
from tests.oracle.random_worlds import overlapping
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.accounts.trace import Stretch
from tideover.models.config import Scenario
from tideover.models.evaluation.diagram import Diagram, Message, messages
from tideover.models.job.components import Links
from tideover.models.simulation import simulate, watch
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World
from tideover.sim.kernel import standing

Sent = tuple[Any, Any, int, int, int]
"""Physical sender and receiver, uid, attempt, when it was made."""


def whole(scenario: Scenario) -> Stretch:
    return Stretch(0, scenario.run.duration)


def watched(scenario: Scenario) -> World:
    found = World(scenario, trace=True, watched=whole(scenario))
    found.run()
    return found


def messages_of(run: World) -> list[Message]:
    return messages(run.space_time)


def physical(run: World, number: int) -> tuple[str, int, int]:
    task = run.job.tasks[number]
    return task.component.name, task.index, getattr(task, "replica", 0)


# -- a world by hand -----------------------------------------------------------------------------------------


def seen(diagram: Diagram, kind: str) -> list[tuple[str, str, float | None, float | None, str]]:
    """(from, to, sent, came, fate) of a sort of arrows, in ms."""

    def in_ms(moment: int | None) -> float | None:
        return None if moment is None else moment / MS

    found = (a for a in diagram.arrows if a.kind == kind)
    return [(a.source, a.target, in_ms(a.sent), in_ms(a.came), a.fate + " again" * a.again) for a in found]


def test_a_crash_and_its_replay_by_hand() -> None:
    """s ──▶ p (1) ──▶ count (1), links without latency: root n leaves s at 10 (n + 1), and p 1 ms later. A
    checkpoint at 20 has root 0 (counted at 12). count is down from 33 to 45: roots 1 and 2 were counted at 22
    and 32, and are gone; root 3, which p sends at 41, finds it down. p has trimmed root 0, and replays 1, 2
    and 3 from 45 on, 2 ms each; an end marker leaves with the last. Root 4, which comes to p at 50 while it
    replays, is served when that is over, at 51.
    """
    run = chain((crashed(33, 12),), until=60, replay_cost=2)
    found = watch(run, 0, Stretch(20 * MS, 55 * MS))
    assert seen(found, "tuple") == [
        ("s.0", "p.0", 20, 20, "processed"),
        ("p.0", "count.0", 21, 21, "processed"),
        ("s.0", "p.0", 30, 30, "processed"),
        ("p.0", "count.0", 31, 31, "processed"),
        ("s.0", "p.0", 40, 40, "processed"),
        ("p.0", "count.0", 41, 41, "destroyed"),
        ("p.0", "count.0", 47, 47, "processed again"),
        ("p.0", "count.0", 49, 49, "processed again"),
        ("s.0", "p.0", 50, 50, "processed"),
        ("p.0", "count.0", 51, 51, "processed again"),
        ("p.0", "count.0", 52, 52, "processed"),
    ]
    assert seen(found, "control") == [("p.0", "count.0", 51, 51, "")]
    steps = {a.text[0]: (a.source, a.target) for a in found.arrows if a.kind == "step"}
    assert steps["count.0: replay asked for to p.0"] == ("count.0", "p.0")
    assert steps["p.0: buffer replayed to count.0 (3 tuples)"] == ("p.0", "count.0")
    (down,) = found.downs
    assert (down.lane, down.since, down.until) == ("count.0", 33 * MS, 45 * MS)
    lost = next(a for a in found.arrows if a.fate == "destroyed")
    assert lost.text == (
        "root 3 of s.0, attempt 0, key 0",
        "sent 0.041000 s by p.0",
        "arrived 0.041000 s at count.0, destroyed 0.041000 s",
    )


def test_each_replica_sends_its_own_by_hand() -> None:
    """Both p are done with root n at 10 (n + 1) + 1. The second count crashes at 25, which is noticed at 30,
    and holds what comes until it is copied, at 70: roots 2 and 3 of the first p, which crashes at 45. At 60
    this is noticed; at 61 the second p, done with root 5, speaks, and sends its queues, 1 ms a tuple: 4 and 5
    to the first count until 63, then what the second has not acked (it told of root 0 at 20), roots 1 to 5,
    which are held, too. The first count has had them all by 70, so they are dropped.
    """
    faults = (
        fault("crash_task", 25, component="count", replica=1, detection=5, restart=100),
        fault("crash_task", 45, component="p", detection=15, restart=100),
    )
    keys = {"ack_interval": 20 * MS, "replay_cost": MS, "copy_time": 40 * MS}
    run = chain(faults, until=75).with_strategy(STRATEGIES["active_standby"].model_validate(keys))
    arrows = seen(watch(run, 0, whole(run)), "tuple")
    first, second = ([a[2:] for a in arrows if a[:2] == (p, "count.0/1")] for p in ("p.0", "p.0/1"))
    had = [(11, 11, "processed"), (21, 21, "processed")]
    assert first == [*had, (31, 70, "discarded"), (41, 70, "discarded")]
    again = [(sent, 70, "discarded again") for sent in (64, 65, 66, 67, 68)]
    assert second == [*again, (71, 71, "processed")]


def test_acks_go_to_the_acker_and_from_there_to_the_spout() -> None:
    """s ──▶ p (1): root 0 leaves s at 10, is processed and acked at 11, and is complete then."""
    topology = {"s": spout("keys", keys=1), "p": bolt("forward", {"s": "shuffle"}, 1)}
    run = world(topology, "source_replay", until=15, message_timeout=50 * MS, ack_cost=0)
    found = watch(run, 0, whole(run))
    assert seen(found, "ack") == [("p.0", "acker", 11, 11, "")]
    assert seen(found, "complete") == [("acker", "s.0", 11, 11, "")]
    assert [lane.name for lane in found.lanes] == ["s.0", "p.0", "acker"]


def test_a_place_in_the_tree_is_told_in_words() -> None:
    """Of a sentence's words the second has position 1; the first window's tuple is that window's."""
    topology = {
        "s": spout("sentences"),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"split": "fields"}, window={"length": 25 * MS}, parallelism=2),
        "sink": bolt("forward", {"count": "shuffle"}),
    }
    found = watch(run := world(topology, until=30), 0, whole(run))
    second = [a.text[0] for a in found.arrows if "2nd" in a.text[0]]
    assert second[0].startswith("root 0 of s.0, 2nd tuple of split, attempt 0, key ")
    put_out = {a.text[0].partition(",")[0] for a in found.arrows if a.target == "sink.0"}
    assert put_out == {"window 1 of count.0", "window 1 of count.1"}


def windows_sent(strategy: str, *failures: Any, kind: str = "tuple", **more: Any) -> list[Any]:
    """s ──▶ count (0) ──▶ sink (0), with 3 ms on each link: what count sends to sink until 60. The markers
    that s sends at 25 and 50 end its windows 3 ms later.
    """
    topology = {
        "s": spout(**ONES),
        "count": bolt("windowed_count", {"s": "shuffle"}, window={"length": 25 * MS}),
        "sink": bolt("forward", {"count": "shuffle"}),
    }
    links = Links(latency=ms(3), local=ms(0))
    run = world(topology, strategy, failures, 60, links=links, entry_size=0, **more)
    return [row for row in seen(watch(run, 0, whole(run)), kind) if row[0] == "count.0"]


def test_a_window_that_is_destroyed_on_the_wire_was_sent() -> None:
    """Window 1 leaves at 28. At 30 sink crashes, and all fails with it: what is on the wire is destroyed. At
    33 the job runs again, reads roots 0 and 1 and the marker once more, and window 1 leaves anew.
    """
    down = fault("crash_task", 30, component="sink", restart=3)
    assert windows_sent("aligned_snapshots", down, checkpoint_interval=1000 * MS) == [
        ("count.0", "sink.0", 28, None, "destroyed"),
        ("count.0", "sink.0", 33, 36, "processed"),
        ("count.0", "sink.0", 53, 56, "processed"),
    ]


def test_a_window_that_waits_for_its_commit_was_sent() -> None:
    """Window 1, which leaves at 28, is withheld until the commit that begins at 40 is made at 41, and its
    message comes at 44. The next commit is due at 80: when the run ends window 2 has not come.
    """
    often = {"guarantee": "exactly_once", "commit_interval": 40 * MS, "commit_time": MS}
    assert windows_sent("changelog", **often) == [
        ("count.0", "sink.0", 28, 44, "processed"),
        ("count.0", "sink.0", 53, None, "under way"),
    ]
    commits = windows_sent("changelog", kind="control", **often)
    assert ("count.0", "sink.0", 41, 44, "") in commits


# -- laws, in worlds at random -------------------------------------------------------------------------------


@contextmanager
def noted(patch: pytest.MonkeyPatch) -> Iterator[tuple[dict[Any, int], dict[Any, int]]]:
    """The messages that the reference sends, with the moments when they were made; and when they came."""
    moments: dict[Any, int] = {}
    made: dict[Any, int] = {}
    came: dict[Any, int] = {}
    make, send, arrive = Channel.made, Channel.send, Channel._arrive

    def make_noted(channel: Any, message: Any) -> Any:
        message = make(channel, message)
        moments[message] = channel.world.clock.now
        return message

    def send_noted(channel: Any, message: Any) -> None:
        if message in moments:
            made[message] = moments[message]
        send(channel, message)

    def arrive_noted(channel: Any) -> None:
        came[channel.wire[0]] = channel.world.clock.now
        arrive(channel)

    with patch.context() as patched:
        patched.setattr(Channel, "made", make_noted)
        patched.setattr(Channel, "send", send_noted)
        patched.setattr(Channel, "_arrive", arrive_noted)
        yield made, came


def hold_against_the_reference(scenario: Scenario, patch: pytest.MonkeyPatch) -> int:
    """Returns how many messages there were."""
    with noted(patch) as (made, came):
        play(scenario, 0)
    expected: Counter[Sent] = Counter()
    arrivals: dict[Sent, list[int]] = {}
    for message, moment in made.items():
        up, down, datum = message.channel.up.physical, message.channel.down.physical, message.datum
        if datum is None:
            continue
        key = up, down, datum.uid, datum.attempt, moment
        expected[key] += 1
        if message in came:
            arrivals.setdefault(key, []).append(came[message])
    run = watched(scenario)
    found: Counter[Sent] = Counter()
    for m in messages_of(run):
        if m.log or m.copied:
            continue  # it did not come over a channel
        assert m.sent is not None
        key = physical(run, m.sender), physical(run, m.receiver), m.uid, m.attempt, m.sent
        found[key] += 1
        if m.came is not None and key in arrivals:
            assert m.came >= arrivals[key].pop(0)  # it may have been held
    assert found == expected
    return sum(found.values())


def hold_its_own(scenario: Scenario) -> None:
    """A look changes nothing; what was processed is what the trace has; who was down is what the outages
    have.
    """
    plain, run = simulate(scenario, trace=True), watched(scenario)
    for name in LISTS:
        assert sorted(getattr(plain.trace, name), key=repr) == sorted(getattr(run.trace, name), key=repr)
    done = (m for m in messages_of(run) if m.fate == "processed")
    shown = Counter((*physical(run, m.receiver), m.uid, m.attempt, m.came, m.over) for m in done)
    assert shown == Counter(run.trace.processed)
    found = simulate(scenario, watched=whole(scenario)).diagram
    times = [(d.lane, d.since, d.until) for d in found.downs if not d.passes]
    outages = [(t.name, o.failed_at, back.ready) for o in run.outages for t, back in o.returns.items()]
    assert sorted(times) == sorted((name, since, until) for name, since, until in outages if until > since)


@few_and_many(settings(QUICK, max_examples=2), settings(LONG, max_examples=150))
@pytest.mark.parametrize("strategy", ALL)
def test_messages_are_those_of_the_reference(
    strategy: str, how: settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: who sent which tuple to whom, when, and when it came, is what a program finds that sends each one
    by itself; whatever the strategy, and the engine knows none of them for it.
    """
    total = 0

    @how
    @given(overlapping((strategy,)))
    def check(scenario: Scenario) -> None:
        nonlocal total
        with standing():
            total += hold_against_the_reference(scenario, monkeypatch)
            hold_its_own(scenario)

    check()
    assert total > 5


@pytest.mark.parametrize("strategy", ["source_replay", "rsm", "aligned_snapshots", "active_replication"])
def test_a_stretch_has_what_lies_in_it(strategy: str) -> None:
    """Law: what is watched of a stretch is what a look at the whole run finds there: every message of which
    something happens in the stretch, as far as the run is followed, and every step.
    """
    topology = {
        "s": spout("sentences", gap=40),
        "split": bolt("split_words", {"s": "shuffle"}, 2),
        "count": bolt("windowed_count", {"split": "fields"}, 3, window={"length": 400 * MS}, parallelism=2),
    }
    down = fault("crash_task", 1500, component="count", restart=100)
    more: dict[str, Any] = {
        "source_replay": {"message_timeout": 300 * MS},
        "rsm": {"checkpoint_interval": 100 * MS, "replay_cost": 1 * MS},
        "aligned_snapshots": {"checkpoint_interval": 100 * MS},
        "active_replication": {"k": 1, "hosts": 8},
    }[strategy]
    run = world(topology, strategy, (down,), 4000, **more)
    part, all_of_it = (watch(run, 0, s) for s in (Stretch(1300 * MS, 1900 * MS), whole(run)))

    def inside(found: Diagram) -> list[Any]:
        begin, end = part.stretch
        arrows = [(a.source, a.target, a.kind, a.sent, a.came, a.effect) for a in found.arrows]
        moments = ((row, [t for t in row[3:5] if t is not None]) for row in arrows)
        return sorted((row for row, times in moments if min(times) <= end and max(times) >= begin), key=repr)

    # a root that is complete in the stretch has acks before it, which are not in it: they are not asked for
    assert inside(part) == inside(all_of_it)
    assert len(inside(part)) > 60
    steps = [e for e in all_of_it.events if part.stretch.has(e.at)]
    assert sorted(part.events, key=repr) == sorted(steps, key=repr)


def test_who_does_not_look_notes_nothing() -> None:
    """Law: without a watched stretch, or a trace, nobody hears of acks; no message carries who sent it."""
    run = World(chain())
    run.run()
    assert run.space_time is None
    assert "acked" not in vars(run.job.say)
    assert not run.job.hooks.has("receive")
    assert simulate(chain()).diagram is None
