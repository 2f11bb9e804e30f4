"""An operator from outside the package under every strategy: a running count of different values by key.

    visits x 2 ──shuffle──▶ parse x 2 (2 ms) ──fields──▶ count x 2 (1 ms)    25 visits/s a task, links 3 ms,
    windows of 1 s ended by markers, 12 s; 5 pages and so many visitors that hardly anyone comes twice

The truth is plain Python: a tuple that was emitted up to n seconds is in window n, and in a running count in
all later ones.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.test_conformance import BUILT_IN
from tests.models.test_conformance import of as settings_of
from tests.models.test_outside_strategies import imported
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models import conformance
from tideover.models.conformance import first_windows
from tideover.models.job.arrivals import Periodic
from tideover.models.job.components import Links
from tideover.models.job.spouts import SPOUTS
from tideover.models.operators.base import BOLTS
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.loader import load
from tideover.sim.distributions import Constant
from tideover.sim.draws import Draws
from tideover.sim.faults import FAULTS

EXAMPLES = Path(__file__).parents[2] / "examples"
S = 1000
"""ms."""
END = 12
STRATEGY: dict[str, dict[str, Any]] = {
    "none": {},
    "source_replay": {"message_timeout": 1500 * MS},
    "rsm": {"checkpoint_interval": 300 * MS},
    "active_replication": {},
    "aligned_snapshots": {"checkpoint_interval": 300 * MS},
    "micro_batch": {"trigger_interval": 100 * MS},
    "storm_checkpoint": {"checkpoint_interval": 300 * MS, "message_timeout": 1500 * MS},
}
EXACT = ("rsm", "active_replication", "aligned_snapshots", "micro_batch")
MINUTES = (
    conformance.keeps_its_promise,
    conformance.keeps_its_promise_between_ticks,
    conformance.conserves_roots,
    conformance.survives_during_its_steps,
    conformance.recovers_in_time,
    conformance.bounds_its_buffers,
)
"""Checks of the suite that simulate many worlds."""
COMPONENTS = ("visits", "parse", "count")
DOWN: dict[str, Any] = {"detection": 200, "restart": 400}


@pytest.fixture(scope="module", autouse=True)
def example() -> Iterator[None]:
    with imported("running_distinct", (BOLTS, "running_distinct"), (SPOUTS, "visits")):
        yield


def run(
    strategy: str, failures: tuple[Any, ...] = (), operator: str = "running_distinct", **more: Any
) -> Replication:
    topology = {
        "visits": spout("visits", arrivals=Periodic(rate=25.0), parallelism=2, pages=5, visitors=100_000),
        "parse": bolt("forward", {"visits": "shuffle"}, 2, parallelism=2),
        "count": bolt(
            operator,
            {"parse": "fields"},
            1,
            parallelism=2,
            window={"length": S * MS, "trigger": "marker"},
        ),
    }
    settings = STRATEGY[strategy] | more
    links = Links(latency=ms(3), local=ms(3))
    return simulate(world(topology, strategy, failures, END * S, links=links, **settings), trace=True)


# -- the truth -----------------------------------------------------------------------------------------------


def content(roots: list[int]) -> list[tuple[int, int]]:
    """(page, visitor) of these visits."""
    column = np.array(roots, np.int64)
    found = SPOUTS["visits"](pages=5, visitors=100_000).content("visits", Draws(1, 0), column, column)
    return list(zip(*(part.tolist() for part in found), strict=True))


def visits(done: Replication) -> list[tuple[float, int, int]]:
    """(emitted at, page, visitor) of all visits, in seconds."""
    first = [(root, time / (S * MS)) for _, _, root, attempt, time in done.trace.emitted if attempt == 0]
    return [
        (time, *what) for (_, time), what in zip(first, content([root for root, _ in first]), strict=True)
    ]


def truth(operator: str, all_visits: list[tuple[float, int, int]], number: int) -> dict[int, int]:
    """What window ``number`` has of each page."""
    so_far = [(page, visitor) for time, page, visitor in all_visits if time <= number]
    inside = [(page, visitor) for time, page, visitor in all_visits if number - 1 < time <= number]
    if operator == "running_distinct":
        return dict(Counter(page for page, _ in set(so_far)))
    if operator == "distinct":
        return {page: 1 for page, _ in inside}
    sums: Counter[int] = Counter()
    for page, visitor in so_far if operator == "running_count" else inside:
        sums[page] += visitor
    return dict(sums)


def windows(done: Replication) -> dict[int, dict[int, int]]:
    """By number what all tasks together have put out: no page is at two of them."""
    found: dict[int, dict[int, int]] = {}
    for (_, _, number), sums in first_windows(done).items():
        assert not found.setdefault(number, {}).keys() & sums.keys()
        found[number].update(sums)
    return found


def right(done: Replication, operator: str = "running_distinct") -> dict[int, bool]:
    """Which windows are as they should be."""
    all_visits = visits(done)
    return {n: sums == truth(operator, all_visits, n) for n, sums in windows(done).items()}


def at_most(done: Replication) -> bool:
    """Whether no window has more than there was."""
    all_visits = visits(done)
    return all(
        value <= truth("running_distinct", all_visits, n)[page]
        for n, sums in windows(done).items()
        for page, value in sums.items()
    )


def strikes(strategy: str, components: tuple[str, ...] = COMPONENTS) -> list[Any]:
    """Every fault that the strategy survives: in a window, and at its end. There are no racks here."""
    hosts = {"visits": 0, "parse": 2, "count": 4}
    found = []
    for kind in sorted(STRATEGIES[strategy].survives - {"crash_rack"}):
        for component in components:
            if component == "parse" and not STRATEGIES[strategy].stateless_too:
                continue
            where = FAULTS[kind].aimed_at(component, hosts[component])
            times = {
                "pause": {"duration": 600 * MS},
                "planned_restart": {"down": Constant(value=600 * MS)},
            }.get(kind, DOWN)
            found += [fault(kind, at, **where, **times) for at in (5300, 6000)]
    return found


# -- without failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGY)
@pytest.mark.parametrize("operator", ["running_distinct", "windowed_count", "running_count", "distinct"])
def test_without_failures_all_windows_are_right(operator: str, strategy: str) -> None:
    """Also of the package's own operators; the last that must be there is the one before the end."""
    found = right(run(strategy, operator=operator), operator)
    assert found.keys() >= set(range(1, END))
    assert all(found.values()), found


# -- after a failure -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", EXACT)
def test_exactly_once_is_exactly_right(strategy: str) -> None:
    """Every window is put out, and right, whatever the strategy survives: state and replay fit together."""
    for struck in strikes(strategy):
        found = right(run(strategy, (struck,)))
        assert found.keys() >= set(range(1, END)), struck
        assert all(found.values()), (struck, found)


BEFORE, REPLAYED = range(1, 6), (*range(1, 6), END - 1)


@pytest.mark.parametrize(
    ("strategy", "components", "as_they_should", "not_so"),
    [
        # no state is lost with a stateless task: what was in it comes again within two timeouts of 1.5 s
        ("source_replay", ("visits", "parse"), REPLAYED, ()),
        # what windows have put out was acked, and is not emitted again: from the failure on they lack it
        ("source_replay", ("count",), BEFORE, range(7, END + 1)),
        # what is not in the committed state is not acked: it comes back with its replays
        ("storm_checkpoint", COMPONENTS, REPLAYED, ()),
        ("none", ("parse", "count"), BEFORE, range(8, END)),
    ],
)
def test_after_a_failure_no_window_has_more_than_there_was(
    strategy: str, components: tuple[str, ...], as_they_should: Any, not_so: Any
) -> None:
    """A replay does no harm to a distinct count. Which windows are right, at least, and which are not."""
    for struck in strikes(strategy, components):
        done = run(strategy, (struck,))
        found = right(done)
        assert at_most(done)
        assert all(found[n] for n in as_they_should), (struck, found)
        assert not any(found.get(n) for n in not_so), (struck, found)


def test_a_false_timeout_counts_twice_only_where_twice_makes_a_difference() -> None:
    """Windows of 1 s are acked at their end, and roots time out after 0.3 to 0.6 s: many come again."""
    done = run("source_replay", message_timeout=300 * MS)
    assert done.ledger["duplicated"] > 0
    assert all(right(done).values())
    assert not all(right(run("source_replay", (), "running_count", message_timeout=300 * MS)).values())


# -- the state travels ---------------------------------------------------------------------------------------


def known(done: Replication, task: int, until: int, replica: int = 0) -> int:
    """Different (page, visitor) that a task of the count has taken in up to a moment (ns)."""
    bits = done.world.job.topology.by_name["count"].bits
    rows = [row for row in done.trace.processed if row[:3] == ("count", task, replica) and row[6] <= until]
    return len(set(content([row[3] >> bits for row in rows])))


def test_checkpoints_have_all_that_is_known() -> None:
    """An entry is a (page, visitor); the store is instant, so what is saved now was taken in by now."""
    done = run("rsm")
    saved = [
        (step.at, int(step.who.removeprefix("count.")), int(step.detail.removesuffix(" entries")))
        for step in done.trace.steps
        if step.what == "checkpoint saved"
    ]
    assert len(saved) > 2 * END
    assert all(entries == known(done, task, time) for time, task, entries in saved)


def test_snapshots_have_all_that_is_known() -> None:
    """Bytes in the store: 64 for each entry of both tasks at each snapshot, which is aligned while at most
    the tuples of 20 ms, two of them, are under way.
    """
    done = run("aligned_snapshots", entry_size=64)
    complete = [step.at for step in done.trace.steps if step.what == "snapshot complete"]
    most = sum(known(done, task, time) for time in complete for task in (0, 1))
    assert most - 2 * len(complete) <= done.cost["store_bytes"] / 64 <= most


def test_a_replica_copies_all_that_is_known() -> None:
    """Bytes on the network, 64 for each entry of the peer when the copy begins; and when the peer dies
    afterwards, the copy goes on as if nothing had been.
    """
    crash = fault("crash_task", 5300, component="count", **DOWN)
    with_, without = (run("active_replication", (crash,), entry_size=size) for size in (64, 0))
    copied = (with_.cost["network_bytes"] - without.cost["network_bytes"]) / 64
    assert copied == known(with_, 0, (5300 + 600) * MS, replica=1) > 0
    peer = fault("crash_task", 8300, component="count", replica=1, **DOWN)
    found = right(run("active_replication", (crash, peer)))
    assert all(found.values())


# -- the suite, and the scenario -----------------------------------------------------------------------------


SIMULATED = [
    pytest.param(check, id=check.__name__, marks=pytest.mark.long if check in MINUTES else ())
    for check in conformance.CHECKS
    if "bolt" in inspect.signature(check).parameters
]


@pytest.mark.parametrize("check", SIMULATED)
@pytest.mark.parametrize(
    "strategy", [pytest.param(name, marks=() if name in STRATEGY else pytest.mark.long) for name in BUILT_IN]
)
def test_strategies_keep_their_word_with_it(strategy: str, check: Any) -> None:
    """The conformance suite with this operator in place of its count."""
    check(settings_of(strategy), bolt=BOLTS["running_distinct"])


def test_the_example() -> None:
    """One file; its scenario loses nothing, and has all windows right."""
    assert len((EXAMPLES / "running_distinct.py").read_text("utf-8").splitlines()) <= 120
    done = simulate(load(EXAMPLES / "visitors.yaml"))
    assert done.windows == {"emitted": 12, "correct": 12, "wrong": 0, "missing": 0}
