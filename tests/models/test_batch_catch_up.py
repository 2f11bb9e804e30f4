"""How a query works off what has waited while its driver was dead: batch by batch, by recursion."""

from __future__ import annotations

import pytest

from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.job.arrivals import Periodic
from tideover.models.mechanisms.batches import Batches
from tideover.models.simulation import simulate

S = 1000 * MS
GAP, COUNT, WINDOW = 4 * MS, 3_600_000, 30 * S
"""A tuple every 4 ms, 3.6 ms to count it: a load of 0.9; a marker ends each window."""
PLAN, TASK, OUTPUT, COMMIT, RELOAD, RECOVERY, COLD = (n * MS for n in (20, 10, 5, 10, 200, 1500, 800))
KILLED, BACK, END = 60 * S + 350 * MS, 70 * S + 350 * MS, 200 * S


def waiting(after: int, until: int) -> tuple[int, int]:
    """Tuples and markers that come in this time, its end included, without its beginning."""
    return until // GAP - after // GAP, until // WINDOW - after // WINDOW


def recursion(interval: int) -> list[tuple[int, int, int, int]]:
    """(trigger, shown, committed, tuples) of each batch: it takes what has come since the one before it was
    triggered, and the next begins when it is committed, on the grid if it was in time.

    What was logged when the driver died is run again, without a plan, with a load and cold.
    """
    found = []
    now = read = 0
    again: int | None = None
    dies, late = True, 0
    while now <= END:
        tuples, markers = waiting(read, now) if again is None else (again, 0)
        ends = now
        if tuples or markers:
            shown = now + (PLAN if again is None else 0) + late + TASK + tuples * COUNT + OUTPUT
            ends = shown + COMMIT
        if dies and ends >= KILLED:
            dies, late = False, COLD + RELOAD
            if ends > now and now + PLAN < KILLED:
                again, read = tuples, now
            now = BACK + RECOVERY
            continue
        if ends > now:
            read = now if again is None else read
            found.append((now, shown, ends, tuples))
            again, late = None, 0
        now = max(ends, (now // interval + 1) * interval)
    return [batch for batch in found if batch[2] <= END]


@pytest.mark.parametrize("interval_ms", [500, 1000, 5000])
def test_a_new_driver_catches_up_batch_by_batch(interval_ms: int) -> None:
    """s ──▶ count. Ten seconds wait, and one batch takes them all; from then on each has what came during the
    one before, a tenth less, until one ends in time again.
    """
    topology = {
        "s": spout("keys", keys=1, arrivals=Periodic(pause=GAP, fixed_offset=0)),
        "count": bolt("windowed_count", {"s": "shuffle"}, COUNT / MS, window={"length": WINDOW}),
    }
    killed = fault("crash_task", KILLED / MS, component="driver", restart=(BACK - KILLED) / MS)
    times = {
        "trigger_interval": interval_ms * MS,
        "plan_time": PLAN,
        "task_time": TASK,
        "output_time": OUTPUT,
        "commit_time": COMMIT,
        "reload_time": RELOAD,
        "recovery_time": RECOVERY,
        "cold_time": COLD,
    }
    done = simulate(world(topology, "micro_batch", (killed,), END / MS, **times), trace=True)
    assert done.world is not None
    query = done.world.job.context.runner
    assert isinstance(query, Batches)
    history = [(b.triggered, b.visible, b.committed, b.tuples) for b in query.history]
    assert history == recursion(interval_ms * MS)
    assert max(b[3] for b in history) > (BACK - KILLED) / GAP
