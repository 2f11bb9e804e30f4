"""The ranking of J.-H. Hwang et al., ICDE 2005: what three ways to stand by cost, and how fast they recover.

    sentences (50/s) ──▶ split ──▶ count, in windows of 30 s. At 85 s the host of the count crashes, which is
noticed 1 s later. 220 words come each second; who sends words again takes 1 ms for each.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.simulation import simulate

STANDBYS: dict[str, dict[str, Any]] = {
    "active_standby": {},
    "passive_standby": {"checkpoint_interval": 5000 * MS, "checkpoint_time": MS, "checkpoint_cost": MS // 10},
    "upstream_backup": {},
}
"""From the one that recovers fastest to the one that costs least."""


class Measured(NamedTuple):
    """Times in s; what it costs is that of a run without failures."""

    recovery: float
    cpu: float
    bytes: float


@cache
def measured(kind: str) -> Measured:
    by_marker = {"length": 30_000 * MS, "trigger": "marker"}
    topology = {
        "sentences": spout("sentences", 20),
        "split": bolt("split_words", {"sentences": "shuffle"}, 0.5),
        "count": bolt("windowed_count", {"split": "shuffle"}, 0.2, window=by_marker),
    }
    keys = STANDBYS.get(kind, {}) | ({"replay_cost": MS} if kind in STANDBYS else {})
    crash = fault("crash_host", 85_000, host=2, detection=1000, restart=20_000)
    failing, quiet = (simulate(world(topology, kind, faults, 130_000, **keys)) for faults in ((crash,), ()))
    assert failing.windows == {"emitted": 4, "correct": 4, "wrong": 0, "missing": 0} or kind == "none"
    took = failing.recoveries[0]["time_to_recover_s"] or 1e9
    return Measured(took, quiet.cost["cpu_s"], quiet.cost["network_bytes"])


def test_the_faster_it_recovers_the_more_it_costs() -> None:
    """Recovery: active < passive < upstream; CPU and network the other way round."""
    active, passive, upstream = (measured(kind) for kind in STANDBYS)
    assert active.recovery < passive.recovery < upstream.recovery
    assert active.cpu > passive.cpu > upstream.cpu
    assert active.bytes > passive.bytes > upstream.bytes


def test_how_long_each_takes_follows_from_what_comes_again() -> None:
    """Active: until detection, and next to nothing more, for the count, which is the last, has nothing in its
    queue. Passive: the words since the checkpoint of 80 (that of 85 does not come, as the fault is first)
    until 86. Upstream: those since the window ended at 60. Each takes 1 ms; what comes during the replay is
    soon done.
    """
    active, passive, upstream = (measured(kind).recovery for kind in STANDBYS)
    words = 4.4 * 50
    assert active == pytest.approx(1, abs=0.05)
    assert passive == pytest.approx(1 + 6 * words * 0.001, rel=0.06)
    assert upstream == pytest.approx(1 + 26 * words * 0.001, rel=0.06)


def test_what_each_costs() -> None:
    """Beside doing nothing. Upstream backup: no CPU at all, and each second at most five messages of 64 B.
    Passive standby: 26 checkpoints of either bolt, of 1 ms, and 0.1 ms for each of 19 words (the first after
    a window has fewer, if any). Active standby: all work twice.
    """
    none = measured("none")
    active, passive, upstream = (measured(kind) for kind in STANDBYS)
    assert upstream.cpu == none.cpu
    assert 0 < upstream.bytes - none.bytes <= 130 * 5 * 64
    assert passive.cpu - none.cpu == pytest.approx(26 * (1 + 1 + 19 * 0.1) / 1000, rel=0.05)
    assert active.cpu == pytest.approx(2 * none.cpu)


def test_deltas_cost_less_where_little_changes() -> None:
    """10,000 keys, of which 100 a second come: a full checkpoint each 500 ms has all that have come in the
    window, a delta the 50 since the last.
    """
    topology = {
        "s": spout("keys", 10, keys=10_000),
        "count": bolt("windowed_count", {"s": "shuffle"}, 0.2, window={"length": 60_000 * MS}),
    }
    full, delta, none = (
        simulate(world(topology, kind, (), 59_000, **keys)).cost["network_bytes"]
        for kind, keys in (
            ("passive_standby", {"checkpoint_interval": 500 * MS}),
            ("passive_standby", {"checkpoint_interval": 500 * MS, "delta": True}),
            ("none", {}),
        )
    )
    assert delta - none == pytest.approx(5900 * 64, rel=0.02)
    assert full - none > 20 * (delta - none)
