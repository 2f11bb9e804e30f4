"""One simulated tuple that stands for several: the fluid limit stays, counts are in real tuples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.models.loaded import log_and_job
from tideover.cli.output import announce
from tideover.models.coarsening import coarsened, coarseness, finest
from tideover.models.results import Result
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.sim.units import MS

OUTAGE = {"at": "30 s", "detection": "20 s", "restart": "5 s", "while_down": "hold"}


def scenario(*settings: str) -> Any:
    """log -> job, at 900/s and a capacity of 2000/s; the job is down from 30 s to 55 s, and the log waits."""
    run = {"duration": "200 s", "warmup": "5 s"}
    return log_and_job({"rate": "900/s"}, {"service": "0.5 ms"}, [OUTAGE], settings=settings, **run)


def told(*settings: str) -> dict[str, Any]:
    found = scenario(*settings)
    return Result(found, [simulate(found)]).to_dict()


@pytest.mark.parametrize("lump", [2, 6, 60])
def test_halving_the_lump_changes_catch_up_by_less_than_one_percent(lump: int) -> None:
    """Down for D = 25 s, the backlog r D drains at C - r: catch-up is D + r D / (C - r) = 45.45 s."""
    whole, half = (told(f"run.lump={n}")["recoveries"][0]["catch_up_s"] for n in (lump, lump // 2))
    assert whole == pytest.approx(half, rel=0.01)
    assert whole == pytest.approx(25 + 900 * 25 / (2000 - 900), rel=0.01)


def test_results_are_in_real_tuples() -> None:
    """900/s for 200 s are 180,000 tuples of 256 B and 0.5 ms each, however coarse they are simulated."""
    one, many = told(), told("run.lump=60")
    for key in ("emitted", "completed"):
        assert many["ledger"][key] == pytest.approx(one["ledger"][key], abs=2 * 60)
        assert many["ledger"][key] % 60 == 0
    for key in ("cpu_s", "network_bytes"):
        assert many["cost"][key] == pytest.approx(one["cost"][key], rel=0.001)
    assert many["throughput_per_s"]["mean"] == pytest.approx(900, rel=0.001)
    assert many["throughput_per_s"]["max"] == pytest.approx(one["throughput_per_s"]["max"], rel=0.03)
    backlog = max(row["backlog"] for row in simulate(scenario("run.lump=60")).timeline)
    assert backlog == pytest.approx(900 * 25, rel=0.01)


@pytest.mark.parametrize(("rate", "lump"), [(900, 9), (901, 10), (5, 1)])
def test_the_lump_follows_the_rate(rate: int, lump: int) -> None:
    assert coarseness(scenario("run.lump_rate=100/s", f"topology.log.rate={rate}/s")) == lump


def test_what_a_tuple_costs_is_multiplied_and_what_it_does_not_cost_is_not() -> None:
    costs = "replay_cost: 2 ms, replay_rate: 90/s, restore_cost: 3 ms"
    rsm = f"strategy={{kind: rsm, checkpoint_interval: 5 s, {costs}}}"
    pulled = "topology.log={spout: keys, keys: 10, pause: 10 ms, emit_cost: 1 ms}"
    drawn = "topology.job.service={kind: lognormal, mean: 1 ms, cv: 2}"
    asked = "topology.job.service={kind: request, answer: 1 ms, timeout: 2 ms, limit: 300/s}"
    service = coarsened(scenario(asked), 3).topology["job"].service
    assert (service.answer.value, service.timeout, service.limit) == (3 * MS, 6 * MS, 100)
    found = coarsened(scenario(rsm, pulled, drawn), 3)
    strategy, arrivals = found.strategy, found.topology["log"].arrivals
    assert (strategy.replay_cost, strategy.replay_rate, strategy.restore_cost) == (6 * MS, 30, 3 * MS)
    assert (arrivals.pause, arrivals.emit_cost) == (30 * MS, 3 * MS)
    assert found.topology["job"].service.mean_ns == pytest.approx(3 * MS)
    assert found.topology["job"].service.cv == 2
    assert found.topology["job"].tuple_size == 3 * 256
    assert strategy.checkpoint_interval == scenario(rsm).strategy.checkpoint_interval


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["topology.job={bolt: windowed_count, from: {log: shuffle}, service: 1 ms, window: {tuples: 9}}"],
         "--set: run.lump: does not go with topology.job.window.tuples"),
        (["strategy={kind: source_replay, max_spout_pending: 9}"],
         "--set: run.lump: does not go with strategy.max_spout_pending"),
        (["run.lump_rate=10/s"], "give either lump (a number) or lump_rate"),
        (["run.lump=0"], "--set: run.lump: must be at least 1"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_lumps_is_refused(settings: list[str], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(*(["run.lump=2"] if settings != ["run.lump=0"] else []), *settings)
    assert says in str(caught.value)


def test_a_lag_window_shows_the_end_at_a_boundary_after_the_restart() -> None:
    """Ready at 55 s; over 20.45 s later, in the first window of 30 s (the third of 8 s, ends at 79 s).

    The window in which it was over and the one after it must pass: 25 + 2 * 30, or 25 + 8 * (2 + 2).
    """
    assert told("run.lag_window=30 s")["recoveries"][0]["catch_up_s"] == 25 + 60
    assert told("run.lag_window=8 s")["recoveries"][0]["catch_up_s"] == 25 + 32


def with_curve(folder: Path, *settings: str) -> Any:
    """The same with 600/s for 100 s, and 1200/s from then on."""
    (folder / "curve.csv").write_text("time_s,rate_per_s\n0,600\n100,1200\n")
    file = f"topology.log={{spout: keys, keys: 10, arrivals: {{kind: trace, file: {folder / 'curve.csv'}}}}}"
    return scenario(file, "failures=[]", *settings)


@pytest.mark.parametrize("settings", [["run.lump=6"], ["run.lump_rate=200/s"]])
def test_a_curve_of_rates_goes_with_lumps(tmp_path: Path, settings: list[str]) -> None:
    """600/s for 100 s and 1200/s for 100 s are 180,000 tuples, 6 to a lump (1200/s at most: 200/s of them);
    each tuple is 0.5 ms of work, so the job is busy for 90 s, however coarse it is simulated.
    """
    found = with_curve(tmp_path, *settings)
    assert coarseness(found) == 6
    run = simulate(found)
    assert run.ledger["emitted"] == pytest.approx(180_000, abs=6)
    assert run.cost["cpu_s"] == pytest.approx(90, abs=0.01)
    seconds = [row["throughput_per_s"] for row in run.timeline]
    assert seconds[50] == pytest.approx(600, abs=12)
    assert seconds[150] == pytest.approx(1200, abs=12)


def test_a_curve_can_be_scaled(tmp_path: Path) -> None:
    """Half of every rate, half of the tuples; the gap that stands for the load is of the highest rate."""
    half = with_curve(tmp_path, "topology.log.arrivals.scale=0.5")
    assert simulate(half).ledger["emitted"] == pytest.approx(90_000, abs=1)
    assert half.topology["log"].arrivals.mean_gap_ns == pytest.approx(1e9 / 600)


def test_lumps_are_recommended_only_where_they_are_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A note on a run that takes long names ``run.lump_rate``; whoever follows it is not refused. Where lumps
    are refused it is not named, and the refusal names keys of the scenario.
    """
    long = ("run.duration=100000 s", "run.replications=30")
    announce([with_curve(tmp_path, *long)])
    assert "run.lump_rate" in capsys.readouterr().err
    with_curve(tmp_path, *long, "run.lump_rate=200/s")
    pending = "strategy={kind: source_replay, max_spout_pending: 9}"
    announce([with_curve(tmp_path, *long, pending)])
    said = capsys.readouterr().err
    assert "this takes about" in said
    assert "lump" not in said
    with pytest.raises(ScenarioError) as caught:
        scenario("topology.log={spout: values, values: [1, 2], rate: 9/s}", "run.lump=2")
    assert "does not go with topology.log.values, which counts single tuples" in str(caught.value)


def test_latencies_that_lumps_cannot_tell_are_left_out() -> None:
    """log -> job at a load of 0.45, without a queue: each tuple takes its service, 0.5 ms, and one of a lump
    of 60 seems to take 30 ms: that is not told. In the outage of 25 s the first waits for 25 s, and that is.
    """
    one, many = told(), told("run.lump=60")
    assert one["latency_ms"]["median"] == pytest.approx(0.5, rel=0.01)
    assert {*many["latency_ms"].values(), *many["end_to_end_ms"].values()} == {None}
    assert any("nothing can be told" in said for said in many["warnings"])
    found = Result(scenario("run.lump=60"), [simulate(scenario("run.lump=60"))])
    (row,) = found.rows("runs")
    assert row["latency_p99_ms"] is None
    assert row["latency_p99_at_most_ms"] == pytest.approx(30, rel=0.01)
    assert "latency_p99_at_most_ms" not in Result(scenario(), [simulate(scenario())]).rows("runs")[0]
    seconds = {n: simulate(scenario(f"run.lump={n}")).timeline for n in (1, 60)}
    for part in ("latency", "end_to_end"):
        assert seconds[60][100][f"{part}_mean_ms"] is None
        assert seconds[60][100][f"{part}_max_ms"] is None
        coarse, fine = (seconds[lump][60][f"{part}_mean_ms"] for lump in (60, 1))
        assert coarse == pytest.approx(fine, rel=0.05)
    assert all(row[name] is not None for row in seconds[60] for name in ("backlog", "throughput_per_s"))


def test_a_lump_of_one_hides_nothing() -> None:
    assert finest(scenario()) == 0
