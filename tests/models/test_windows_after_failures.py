"""Windows that slide, or go by event, after a failure: those of a run in which nothing fails."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.operators.window import Window
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES

S = 1000 * MS
DISORDER = (0, 300, -200, 600, 0, -400, 100)
"""Events (ms) before or after their place in the order of arrival; no more than the lag apart."""

EVENT = {"by": "event", "length": S, "lag": 1200 * MS, "watermark_interval": 250 * MS}
ENDED_ALIKE = {
    "event": EVENT,
    "sliding by event": EVENT | {"length": 2 * S, "slide": S},
    "session": EVENT | {"length": None, "gap": 150 * MS},
    "sliding by marker": {"length": 2 * S, "slide": S, "trigger": "marker"},
}
EXACTLY_ONCE: list[tuple[str, dict[str, Any]]] = [
    ("passive_standby", {"checkpoint_interval": 700 * MS}),
    ("active_standby", {}),
    ("upstream_backup", {"ack_interval": 700 * MS}),
    ("micro_batch", {"trigger_interval": 700 * MS}),
    ("micro_batch", {"trigger_interval": 700 * MS, "recovery": "lineage"}),
    ("micro_batch", {"trigger_interval": 700 * MS, "recovery": "replay"}),
    ("batch_rerun", {"trigger_interval": 700 * MS}),
    ("trident", {"spout": "opaque", "state": "opaque", "batch_interval": 700 * MS, "message_timeout": S}),
    ("trident", {"spout": "transactional", "state": "transactional", "message_timeout": S}),
    ("changelog", {"guarantee": "exactly_once", "commit_interval": 700 * MS}),
]


def counted(window: dict[str, Any], strategy: str, failures: tuple[Any, ...] = (), **keys: Any) -> Scenario:
    """numbers (each its own bit, one every 100 ms from 100 ms on) -> pass on (1 ms) -> count (1 ms)."""
    stamps = tuple(max(0, 100 * (i + 1) + DISORDER[i % len(DISORDER)]) * MS for i in range(60))
    topology = {
        "numbers": spout("values", 100, values=tuple(1 << i for i in range(60)), stamps=stamps),
        "pass": bolt("forward", {"numbers": "fields"}, ms(1)),
        "count": bolt("windowed_count", {"pass": "fields"}, ms(1), window=Window(**window)),
    }
    return world(topology, strategy, failures, 9000, **keys)


def contents(run: Replication) -> dict[int, dict[int, int]]:
    """{number of the window: the sums that its readers see first}."""
    assert run.trace is not None
    found: dict[int, dict[int, int]] = {}
    for *_, number, _, sums in sorted(run.trace.windows, key=lambda row: row[4]):
        found.setdefault(number, sums)
    return found


@pytest.mark.parametrize(("at", "who"), [(2031, "pass"), (3777, "count")])
@pytest.mark.parametrize(
    ("strategy", "keys", "window"),
    [
        (strategy, keys, window)
        for strategy, keys in EXACTLY_ONCE
        for window in ENDED_ALIKE
        if set(window.split()) & {"event", "session", "sliding"} <= STRATEGIES[strategy].windows
    ],
)
def test_they_are_those_of_a_run_without_failures(
    strategy: str, keys: dict[str, Any], window: str, at: int, who: str
) -> None:
    """What puts a tuple into a window is what it carries (its event, or the number of the marker before it),
    and not when it comes. So if no event is late, what is worked on again falls where it fell before, a
    window that is put out again is as it was, and each tuple is in as many windows as it would have been.
    Spouts that replay call later: a root may be behind another marker then, in the run's reference too.
    """
    crash = fault("crash_task", at, component=who, detection=150, restart=400, while_down="hold")
    found = simulate(counted(ENDED_ALIKE[window], strategy, (crash,), **keys), trace=True)
    quiet = simulate(counted(ENDED_ALIKE[window], strategy, **keys), trace=True)
    assert len(contents(quiet)) > 3
    assert found.windows == quiet.windows
    assert (found.windows["wrong"], found.windows["missing"]) == (0, 0)
    if "event" in ENDED_ALIKE[window].values():
        assert contents(found) == contents(quiet)
    assert (found.ledger["lost"], found.ledger["duplicated"], found.ledger["late"]) == (0, 0, 0)
