"""Trident: batch by batch, and what each kind of spout and of state makes of a failure. Times in ms.

The small world of the first tests:

    s ──▶ p (1 a tuple) ──▶ count (2 a tuple)

Root n is emitted at 10 (n + 1). A batch begins every 100; a task takes 10 besides its tuples, a store 4, what
is to be written down 5, the mark 3. So the batch of ten tuples that begins at 100 passes p at 120 and is
counted at 150; its commit begins, count has it at 154, how far the spout has read is written at 155, and it
is marked at 158.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES, counted, windows
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario, deployment_of
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES, Strategy

TIMES = {
    "batch_interval": 100,
    "message_timeout": 200,
    "metadata_time": 5,
    "task_time": 10,
    "state_time": 4,
    "commit_time": 3,
}
FIRST = [(n, 154) for n in range(10)]
"""(root, when) of the first batch, if nothing fails."""


def chain(
    failures: tuple[Any, ...] = (),
    until: float = 195,
    window: float = 1000,
    roots: dict[str, Any] = ONES,
    **more: Any,
) -> Scenario:
    """The small world."""
    topology = {
        "s": spout(**roots),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "count": bolt("windowed_count", {"p": "shuffle"}, 2, window={"length": round(window * MS)}),
    }
    times = TIMES | {name: more.pop(name) for name in TIMES if name in more}
    times_ns = {name: round(time * MS) for name, time in times.items()}
    return world(topology, "trident", failures, until, **times_ns, **more)


def run(*failures: Any, **more: Any) -> Replication:
    return simulate(chain(failures, **more), trace=True)


def crash(component: str, at: float, restart: float = 30, **more: Any) -> Any:
    return fault("crash_task", at, component=component, restart=restart, **more)


def steps(done: Replication, what: str) -> list[tuple[float, str]]:
    """(when, detail) of a step of the protocol, each time that it was taken."""
    return [(step.at / MS, step.detail) for step in done.trace.steps if step.what == what]


# -- batch after batch ---------------------------------------------------------------------------------------


def test_a_batch_step_by_step() -> None:
    """As derived above."""
    done = run()
    assert counted(done) == FIRST
    assert [(step.at / MS, step.who, step.what) for step in done.trace.steps] == [
        (100, "coordinator", "batch begun"),
        (120, "p.0", "part worked off"),
        (150, "count.0", "part worked off"),
        (150, "coordinator", "commit begun"),
        (154, "count.0", "state updated"),
        (155, "coordinator", "metadata written"),
        (155, "coordinator", "spouts told"),
        (158, "coordinator", "batch committed"),
    ]


def test_a_transactional_spout_writes_first() -> None:
    """Its tuples leave 5 later, as all that follows; nothing is written at the commit: 159 and 162."""
    done = run(spout="transactional")
    assert counted(done) == [(n, 159) for n in range(10)]
    assert steps(done, "metadata written") == [(105, "transaction 1")]
    assert steps(done, "batch committed") == [(162, "transaction 1")]


def test_batches_under_way_at_once() -> None:
    """Every 20 a batch of two tuples: p takes 12, count 14 and 4. One at a time: that of 20 is counted at 32
    + 14 + 4 = 50 and marked at 54, so the next begins at 60, with four: 60 + 14 + 18 + 4 = 96, marked at
    100, when the next begins. Three at a time: 50, 70, 90, as fast as they come.
    """
    alone = run(batch_interval=20, until=99)
    assert counted(alone) == [(n, 50) for n in range(2)] + [(n, 96) for n in range(2, 6)]
    assert steps(alone, "batch begun") == [(20, "transaction 1"), (60, "transaction 2")]
    more = run(batch_interval=20, until=99, max_spout_pending=3)
    assert counted(more) == [(n, 50 + 20 * (n // 2)) for n in range(6)]


def test_commits_wait_for_their_turn() -> None:
    """The store takes 40. The first batch is worked off at 46, stored at 86, how far the spout has read at
    51; it is marked at 89. count works on the second and third one from 86 on, until 100 and 114: by 89
    neither is processed. So the second commits at 100, and waits for count until 114: stored at 154,
    marked at 157, when the third commits, though it was processed at 114: count works on the fourth one
    until 172, and stores until 212.
    """
    done = run(batch_interval=20, until=214, max_spout_pending=3, state_time=40)
    assert [at for at, _ in steps(done, "commit begun")] == [46, 100, 157]
    assert [at for at, _ in steps(done, "state updated")] == [86, 154, 212]
    assert [at for at, _ in steps(done, "batch committed")] == [89, 157]


def test_windows_end_with_the_batch_that_has_their_end() -> None:
    assert [w for w in windows(run(window=100, until=290)) if w[2]] == [(1, 154, 10), (2, 254, 10)]


# -- failures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("begun", "fails"), [(100, 400), (200, 400), (300, 600)])
def test_law_of_the_timeout(begun: int, fails: int) -> None:
    """A batch that begins in ((k-1) T, k T] fails at (k+1) T; T = 200. count crashes while it has one."""
    done = run(crash("count", begun + 30), until=900)
    assert steps(done, "batch failed")[0][0] == fails
    assert done.recoveries[0]["wait_s"] * 1000 == pytest.approx(fails - (begun + 60))
    assert done.ledger["lost"] == done.ledger["duplicated"] == 0


def test_a_batch_that_failed_comes_again() -> None:
    """count crashes at 130, is back at 160; the batch of 100 fails at 400 and begins again at once, with the
    tuples of 10 ... 400 by now (opaque): 400 + 50 + 90 + 4.
    """
    done = run(crash("count", 130), until=599)
    assert steps(done, "batch begun")[:2] == [(100, "transaction 1"), (400, "transaction 1")]
    assert counted(done) == [(n, 544) for n in range(40)]
    assert (done.recoveries[0]["replayed"], done.ledger["replayed"]) == (10, 10)


def test_nothing_of_a_batch_of_end_markers_is_read_again() -> None:
    """The last root comes at 50; p dies at 205 with a batch that has the end of a window only, which fails at
    400. When it comes again it waits for the mark of the batch before it, but nothing of p's failure is left.
    """
    roots = {"kind": "values", "values": (1,) * 5}
    done = run(crash("p", 205), window=100, until=2000, roots=roots, max_spout_pending=2, commit_time=3000)
    assert steps(done, "batch failed") == [(400, "transaction 2")]
    assert done.recoveries[0]["time_to_recover_s"] is not None


def test_a_transactional_batch_comes_again_as_it_was() -> None:
    """The same: 400 + 20 + 30 + 4, and what came meanwhile in the batch after it."""
    done = run(crash("count", 130), until=499, spout="transactional")
    assert counted(done) == [(n, 454) for n in range(10)]


def test_a_partition_that_is_away() -> None:
    """s is down from 350 to 450, its log with it. A transactional batch waits: nothing begins at 400, but at
    500, as it was. An opaque one has all to read that came by then, at 500.
    """
    faults = (crash("count", 130), crash("s", 350, restart=100))
    waits, goes_on = (run(*faults, until=700, spout=kind) for kind in ("transactional", "opaque"))
    assert steps(waits, "batch begun")[1] == steps(goes_on, "batch begun")[1] == (500, "transaction 1")
    assert counted(waits)[:10] == [(n, 554) for n in range(10)]
    assert len({when for _, when in counted(goes_on)}) == 1


def test_what_is_away_is_in_other_windows() -> None:
    """Tuples of 1 and of 10 come in turn to a count of windows of two: 11 in each. While the one spout is
    down its partition is away, with what has not been read of it: windows have two of the other's then. So
    of windows by tuple from more than one task at least once is promised.
    """
    ends = {"count": bolt("windowed_count", {"a": "shuffle", "b": "shuffle"}, window={"tuples": 2})}
    spouts = {"a": spout(**ONES), "b": spout("values", offset=5, values=(10,), repeat=True)}
    times = {name: round(time * MS) for name, time in TIMES.items()}
    quiet = world(spouts | ends, "trident", (), 695, **times)
    failing = quiet.model_copy(update={"failures": (crash("b", 160, restart=130),)})

    def sums(scenario: Scenario) -> set[int]:
        return {total for _, _, total in windows(simulate(scenario, trace=True))}

    assert sums(quiet) == {11}
    assert 2 in sums(failing)
    assert promise(failing) == "at least once"
    alone = {"count": bolt("windowed_count", {"a": "shuffle"}, window={"tuples": 2})}
    assert promise(failing.model_copy(update={"topology": {"a": spouts["a"]} | alone})) == "exactly once"


def promise(scenario: Scenario) -> str:
    return scenario.strategy.promises_in(deployment_of(scenario).topology)


def test_a_coordinator_knows_what_is_committed() -> None:
    """It dies at 156: count has the batch, and nothing says so. At 190 there is another, which begins the
    transaction again at 200; the store knows it: an opaque one goes back to what was before, and counts 20.
    """
    done = run(crash("coordinator", 156, restart=34), until=299)
    assert counted(done) == FIRST + [(n, 284) for n in range(20)]
    assert steps(done, "batch committed") == [(288, "transaction 1")]
    assert done.ledger["duplicated"] == 0


# -- the table -----------------------------------------------------------------------------------------------

KINDS = ("non_transactional", "transactional", "opaque")
EXACT = {("transactional", "transactional"), ("transactional", "opaque"), ("opaque", "opaque")}
"""Apache Storm, docs/Trident-state.md, "Summary of state and spout types"."""


def two_by_two(kinds: tuple[str, str], *failures: Any, until: float = 1190, **more: Any) -> Scenario:
    """s.0, s.1 ──▶ split ──▶ count.0, count.1, windows of 350.

    An update takes 7 and 1 a word: count.0 and count.1 have a batch at different moments. The fourth one has
    the end of the first window.
    """
    topology = {
        "s": spout("sentences", gap=10, parallelism=2),
        "split": bolt("split_words", {"s": "shuffle"}, 0.1),
        "count": bolt("windowed_count", {"split": "fields"}, 0.2, parallelism=2, window={"length": 350 * MS}),
    }
    times = TIMES | {"metadata_time": 3, "task_time": 2, "state_time": 7, "commit_time": 5, "state_cost": 1}
    more |= {name: time * MS for name, time in times.items()} | {"spout": kinds[0], "state": kinds[1]}
    return world(topology, "trident", failures, until, **more)


def moments(kinds: tuple[str, str]) -> list[float]:
    """Before each step of the fourth batch, at its instant, and after the last one."""
    done = simulate(two_by_two(kinds), trace=True)
    begun, committed = (
        next(s.at for s in done.trace.steps if (s.what, s.detail) == (what, "transaction 4"))
        for what in ("batch begun", "batch committed")
    )
    at = sorted({step.at for step in done.trace.steps if begun <= step.at <= committed})
    return [moment / MS for moment in (*at, at[-1] + 1)]


def struck(moment: float) -> list[tuple[Any, ...]]:
    """The coordinator dies, or a task that stores; and the same while a partition of the source is away when
    the batch comes again (at 600).
    """
    away = fault("crash_task", 550, component="s", task=1, restart=300)
    lost = [crash("coordinator", moment), *(crash("count", moment, task=task) for task in (0, 1))]
    return [*((one,) for one in lost), *((one, away) for one in lost)]


def observed(kinds: tuple[str, str], **more: Any) -> tuple[bool, bool]:
    """Whether anything was lost, and counted twice, when each of these strikes at each of these moments."""
    lost = twice = False
    for moment in moments(kinds):
        for failures in struck(moment):
            done = simulate(two_by_two(kinds, *failures, **more))
            lost |= done.ledger["lost"] > 0
            twice |= done.ledger["duplicated"] > 0
            bad = done.windows["wrong"] + done.windows["missing"] > 0
            assert not bad or kinds not in EXACT, (failures, done.windows)
    return lost, twice


@pytest.mark.parametrize("state", KINDS)
@pytest.mark.parametrize("spout", KINDS)
def test_the_table_of_nine(spout: str, state: str) -> None:
    """Struck before and after each step of a batch, three of nine are exact; the others are not, and what
    they promise holds all the same.
    """
    lost, twice = observed((spout, state))
    assert (not lost and not twice) == ((spout, state) in EXACT)
    holds(STRATEGIES["trident"].model_validate({"spout": spout, "state": state}), lost, twice)


@pytest.mark.parametrize("state", KINDS)
def test_a_source_that_does_not_emit_again(state: str) -> None:
    """It loses; and an opaque state takes back what windows have put out, which then counts twice."""
    lost, twice = observed(("non_transactional", state), failed_batches="lost")
    assert (lost, twice) == (True, state == "opaque")
    settings = {"spout": "non_transactional", "state": state, "failed_batches": "lost"}
    holds(STRATEGIES["trident"].model_validate(settings), lost, twice)


def holds(strategy: Strategy, lost: bool, twice: bool) -> None:
    """It promises no more than was seen, and no less."""
    words = {(0, 0): "exactly once", (0, 1): "at least once", (1, 0): "at most once", (1, 1): "none"}
    assert strategy.promises() == words[lost, twice]
