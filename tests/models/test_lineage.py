"""D-Streams: states that are lost are computed again, by all executors, from the newest that was saved.

    s ──▶ count, in as many tasks as there are keys

Ten tuples come for each key in a second. Executors have one core and LOST tasks each; nothing takes time but
tuples.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models import conformance
from tideover.models.mechanisms.batches import Batches
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES

S = 1000 * MS
LOST = 6
"""States on the executor that dies."""


def batches(executors: int, work: float, kill: float, interval: float, until: float) -> list[Any]:
    """Those that were committed, if the first executor dies after ``kill`` s, and a tuple takes ``work`` ms;
    triggers come each ``interval`` s, states are saved each 60 s.
    """
    tasks = LOST * executors
    topology = {
        "s": spout("keys", gap=100 / tasks, keys=tasks, order="in_turn", hosts=(executors,)),
        "count": bolt(
            "windowed_count",
            {"s": "fields"},
            work,
            parallelism=tasks,
            hosts=tuple(task // LOST for task in range(tasks)),
            window={"length": 10**6 * MS},
        ),
    }
    settings = {"trigger_interval": round(interval * S), "checkpoint_interval": 60 * S}
    dies = fault("crash_host", 1000 * kill, host=0, restart=10**6)
    done = simulate(
        world(
            topology,
            "micro_batch",
            (dies,),
            1000 * until,
            hosts=executors + 1,
            recovery="lineage",
            **settings,
        ),
        trace=True,
    )
    assert done.world is not None
    query = done.world.job.context.runner
    assert isinstance(query, Batches)
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)
    return query.history


@pytest.mark.parametrize("others", [1, 2, 3, 6])
def test_law_of_parallel_recovery(others: int) -> None:
    """States were saved in the batch of 60 s. The executor dies at 115, after those of 70 ... 110: five, of
    100 tuples for each task. In the batch of 120 each of the others works off its own 6 tasks, and 6 /
    others of those that were lost, each with six batches: what it takes longer falls in proportion to
    their number.
    """
    (batch,) = (b for b in batches(others + 1, 1, 115, 10, 125) if b.triggered == 120 * S)
    assert batch.visible - batch.triggered == (6 + 6 * 6 // others) * 100 * MS


@pytest.mark.parametrize("others", [3, pytest.param(6, marks=pytest.mark.long)])
def test_law_of_catching_up(others: int) -> None:
    """At a load of 0.5 the executor dies before the batch of 120; 59 batches of 1 s have come since its
    states were saved. Of N executors N - 1 are left, with N / 2 to do for what comes, and the rest of
    their time for 59 / 2 s of lost work: from 120 on it takes 0.5 * 59 / (N - 1 - N / 2) s, known to an
    interval. For many executors that is load / (N (1 - load)) of the time since the states were saved: M.
    Zaharia et al., SOSP 2013, section 3.3.
    """
    load = 0.5
    history = batches(others + 1, 100 * load / LOST, 119.9, 1, 180)
    late = [b for b in history if b.committed - b.triggered > S and b.triggered >= 120 * S]
    closed_form = load * 59 / (others - load * (others + 1))
    assert late[-1].committed / S - 120 == pytest.approx(closed_form, abs=1)


LONG = (
    conformance.keeps_its_promise,
    conformance.conserves_roots,
)
"""Exactness has its worlds in any case."""
CHECKS = [
    pytest.param(check, id=check.__name__, marks=[pytest.mark.long] * (check in LONG))
    for check in conformance.CHECKS
]


@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_its_promise(check: Any) -> None:
    settings = {"recovery": "lineage", "checkpoint_interval": 3 * S, "trigger_interval": 1 * S}
    times = {"task_time": 50 * MS, "state_time": 100 * MS, "reload_time": 100 * MS, "commit_time": 30 * MS}
    check(STRATEGIES["micro_batch"].model_validate(settings | times))
