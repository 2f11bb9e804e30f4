"""The failure-free twin: its windows are those of the same run without failures."""

from __future__ import annotations

import pytest

from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig, Links, SpoutConfig
from tideover.models.simulation import simulate
from tideover.sim.distributions.exponential import Exponential

Window = tuple[str, int, int]
LATENCIES = {"none": ms(0), "constant": ms(3), "jitter": Exponential(mean=3 * MS)}


def sentences(grouping: str, latency: str, marked: bool) -> Scenario:
    """s x 2 ──shuffle──▶ split x 2 ──▶ count x 3, windows of 20 ms; a task of count loses its state at 55,
    one at 131 ms. ``marked``: a second count reads the sentences, over windows that markers end.
    """
    window = {"length": 20 * MS}
    topology: dict[str, SpoutConfig | BoltConfig] = {
        "s": spout("sentences", gap=1.3, offset=None, parallelism=2),
        "split": bolt("split_words", {"s": "shuffle"}, Exponential(mean=MS // 3), parallelism=2),
        "count": bolt("windowed_count", {"split": grouping}, 0.1, parallelism=3, window=window),
    }
    if marked:
        topology["all"] = bolt("windowed_count", {"s": "global"}, window={**window, "trigger": "marker"})
    failures = [fault("lose_state", at, component="count", task=task) for at, task in ((55, 0), (131, 2))]
    links = Links(latency=LATENCIES[latency], local=LATENCIES[latency])
    return world(topology, "none", failures, 205, links=links)


def windows(scenario: Scenario) -> dict[Window, dict[int, int]]:
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    return {(name, task, number): sums for name, task, _, number, _, sums in trace.windows}


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("grouping", ["fields", "direct", "global", "shuffle"])
def test_a_window_is_right_if_the_run_without_failures_has_it(
    grouping: str, latency: str, marked: bool
) -> None:
    """Nothing is replayed, so nothing but the sums differs between the two runs; whatever owns the keys, and
    however long the wires are: these decide how the twin counts.
    """
    scenario = sentences(grouping, latency, marked)
    found, truth = windows(scenario), windows(scenario.model_copy(update={"failures": ()}))
    right = sum(truth[window] == sums for window, sums in found.items())
    assert found.keys() == truth.keys()
    assert right < len(found)
    audited = simulate(scenario).windows
    assert audited == {"emitted": len(found), "correct": right, "wrong": len(found) - right, "missing": 0}


@pytest.mark.parametrize("latency", LATENCIES)
def test_a_burst_of_acks_longer_than_a_window_moves_no_tuple_to_the_next(latency: str) -> None:
    """s ──fields──▶ count x 2: some five tuples a window of 20 ms, an ack takes 5 ms. Nothing fails: all
    windows are right. A twin that let its next tick wait for the acks would count what has arrived meanwhile.
    """
    topology: dict[str, SpoutConfig | BoltConfig] = {
        "s": spout("keys", gap=2, offset=0, keys=5),
        "count": bolt("windowed_count", {"s": "fields"}, 0.1, parallelism=2, window={"length": 20 * MS}),
    }
    links = Links(latency=LATENCIES[latency], local=LATENCIES[latency])
    late = world(topology, "source_replay", (), 400, links=links, message_timeout=5000 * MS, ack_cost=5 * MS)
    audited = simulate(late).windows
    assert audited["emitted"] > 0
    assert audited["correct"] == audited["emitted"]
