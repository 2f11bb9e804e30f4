"""A run of a size that cannot be simulated is refused before it begins."""

from __future__ import annotations

import numpy as np
import pytest

import tideover
from tideover.models.job.arrivals import Periodic, Poisson
from tideover.models.runtime.spout_task import MOST
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_text
from tideover.sim.draws import Draws
from tideover.sim.units import MAX_PERIOD, MAX_RUN, MIN_RATE

WORLD = """\
topology:
  s: {spout: keys, rate: 1/s}
  b: {bolt: forward, from: {s: shuffle}, service: 1 ms}
strategy: none
links: {latency: 1 ms}
run: {duration: 60 s}
"""
GROWING = (
    "arrivals: {kind: day, peak: 1/s, by_hour: [" + ",".join("1" * 24) + "], growth: 1000 %, months: 1200}"
)
LOG = "source: {kind: log, partitions: 2}"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("60 s", "1001 d", "6: run.duration: must be at most 1000 d, not '1001 d'"),
        ("rate: 1/s", "rate: 0.0099/d", "2: topology.s.rate: '0.0099/d': a rate must be between 0.01/d"),
        ("rate: 1/s", "pause: 101 d", "2: topology.s: has a call every 101 d; at most 100 d are allowed"),
        ("rate: 1/s", GROWING, "2: topology.s.arrivals: grows beyond all numbers"),
        ("rate: 1/s", "rate: 1e9/s", "2: topology.s: emits about 6e+10 tuples"),
        ("60 s}", "60 s, lump_rate: 0.01/d}", "6: run.lump_rate: lets one tuple stand for 8.64e+06; at most"),
        ("60 s}", "60 s, lump: 1000000, seed: 2}", None),
        ("rate: 1/s}", "rate: 1/h, parallelism: 1}", None),
        ("1 ms}\nstrategy", "1 ms, parallelism: 1024, hosts: [0]}\nstrategy", "names 1 hosts for 1024 tasks"),
        ("service: 1 ms", "service: 9999 d", "3: topology.b: leaves work for 6.1e+05 d and more in a run"),
        ("service: 1 ms", "service: {kind: exponential, mean: 9999 d}", "3: topology.b: leaves work for"),
        ("latency: 1 ms", "latency: 1 ms, deserialise_cost: 10 d", "2: topology.s: leaves work for"),
        ("keys, rate", "values, values: [9223372036854775807, 1], rate", "values add up to more than"),
        ("keys, rate", "values, repeat: true, values: [1000000000001], rate", "values add up to more than"),
        ("b: {bolt", "b: {tuple_size: 1073741823 GiB, bolt", "3: topology.b: sends 7.0e+19 bytes"),
    ],
)  # fmt: skip
def test_the_size_of_a_run_is_limited(old: str, new: str, said: str | None) -> None:
    """spout -> bolt, 60 tuples in 60 s; each change alone leaves what int64 or a day's patience holds."""
    assert WORLD.count(old) == 1
    text = WORLD.replace(old, new)
    if said is None:
        load_text(text)
        return
    with pytest.raises(ScenarioError) as refused:
        load_text(text)
    assert said in str(refused.value)


def test_a_long_run_has_to_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """1000 d are 8.64e9 slots, of 120 B each if something happens all the time; with a call in 10 h it is
    near 2,400 calls. A machine of 64 GB has room for one of them.
    """
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 10**6, "SC_PAGE_SIZE": 64_000}.get)
    long = WORLD.replace("60 s", "1000 d")
    with pytest.raises(ScenarioError, match=r"6: run.duration: .* needs 1,037 GB .* has 64 GB"):
        load_text(long)
    assert load_text(long.replace("1/s", "0.1/h"))


def test_so_many_pairs_of_tasks_do_not_fit() -> None:
    """1024 x 1024 pairs fit; with six replicas each they do not."""
    wide = WORLD.replace("1/s}", "1/s, parallelism: 1024}").replace("1 ms}\ns", "1 ms, parallelism: 1024}\ns")
    load_text(wide)
    with pytest.raises(ScenarioError, match=r"3: topology.b: makes 6,291,456 pairs of tasks"):
        load_text(wide.replace("strategy: none", "strategy: {kind: active_replication, k: 5}"))


@pytest.mark.parametrize("arrivals", [Periodic(rate=MIN_RATE), Poisson(rate=MIN_RATE)])
def test_the_rarest_calls_stay_in_the_range_of_time(arrivals: Periodic | Poisson) -> None:
    """As many as are worked out at a time, from the end of the longest run on: they rise."""
    n = arrivals.at_once(MOST)
    assert 1 < n < MOST
    calls = arrivals.next_calls("s.0", Draws(1), MAX_RUN, 0, n)
    assert (np.diff(calls, prepend=MAX_RUN) > 0).all()


@pytest.mark.parametrize("strategy", ["none", "source_replay"])
def test_a_call_in_a_hundred_days(strategy: str) -> None:
    """A call every 100 d in a run of a minute: 0 or 1 tuples, by the offset; and the run ends."""
    arrivals = f"arrivals: {{kind: constant, pause: {MAX_PERIOD}ns, offset: 0 s}}"
    text = WORLD.replace("rate: 1/s", arrivals).replace("none", strategy)
    result = tideover.run(load_text(text))
    assert result.to_dict()["ledger"]["emitted"] == 0
