"""How busy each resource is over time, and which of them a run is short of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.kept import as_kept
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.evaluation.bottleneck import Load, Used, mean_loads, sentence
from tideover.models.results import Result
from tideover.models.schema import SHARED_RECORD
from tideover.models.simulation import Replication, simulate
from tideover.models.world import World

ONES: dict[str, Any] = {"kind": "values", "values": (1,), "repeat": True}


def line(*failures: Any) -> Any:
    """s (every 10 ms, at 10, 20, …) ──▶ p (4 ms) ──▶ q (9 ms)."""
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "q": bolt("forward", {"p": "shuffle"}, 9),
    }
    return world(topology, "none", failures, 200)


def used(scenario: Any) -> Used:
    found = World(scenario, looks=200)
    found.run()
    assert found.usage is not None
    return Used.of(found.usage)


def test_each_look_sees_the_work_done_by_then() -> None:
    """200 looks in 200 ms, one a millisecond. p works in [10k, 10k + 4], q in [10k + 4, 10k + 13], so from 14
    on without end but for the ninth millisecond of each ten… that is [13, 14], [23, 24], ….
    """
    found = used(line())
    assert found.times == [i * MS for i in range(201)]
    p, q = (next(i for i, name in enumerate(found.resources) if name[0] == task) for task in ("p.0", "q.0"))
    assert [name[1] for name in found.resources] == ["task"] * 3
    for i, moment in enumerate(found.times):
        rounds, rest = divmod(moment // MS - 10, 10)
        done = max(0, rounds) * 4 + (min(4, rest) if rounds >= 0 else 0)
        assert found.busy[i][p] == done * MS
        rounds, rest = divmod(moment // MS - 14, 10)
        done = max(0, rounds) * 9 + (min(9, rest) if rounds >= 0 else 0)
        assert found.busy[i][q] == done * MS


def test_a_look_changes_nothing() -> None:
    """The same tuples at the same times with 200 looks and with none, failures included."""
    failing = line(fault("crash_task", 95, component="q", detection=10, restart=20))
    traces = []
    for looks in (200, 0):
        found = World(failing, trace=True, looks=looks)
        found.run()
        assert found.trace is not None
        traces.append(sorted(found.trace.processed))
    assert traces[0] == traces[1]


def test_the_busiest_is_named_and_the_next() -> None:
    """Over [100, 200]: q is busy nine tenths of the time, p four tenths."""
    loads = mean_loads([used(line()).loads(100 * MS, 200 * MS)])
    assert [(load.words, load.busy) for load in loads] == [
        ("task q.0", pytest.approx(0.9)),
        ("task p.0", pytest.approx(0.4)),
        ("task s.0", 0.0),
    ]
    assert sentence(loads) == "task q.0 is 90.0 % busy; next: task p.0, 40.0 %"
    assert sentence([]) == "nothing was measured"


def test_loads_are_means_over_replications() -> None:
    """Busy 0.2 and 0.6: 0.4; the one that only one replication has counts as it was there."""
    one = [Load("a.0", "task", 0, 0.2), Load("b.0", "task", 1, 0.3)]
    assert mean_loads([one, [Load("a.0", "task", 0, 0.6)]]) == [
        Load("a.0", "task", 0, pytest.approx(0.4)),  # type: ignore[arg-type]
        Load("b.0", "task", 1, 0.3),
    ]


def test_no_stretch_no_load() -> None:
    """Two looks make a stretch."""
    found = used(line())
    assert found.loads(100 * MS, 100 * MS) == []
    assert found.loads(300 * MS, 400 * MS) == []


@pytest.fixture(scope="module")
def shared() -> Result:
    scenario = line()
    found = World(scenario, looks=200)
    found.run()
    assert found.usage is not None
    plain: Replication = simulate(scenario)
    return Result(scenario, [replace(plain, used=Used.of(found.usage))])


def test_a_result_has_it_where_it_was_measured(shared: Result) -> None:
    """In the record, as a table with a row a stretch and resource; elsewhere the record has nothing of it."""
    record = shared.to_dict()
    assert record["resources"][0] == {
        "name": "q.0",
        "kind": "task",
        "host": 2,
        "busy": pytest.approx((200 - 14 - 18) / 200),
    }
    assert record["bottleneck"].startswith("task q.0 is 84.0 % busy; next: task p.0")
    assert len(shared.usage) == 200 * 3
    rows = shared.usage[shared.usage.resource == "p.0"]
    assert rows.busy.mean() == pytest.approx(76 / 200)
    plain = Result(shared.scenario, [replace(one, used=None) for one in shared.replications])
    assert set(record) - set(plain.to_dict()) == {entry.name for entry in SHARED_RECORD}
    assert not len(plain.usage)


def test_it_is_kept_on_disk(shared: Result) -> None:
    """What a sweep keeps of a run gives the same record again."""
    again = Result(shared.scenario, [as_kept(one) for one in shared.replications])
    assert again.to_json() == shared.to_json()
    assert again.usage.equals(shared.usage)
