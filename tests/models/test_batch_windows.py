"""Windows by event in batches: one watermark for a bolt, that moves between batches.

events (tuple i, bit i, at 100 ms * (i + 1)) ──▶ count      a batch each 500 ms, which takes no time
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.test_event_windows import S, put_out
from tests.oracle import run as reference
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.operators.window import Window
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_text

STAMPS = (1, 5, 9, 10, 12, 9, 11, 11.5, 31, 32, 33, 45, 46, 47, 48, 60, 61, 62, 63, 64)
WINDOW = {"by": "event", "length": 10 * S, "lag": S}
PATIENT = WINDOW | {"lag": 4 * S}


def counted(
    strategy: str = "micro_batch", window: dict[str, Any] = WINDOW, grouping: str = "fields", **more: Any
) -> Scenario:
    """``tasks``: of the count."""
    failures = more.pop("failures", ())
    told, values = tuple(round(stamp * S) for stamp in STAMPS), tuple(1 << i for i in range(len(STAMPS)))
    topology = {
        "events": spout("values", 100, values=values, stamps=told),
        "count": bolt(
            "windowed_count",
            {"events": grouping},
            window=Window(**window),
            parallelism=more.pop("tasks", 1),
        ),
    }
    if strategy != "none":
        more.setdefault("trigger_interval", 500 * MS)
    return world(topology, strategy, failures, 5000, **more)


ENDED = [(1.0, 10, [0, 1, 2, 3]), (1.5, 20, [4, 7]), (2.0, 40, [8, 9, 10])]
"""(when in s, end of the window in s of events, what is in it)."""


@pytest.mark.parametrize("strategy", ["micro_batch", "batch_rerun"])
@pytest.mark.parametrize("who", ["engine", "reference"])
def test_a_window_is_put_out_by_the_batch_after_that_of_its_end(who: str, strategy: str) -> None:
    """The batch of 0.5 s has events up to 12 s: the watermark is 11 s from then on. In that of 1 s 9 s and
    11 s are late, 11.5 s is not, and the window of 10 s is put out, though its end had come half a second
    before. Events go up to 32 s: the batch of 1.5 s, with a watermark of 31 s, puts out that of 20 s, and
    45 s to 48 s in it are no help to that of 40 s until 2 s. Then the watermark is 62 s, but no batch
    follows: there is nothing to read.
    """
    scenario = counted(strategy)
    found = simulate(scenario, trace=True)
    trace = reference(scenario) if who == "reference" else found.trace
    assert trace is not None
    moments = {number * 10: time / S for *_, number, time, _ in trace.windows}
    assert [(moments[end], end, inside) for _, end, inside in put_out(trace.windows)] == ENDED
    assert (found.ledger["late"], found.ledger["lost"]) == (2, 2)


@pytest.mark.parametrize("seed", range(1, 5))
def test_all_tasks_of_a_bolt_have_one_watermark(seed: int) -> None:
    """Tuples go to one of two tasks at random. Outside of batches a task waits until such an event comes to
    itself; here both put out a window with the same batch, that which a single task would: whichever of them
    has the newest event, all know it.
    """

    def moments(strategy: str, **keys: Any) -> dict[int, set[int]]:
        found = simulate(counted(strategy, grouping="shuffle", tasks=2, seed=seed, **keys), trace=True)
        assert found.trace is not None
        both: dict[int, set[int]] = {}
        for _, _, _, number, time, _ in found.trace.windows:
            both.setdefault(number, set()).add(time)
        return both

    single = {end // 10: {round(time * S)} for time, end, _ in ENDED}
    assert moments("micro_batch") == single
    alone = {**WINDOW, "watermark_interval": 100 * MS}
    assert any(len(times) > 1 for times in moments("none", window=alone).values())


@pytest.mark.parametrize("recovery", ["checkpoint", "lineage", "replay"])
@pytest.mark.parametrize(
    "window", [PATIENT, PATIENT | {"slide": 5 * S}, PATIENT | {"length": None, "gap": S}]
)
def test_a_batch_that_is_run_again_puts_out_the_same(window: dict[str, Any], recovery: str) -> None:
    """The driver dies at 1.6 s, when the batch of 1.5 s is out, and not committed: it is undone, and run
    again with the watermark that it had. The readers have had what it puts out. Batches are others from then
    on, and so is the last one with a window; no event is late.
    """
    keys = {"recovery": recovery, "commit_time": 200 * MS}
    died = fault("crash_task", 1600, component="driver", detection=100, restart=200)
    quiet = simulate(counted(window=PATIENT | window, **keys), trace=True)
    found = simulate(counted(window=PATIENT | window, failures=(died,), **keys), trace=True)
    assert quiet.trace is not None
    assert found.trace is not None
    ends = {number: sums for *_, number, _, sums in quiet.trace.windows}
    assert len(ends) >= 3
    first: dict[int, dict[int, int]] = {}
    for *_, number, _, sums in sorted(found.trace.windows, key=lambda row: row[4]):
        first.setdefault(number, sums)
    assert {number: first[number] for number in ends} == ends
    assert (found.windows["wrong"], found.windows["missing"]) == (0, 0)
    assert found.ledger["duplicated"] == 0


def test_idle_inputs_are_refused() -> None:
    """What is idle is told by a clock, and a batch is the same whenever it runs."""
    text = """
topology:
  a: {spout: keys, keys: 3, rate: 10/s}
  count:
    bolt: windowed_count
    from: {a: {fields: [key]}}
    service: 1 ms
    window: {length: 5 s, by: event, idle_after: 5 s}
strategy: {kind: micro_batch}
run: {duration: 20 s}
"""
    with pytest.raises(ScenarioError, match="leave idle_after out"):
        load_text(text)
