"""A strategy for each bolt. Times in milliseconds.

The small world is   s ──▶ p (1) ──▶ count (1)   with a root every 10 from 10 on, p replicated (p.0 and p.0/1,
each with a buffer for count), count under R+SM with checkpoints every 20. Root n is with p until 10n + 11 and
counted at 10n + 12, out of what p.0 sends: p.0/1 sends the same, and is second.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import EVERY_10, chain, counted, crashed, lost
from tests.models.test_exactness import QUICK, check
from tests.models.traced import assert_same_tuples
from tests.oracle.random_worlds import worlds
from tests.oracle.worlds import MS, bolt, ms
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_for_strategies, load_text

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "hybrid.yaml")
REPLICAS = STRATEGIES["active_replication"](k=1)
CHECKPOINTS = STRATEGIES["rsm"](checkpoint_interval=20 * MS, replay_cost=1 * MS)
LONG = {"length": 1000 * MS}
BACK = [*EVERY_10[:4], (3, 55), (4, 56), *EVERY_10[5:9]]
"""What is counted if the count crashes at 45, and goes back to its checkpoint of 40: 3 and 4 come again."""


def mixed(*failures: Any, until: float = 95, **more: Any) -> Scenario:
    """The small world; ``more`` goes to the count's member, or is the scenario's."""
    links = {"links": more.pop("links")} if "links" in more else {}
    whole = chain(failures, until, replay_cost=1, **more, **links)
    return whole.with_strategy(STRATEGIES["hybrid"](bolts={"p": REPLICAS}, rest=whole.strategy))


def run(scenario: Scenario) -> Replication:
    return simulate(scenario, trace=True)


def under(rest: Strategy, **bolts: Strategy) -> Strategy:
    return STRATEGIES["hybrid"](bolts=bolts, rest=rest)


# -- what fails, and what others do --------------------------------------------------------------------------


@pytest.mark.parametrize("replica", [0, 1])
def test_a_replica_fails_and_nobody_waits(replica: int) -> None:
    """One of p's replicas crashes at 35, and is back at 55: every root is counted when it always is."""
    found = run(mixed(crashed(35, 20, "p", replica=replica)))
    assert counted(found) == EVERY_10[:9]
    assert (found.ledger["lost"], found.ledger["duplicated"], found.ledger["replayed"]) == (0, 0, 0)


def test_the_count_goes_back_and_both_replicas_replay() -> None:
    """The checkpoint of 40 has roots 0, 1, 2. Crash at 45, ready at 50, read until 52, restored at 53. Both
    replicas have 3 and 4 in their buffers, and replay them at 54 and 55: of each the first is counted, at 55
    and 56. Root 4 came directly at 51, from both, to a task that was not restored: two are discarded. Nothing
    is counted twice, and nothing is lost.
    """
    found = run(mixed(crashed(45, 5), read=2, restore_time=1))
    assert counted(found) == BACK
    (recovery,) = found.recoveries
    assert (recovery["restored"], recovery["replayed"], recovery["dropped"]) == (3, 2, 2)
    assert (found.ledger["lost"], found.ledger["duplicated"]) == (0, 0)


def test_a_state_that_is_lost_takes_with_it_what_was_had() -> None:
    """The count loses its state at 45, with root 3, and is restored at 48, as it was at 40. Until the crash
    it had let in root 3: now it has not, so that the replay of 49 counts.
    """
    found = run(mixed(lost(45), read=2, restore_time=1))
    assert counted(found) == [*EVERY_10[:4], (3, 50), *EVERY_10[4:9]]
    assert (found.ledger["lost"], found.ledger["duplicated"]) == (0, 0)


def test_a_state_that_is_lost_again_takes_nothing_of_the_queue() -> None:
    """s ──▶ count (15), and nobody keeps what s sends: roots come at 10, 20, …, and drop out if the count has
    had them. The state is lost at 22, with root 0 in service and 1 behind it: both have been let in. Root 2
    comes at 30, and is held, for the store is read until 32. At 31 the state is lost again: down until 36,
    read until 46. Root 2 passes the filter at 31; 0 and 1 have passed it, and do not drop out by what was
    noted of them then. Root 3 is held at 40. At 46 nothing has been had, and all four are served, one after
    the other.
    """
    whole = chain((lost(22), lost(31, restart=5)), until=110, read=10)
    topology = {"s": whole.topology["s"], "count": bolt("windowed_count", {"s": "shuffle"}, 15, window=LONG)}
    mix = STRATEGIES["hybrid"](stateless=REPLICAS, rest=whole.strategy)
    scenario = whole.model_copy(update={"topology": topology}).with_strategy(mix)
    found = run(scenario)
    assert counted(found) == [(0, 61), (1, 76), (2, 91), (3, 106)]
    assert found.ledger["lost"] == 0
    check(scenario)


@pytest.mark.parametrize("replica", [0, 1])
def test_both_fail_and_the_other_replica_replays(replica: int) -> None:
    """The same, and a replica of p crashes with the count, for good: the other one replays alone, and the
    recovery is over when it has: checkpoints go on with that of 60.
    """
    found = run(mixed(crashed(45, 5), crashed(45, 1000, "p", replica=replica), read=2, restore_time=1))
    assert counted(found) == BACK
    assert found.ledger["lost"] == 0
    taken = [step.at / MS for step in found.trace.steps if step.what == "checkpoint taken"]
    assert taken == [20, 40, 60, 80]


def test_without_replicas_the_buffer_is_gone() -> None:
    """The same under R+SM alone, where p is the only one that keeps roots: 3, which was in its buffer, is
    lost, and 4, which came while it was down.
    """
    whole = chain((crashed(45, 5), crashed(45, 10, "p")), replay_cost=1, read=2, restore_time=1)
    assert simulate(whole).ledger["lost"] == 2


def test_who_comes_back_keeps_what_its_peer_keeps() -> None:
    """p.0 is down from 38 to 43: p.0/1 alone sends root 3, at 41. Then p.0/1 crashes at 44, for good, and
    the count at 45. Its checkpoint of 40 lacks root 3; p.0 has it in the buffer that it has copied, and
    replays it and root 4 at 54 and 55.
    """
    gone = crashed(44, 1000, "p", replica=1)
    found = run(mixed(crashed(38, 5, "p"), gone, crashed(45, 5), read=2, restore_time=1))
    assert counted(found) == BACK
    assert found.ledger["lost"] == 0


def test_what_a_replica_copies_has_new_numbers() -> None:
    """The same, and p.0 is down from 25 to 28, too: it keeps root 1 again, which it has sent as its second
    message, as its third. So root 2 is its fourth message, and in the count's checkpoint of 40. Root 3, which
    p.0 copies at 43, is the fourth of p.0/1, and has to be the fifth of p.0: the count asks it for what is
    above 4.
    """
    gone = crashed(44, 1000, "p", replica=1)
    away = crashed(25, 3, "p"), crashed(38, 5, "p")
    scenario = mixed(*away, gone, crashed(45, 5), read=2, restore_time=1)
    found = run(scenario)
    assert counted(found) == BACK
    assert found.ledger["lost"] == 0
    check(scenario)


def test_all_replicas_down_is_a_loss() -> None:
    """Both replicas of p are down from 35 to 55, and nobody keeps what they have or get: roots 3 and 4 (40,
    50) find them down.
    """
    both = (crashed(35, 20, "p", replica=replica) for replica in (0, 1))
    found = run(mixed(*both))
    assert counted(found) == [*EVERY_10[:3], *EVERY_10[5:9]]
    assert found.ledger["lost"] == 2


@pytest.mark.parametrize("until", [75, 1500])
def test_a_replica_that_is_always_second_is_trimmed_too(until: float) -> None:
    """What p.0/1 (host 4) sends comes 3 later than what p.0 sends, so that not one of its messages is ever
    processed. A checkpoint trims up to what was counted until it was taken, when the sender has its turn:
    that of 40 has roots 0 to 2, and is known at 41, behind root 3, which came at 40. Both replicas keep 1, 2
    and 3 by then, and only 3 after it. So six tuples are kept at most, however long that goes on.
    """
    links = Links(latency=ms(0), local=ms(0), pairs={"2-4": ms(3)})
    found = run(mixed(until=until, links=links))
    assert counted(found)[:7] == EVERY_10[:7]
    assert found.cost["peak_buffered_tuples"] == 6


def test_a_replica_that_is_ahead_does_not_hide_what_the_other_has_not_sent() -> None:
    """p takes 8, and what s sends comes 25 later to p.0, so root n leaves p.0/1 at 10n + 18 and p.0 at 10n +
    43. The checkpoint of 40 has roots 0, 1, 2; the count crashes at 48, and is back at 62.

    p.0 has served what it has by 63, and replays roots 1 and 2, to no avail; its end marker comes at 65.
    p.0/1 is with root 5 until 68. That comes directly, and is discarded: with it 3 and 4 would be known.
    Then p.0/1 replays 3, 4, 5 at 69, 70, 71, and begins with root 6.
    """
    links = Links(latency=ms(0), local=ms(0), pairs={"0-1": ms(25)})
    found = run(mixed(crashed(48, 14), at_p=8, until=95, links=links))
    assert counted(found) == [(0, 19), (1, 29), (2, 39), (3, 70), (4, 71), (5, 72), (6, 80), (7, 89)]
    assert (found.ledger["lost"], found.ledger["duplicated"]) == (0, 0)


# -- laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rsm", "active_replication", "none"])
def test_of_one_kind_it_is_that_strategy(kind: str) -> None:
    """With one member for all bolts, every figure of any world is that of the member alone."""

    @settings(QUICK, max_examples=8)
    @given(worlds((kind,)))
    def tried(scenario: Scenario) -> None:
        member = scenario.strategy
        if getattr(member, "components", None) is not None:
            member = member.model_copy(update={"components": None})
        alone = scenario.with_strategy(member)
        assert_same_tuples(alone, scenario.with_strategy(under(member)), "windows", "recoveries", "cost")

    tried()


@settings(QUICK, max_examples=8)
@given(worlds(("active_replication",)), st.randoms(use_true_random=False))
def test_replicas_beside_nothing_are_replicas_of_some(scenario: Scenario, some: Any) -> None:
    """`components` of active replication names the bolts that are replicated: the rest has nothing."""
    bolts = [name for name, config in scenario.topology.items() if hasattr(config, "bolt")]
    chosen = tuple(some.sample(bolts, some.randint(0, len(bolts))))
    replicas = scenario.strategy.model_copy(update={"components": None})
    alone = scenario.with_strategy(replicas.model_copy(update={"components": chosen}))
    if chosen:
        mix = under(STRATEGIES["none"](), **dict.fromkeys(chosen, replicas))
        assert_same_tuples(alone, scenario.with_strategy(mix), "windows")


# -- what it says of itself ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "other", "promise"),
    [
        ("rsm", "active_replication", "exactly once"),
        ("rsm", "none", "at most once"),
        ("none", "none", "at most once"),
        ("active_replication", "none", "none"),
    ],
)
def test_it_promises_what_the_weakest_does(rest: str, other: str, promise: str) -> None:
    """Beside replicas a task that restarts with nothing may take from the second what it had from the first:
    then there is no promise left.
    """
    of = {"rsm": CHECKPOINTS, "active_replication": REPLICAS, "none": STRATEGIES["none"]()}
    assert under(of[rest], p=of[other]).promises() == promise


def test_it_is_as_its_members_are() -> None:
    """Kinds of failures, windows, replicas, intervals: those that go for all members."""
    mix = under(CHECKPOINTS, p=REPLICAS)
    assert mix.survives == {"lose_state", "crash_task"}
    assert under(REPLICAS).survives == REPLICAS.survives
    assert mix.windows == REPLICAS.windows & CHECKPOINTS.windows
    assert [mix.replicas(name, True) for name in ("p", "count")] == [2, 1]
    assert (mix.cycle(), under(REPLICAS).cycle()) == (CHECKPOINTS.cycle(), None)
    assert mix.recovers_within(4, 10) == CHECKPOINTS.recovers_within(4, 10)
    stateless = STRATEGIES["hybrid"](stateless=REPLICAS, rest=CHECKPOINTS)
    assert [stateless.replicas("p", state) for state in (False, True)] == [2, 1]


TEXT = """
name: small
topology:
  words: {spout: sentences, rate: 2/s}
  split: {bolt: split_words, from: {words: shuffle}, service: 1 ms}
run: {duration: 10 s}
strategy:
  kind: hybrid
  rest: {kind: rsm, checkpoint_interval: 1 s}
"""


@pytest.mark.parametrize(
    ("line", "key", "said"),
    [
        ("bolts: {splt: active_replication}", "strategy.bolts.splt", "did you mean 'split'?"),
        ("bolts: {words: none}", "strategy.bolts.words", "is a spout; only bolts can be named here"),
        ("bolts: {split: {kind: rsm}}", "strategy.bolts.split.checkpoint_interval", "is missing"),
        ("bolts: {split: {kind: active_replication, m: 2}}", "strategy.bolts.split.m", "unknown key"),
        ("bolts: {split: {kind: active_replication, k: -1}}", "strategy.bolts.split.k", "at least 0"),
        ("stateless: {kind: rms}", "strategy.stateless.kind", "did you mean 'rsm'?"),
        ("stateless: source_replay", "strategy.stateless", "replayed by the source, through all tasks"),
        ("bolts: {split: source_replay}", "strategy.bolts.split",
         "allowed are active_replication, none, rsm"),
        ("stateless: {kind: hybrid, rest: none}", "strategy.stateless", "it has members itself"),
        ("bolts: {split: {kind: active_replication, components: [split]}}", "strategy.bolts.split",
         "which are its own is said by bolts, stateless and rest"),
        ("bolts: {split: {kind: rsm, checkpoint_interval: 1 s, store: no}}",
         "strategy.bolts.split.store", "no"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_member_is_said_there(line: str, key: str, said: str) -> None:
    """With file, line and key, and what is allowed."""
    with pytest.raises(ScenarioError) as refused:
        load_text(TEXT + f"  {line}\n", "small.yaml")
    (problem,) = refused.value.problems
    assert (problem.key, str(problem).partition(":")[0]) == (key, "small.yaml")
    assert ":10: " in str(problem)
    assert said in problem.message


@pytest.mark.parametrize("kind", [kind for kind, cls in STRATEGIES.items() if cls.not_in_hybrid is not None])
def test_who_is_for_the_whole_job_says_why(kind: str) -> None:
    """One sentence, that can follow the name of the strategy."""
    why = STRATEGIES[kind].not_in_hybrid
    assert why
    assert why[0].islower()
    assert not why.endswith(".")


# -- the example ---------------------------------------------------------------------------------------------


def test_the_example_costs_less_than_replicas_and_recovers_faster_than_checkpoints() -> None:
    """Without failures the bolts work, each second: clean 40 x 1 ms, join 50 x 2 ms, seen 40 x 0.5 ms, which
    is 160 ms; 320 with two replicas of all; 260 with two of the join. In 120 s that is 19.2, 38.4 and 31.2
    s.

    The join crashes at 44 s, and is back at 54 s. Under checkpoints it is 11.6 s until all is as it would
    have been: 10 s, and the replay of 700 tuples, 1 ms each, while others wait. Its replica shows nothing of
    that. As to `seen` it is like checkpoints alone.
    """
    kinds = ("hybrid", "rsm", "active_replication")
    scenarios = load_for_strategies(EXAMPLE, kinds)
    quiet = {kind: simulate(each.model_copy(update={"failures": ()})) for kind, each in scenarios.items()}
    cpu = [quiet[kind].cost["cpu_s"] for kind in kinds]
    assert cpu == pytest.approx([31.2, 19.2, 38.4], rel=1e-3)
    assert [quiet[kind].cost["hosts"] for kind in kinds] == [6, 5, 8]
    runs = {kind: simulate(each) for kind, each in scenarios.items()}
    of_join, of_seen = ([runs[kind].recoveries[i]["time_to_recover_s"] for kind in kinds] for i in (0, 1))
    assert of_join == [0, pytest.approx(11.6, abs=0.1), 0]
    assert of_seen == [pytest.approx(10.6, abs=0.1), pytest.approx(10.6, abs=0.1), 0]
    for found in runs.values():
        assert (found.ledger["lost"], found.ledger["duplicated"]) == (0, 0)
        assert found.windows["wrong"] + found.windows["missing"] == 0
