"""Batch jobs that are run again, held to what Hadoop does. Times in milliseconds.

The small world is that of `tests.models.test_micro_batch`: a job begins at 100 with ten tuples, p.0 and p.1
work from 105, count.0 and count.1 from 125, the committer has moved the results at 161.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.models.chain import counted
from tests.models.test_micro_batch import TIMES, driver_lost, executor_lost, query, whole
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models import conformance
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.distributions import Exponential
from tideover.sim.faults import FAULTS


def run(*failures: Any, until: float = 240, **more: Any) -> Replication:
    scenario = query(failures, until)
    strategy = STRATEGIES["batch_rerun"](**{name: round(t * MS) for name, t in TIMES.items()}, **more)
    return simulate(scenario.model_copy(update={"strategy": strategy}), trace=True)


def test_nothing_is_to_be_seen_before_the_end() -> None:
    """All of the results are there at 161, and none before."""
    assert counted(run(until=195)) == [(n, 161) for n in range(10)]
    assert counted(run(until=160)) == []


def test_the_whole_job_again() -> None:
    """Host 0 dies at 110; noticed at 113, the job begins anew at 118, with the same input, on host 1: p.0
    until 138, p.1 until 148, count.0 until 182, count.1 until 196.
    """
    done = run(executor_lost(110))
    assert counted(done) == [(n, 198) for n in range(10)]
    whole(done)


def test_some_tasks_again() -> None:
    """The same, but p.0 and count.0 alone: as under micro_batch."""
    done = run(executor_lost(110), retry="task")
    assert counted(done) == [(n, 191) for n in range(10)]
    whole(done)


@pytest.mark.parametrize("retry", ["job", "task"])
def test_the_master_takes_the_job_with_it(retry: str) -> None:
    """It dies at 110. The next one, of 160, begins the job again at 165: until 221; where tasks are run
    again, states are read again, too: until 227.
    """
    done = run(driver_lost(110), retry=retry)
    assert counted(done) == [(n, 221 if retry == "job" else 227) for n in range(10)]
    whole(done)


def test_a_task_that_fails() -> None:
    """count.0 fails at 130, and may run from 150 on. The job begins again at 155: until 211. count.0 alone:
    186.
    """
    failed = fault("crash_task", 130, component="count", restart=20)
    assert counted(run(failed)) == [(n, 211) for n in range(10)]
    assert counted(run(failed, retry="task")) == [(n, 186) for n in range(10)]


@pytest.mark.parametrize(
    "other",
    [
        executor_lost(110, detection=80),
        executor_lost(112, detection=80),
        executor_lost(115, detection=80),
        fault("crash_task", 110, component="count", restart=80),
    ],
)
def test_a_new_master_waits_for_nobody(other: Any) -> None:
    """The master dies at 112, and the next one, of 120, has new executors. That host 0 has died before, at
    that instant, or since then, would be noticed at 190 or later; count.0 would be back at 190. But the job
    begins again at 125: p.0 until 145, count.0 until 179.
    """
    done = run(driver_lost(112, restart=8), other, until=195)
    assert counted(done) == [(n, 181) for n in range(10)]
    whole(done)


def test_between_two_jobs_there_is_nothing_to_run_again() -> None:
    """Host 0 dies at 170; the next job, of 200, is run on host 1 alone: p.0 and p.1 until 235, count.0 until
    269, count.1 until 283.
    """
    done = run(executor_lost(170), until=295)
    assert counted(done)[10:] == [(n, 285) for n in range(10, 20)]
    assert done.ledger["replayed"] == 0


@pytest.mark.parametrize("at", range(95, 175, 3))
@pytest.mark.parametrize("retry", ["job", "task"])
def test_no_failure_disturbs_a_window(at: int, retry: str) -> None:
    whole(run(driver_lost(at, restart=37), executor_lost(at + 60, restart=90), until=900, retry=retry))


@pytest.mark.long
def test_with_tasks_alone_it_keeps_its_promise_too() -> None:
    settings = {
        "trigger_interval": 2000 * MS,
        "task_time": 100 * MS,
        "output_time": 100 * MS,
        "retry": "task",
    }
    conformance.keeps_its_promise(STRATEGIES["batch_rerun"].model_validate(settings))


def test_law_of_running_again() -> None:
    """A job of length L is begun anew at each failure, which come at rate 1/m: it ends after m (e^(L/m) - 1)
    on average (A. Duda, *The Effects of Checkpointing on Program Execution Time*, 1983, without
    checkpoints). Here L = m = 1 s, so 1.718 s; the standard deviation is sqrt(e^2 - 2 e - 1) = 0.976 s, of
    the mean of 300 runs 0.056 s.
    """
    runs, length = 300, 1000
    topology = {
        "s": spout("values", 400, 500, values=(1,)),
        "count": bolt("windowed_count", {"s": "shuffle"}, 0, window={"length": 10**6 * MS}),
    }
    dies = FAULTS["crash_task"](component="driver", every=Exponential(mean=length * MS))
    settings = {"trigger_interval": length * MS, "task_time": length * MS}
    scenario = world(topology, "batch_rerun", (dies,), 15_000, **settings)
    found = [simulate(scenario, number, trace=True) for number in range(runs)]
    took = [when - 1000 for done in found for _, when in counted(done)]
    assert len(took) == runs
    assert sum(took) / runs == pytest.approx(1000 * (math.e - 1), abs=2.5 * 56)
