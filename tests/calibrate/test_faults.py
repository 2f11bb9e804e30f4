"""Faults: the fit finds what the runs were made with, batches are put off, ``run`` says the same."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calibrate import campaigns
from tideover.calibrate import calibration, comparison, counterpart
from tideover.calibrate import fits as fitting
from tideover.calibrate.comparison import correctness, fit, pairs, ranking, timelines
from tideover.calibrate.counterpart import Faults, noisy, predicted, simulated
from tideover.calibrate.episodes import BacklogCurve, Batches, Fault, episodes, marked
from tideover.calibrate.fits import fit_costs
from tideover.models.simulation import simulate
from tideover.reports.columns import CALIBRATION

TRUE = {
    "kill_executor": Faults(detection_s=0.05, restart_s=1.9, executor_cold_s=2.1, state_cold_s=0.6),
    "kill_driver": Faults(detection_s=0.1, restart_s=8.0, cold_s=5.0),
}


@cache
def steady_episode(strategy="micro_batch"):
    tables = campaigns.steady(
        "s", (2000, 5000), lambda rows: 0.25 + 1e-5 * rows, length=34.0, strategy=strategy
    )
    found = episodes(tables)
    return found[1], fit_costs(found, np.random.default_rng(1))[found[0].condition].costs


def killed(kind, at, held_out=False, strategy="micro_batch", number=0):
    """An episode with a fault ``at`` s after its begin, whose backlog is the simulator's own."""
    episode, costs = _killed(TRUE[kind], kind, at, strategy)
    return replace(episode, held_out=held_out, number=number), costs


@cache
def _killed(truth, kind, at, strategy):
    plain, costs = steady_episode(strategy)
    struck = plain.begin_s + at
    detected = struck + truth.detection_s
    fault = Fault(kind, struck, detected_s=detected, ready_s=detected + truth.restart_s)
    episode = replace(plain, purpose="recovery", fault=fault)
    if kind == "kill_executor":
        episode = replace(episode, tasks=with_cold_tasks(episode, truth))
    run = simulated(episode, costs, truth)
    later = struck - run.failed_s
    seen, (moments, rows) = run.curve(), run.emitted
    curve = BacklogCurve(seen.outputs + later, seen.done, (moments + later, rows))
    return replace(episode, curve=curve), costs


def with_cold_tasks(episode, truth):
    """Executor 2 is new and reads for the first time; executor 1 has read before, and counts for the first
    time.
    """
    at = episode.fault.at_s
    rows = [
        campaigns.task_row("s", 1, "map", episode.begin_s, "1"),
        campaigns.task_row("s", 900, "reduce", at + 1, "1", truth.state_cold_s),
        campaigns.task_row("s", 901, "map", at + 3, "2", truth.executor_cold_s),
        campaigns.task_row("s", 902, "map", at + 6, "2"),
    ]
    return pd.concat([episode.tasks, pd.DataFrame(rows)], ignore_index=True)


def silent(done, what):
    pass


def fault_fits(*made):
    """The fits to episodes with their costs."""
    known = [episode for episode, _ in made]
    costs = {episode.condition: cost for episode, cost in made}
    return fitting.fit_faults(known, costs, np.random.default_rng(1), silent)


@pytest.mark.parametrize("kind", sorted(TRUE))
def test_what_was_put_in_is_found(kind):
    found = fault_fits(killed(kind, 12.1), killed(kind, 12.6))
    fitted, truth = found["micro_batch", kind], TRUE[kind]
    assert fitted.cold_identified is (truth.cold_s > 0)
    assert fitted.faults.detection_s == pytest.approx(truth.detection_s)
    assert fitted.faults.restart_s == pytest.approx(truth.restart_s)
    for name in ("executor_cold_s", "state_cold_s", "cold_s"):
        assert getattr(fitted.faults, name) == pytest.approx(getattr(truth, name), rel=0.1, abs=0.05), name
    unseen, costs = killed(kind, 12.47)
    measured, made_again = unseen.figures(), predicted(unseen, costs, fitted.faults)
    for measure in fitting.MEASURES:
        assert made_again[measure] == pytest.approx(measured[measure], rel=0.1), measure


@pytest.mark.parametrize("cold_s", [0.0, pytest.param(5.0, marks=pytest.mark.long)])
def test_a_cold_start_that_costs_nothing_is_not_told(cold_s, monkeypatch):
    monkeypatch.setitem(TRUE, "kill_driver", replace(TRUE["kill_driver"], cold_s=cold_s))
    found = fault_fits(killed("kill_driver", 12.3))
    assert found["micro_batch", "kill_driver"].cold_identified is (cold_s > 0)


def test_comparison_tells_errors_and_intervals():
    plain, _ = steady_episode()
    kills = [killed("kill_driver", at, number=i)[0] for i, at in enumerate((12.1, 12.6), 1)]
    unseen = killed("kill_driver", 12.4, held_out=True, number=4)[0]
    known = [plain, *kills, unseen]
    fits = fit(known, 1, silent)
    table = pairs(known, fits, silent)
    assert set(table["measure"]) == set(plain.figures()) | set(fitting.MEASURES)
    assert {*table} == {column.name for column in CALIBRATION["pairs"]}
    held = table[table["held_out"]]
    assert (held["error"].abs() < 0.1).all()
    # One rate and two kills: the fluid law's silence and catch-up are their geometric means.
    for row in held.to_dict("records"):
        mean = np.sqrt(np.prod([kill.figures()[row["measure"]] for kill in kills]))
        assert row["fluid_error"] == pytest.approx(mean / row["measured"] - 1, abs=0.02)
    assert table[table["purpose"] == "steady"]["fluid_error"].isna().all()
    assert ((held["low"] < held["measured"]) & (held["measured"] < held["high"])).all()
    ranks = ranking(table)
    assert ranks[["measured_rank", "simulated_rank"]].to_numpy().tolist() == [[1, 1]]
    shown = timelines(known, fits)
    assert set(shown["kind"]) == {"measured", "simulated"}
    assert (shown["episode"] == 4).all()  # what was held out is shown


def test_two_queries_hide_the_loss_of_one():
    """The sink keeps what comes first: after any kill of one query the outputs come as always."""
    for kind in TRUE:
        episode, _ = killed(kind, 12.3, strategy="active_replication")
        spacing = np.diff(episode.curve.outputs)
        assert episode.figures()["output_gap_s"] == pytest.approx(np.median(spacing), rel=0.05)
        alone, _ = killed(kind, 12.3)
        assert alone.figures()["output_gap_s"] > 1.5 * np.median(spacing)


def test_excess_is_told_beside_the_simulated_ledger():
    episode, _ = killed("kill_executor", 12.3)
    plain, _ = steady_episode()
    counts = campaigns.steady("s", (2000, 5000), lambda rows: 0.25)["episodes"].assign(
        missing=[0, 3], extra=0
    )
    episode = replace(episode, number=1)
    (row,) = correctness([plain, episode], counts, fit([plain, episode], 1, silent)).to_dict("records")
    assert (row["kills"], row["exact"], row["missing"], row["extra"]) == (1, 0, 3, 0)
    assert (row["simulated_lost"], row["simulated_duplicated"]) == (0, 0)


def test_the_other_query_tells_how_slow_it_was():
    """Its batches took 0.5 s before the kill; then, until all was back, 0.6 and 0.9 s; then 0.5 s again."""
    episode, costs = killed("kill_driver", 12.3, strategy="active_replication")
    at = episode.fault.at_s
    other = pd.DataFrame(
        {"start_s": at + np.array([-5.0, -4.0, -3.0, 1.0, 5.0, 9.0]), "sink_s": np.zeros(6), "end_s": 0.0}
    )
    other["sink_s"] = other["start_s"] + [0.5, 0.5, 0.5, 0.6, 0.9, 0.5]
    other["end_s"] = other["sink_s"]
    episode = replace(episode, other_batches=other)
    found = fault_fits((episode, costs))
    fitted = found["active_replication", "kill_driver"].faults
    assert fitted.slowdown == pytest.approx(np.sqrt(1.2 * 1.8))
    assert fitted.noise == pytest.approx(np.log(1.8 / 1.2) / 2)


def test_a_quicker_batch_has_got_further_when_it_is_struck():
    """Struck 0.3 s after its start: a batch twice as quick would be where this one is after 0.6 s. Between
    two batches there is none.
    """
    idle, _ = killed("kill_executor", 12.3)
    busy = replace(idle, fault=replace(idle.fault, in_batch_s=0.3))
    assert comparison._struck_later(busy, np.log(2)).fault.at_s == pytest.approx(busy.fault.at_s + 0.3)
    assert comparison._struck_later(idle, np.log(2)) == idle


def batches(triggered, lasted, commit=0.0, rate=100.0):
    """Batches that take all rows created up to their trigger."""
    triggered = np.asarray(triggered, float)
    visible = triggered + lasted
    return Batches(triggered, visible, visible + commit, rate * triggered)


@pytest.mark.parametrize("more", [0.1, 0.3, 0.9])
def test_longer_batches_are_as_simulated(more):
    """A second to a trigger, 0.45 s to a batch: with 0.9 s more each starts when the one before is done.
    (Rows cost nothing here: those that a late batch takes besides would cost more.)
    """
    episode, costs = steady_episode()
    costs = replace(costs, row_s=0.0)
    plain = simulated(episode, costs).batches
    moments, rows = plain.delayed(np.full(len(plain.done), more), 1.0, episode.rate_per_s)
    slow = simulated(episode, replace(costs, output_s=costs.output_s + more)).batches
    n = min(len(moments), len(slow.visible))
    assert n > 5
    lump = episode.rate_per_s / 40
    assert moments[:n] == pytest.approx(slow.visible[:n])
    assert rows[:n] == pytest.approx(slow.done[:n], abs=2 * lump)


def test_a_late_batch_puts_off_those_that_wait_for_it():
    """1.6 s instead of 0.6 s: the next starts at 2.7 s instead of 2 s, the one after it at 3.4 s, then 4."""
    plain = batches([1, 2, 3, 4, 5], 0.6, commit=0.1)
    moments, rows = plain.delayed(np.array([1.0, 0, 0, 0, 0]), 1.0, 100.0)
    assert moments == pytest.approx([2.6, 3.3, 4.0, 4.7, 5.6])
    assert rows == pytest.approx([100, 270, 340, 410, 500])


def test_an_early_batch_lets_the_waiting_one_begin_at_its_trigger():
    """The second has waited for the first until 2.5 s; if that is done at 1.9 s, it begins at 2 s."""
    plain = batches([1, 2.5, 3.1], [1.5, 0.6, 0.6])
    moments, _ = plain.delayed(np.array([-0.6, 0, 0]), 1.0, 100.0)
    assert moments == pytest.approx([1.9, 2.6, 3.6])


@given(st.lists(st.floats(0.1, 3.0), min_size=1, max_size=20))
def test_without_delay_nothing_moves(lasted):
    plain = batches(np.cumsum([1, *np.ceil(lasted[:-1])]), lasted)
    moments, rows = plain.delayed(np.zeros(len(lasted)), 1.0, 100.0)
    assert moments == pytest.approx(plain.visible)
    assert rows == pytest.approx(plain.done)


def test_longer_batches_are_as_noisy_as_the_measured_ones():
    plain = batches(np.arange(10_000), 0.5)
    z = np.random.default_rng(1).standard_normal(10_000)
    lasted = 0.5 + plain.extra_s(np.full(10_000, 1.2), np.full(10_000, 0.15), z)
    assert np.median(lasted) == pytest.approx(0.6, rel=0.02)
    assert np.log(lasted).std() == pytest.approx(0.15, rel=0.05)


def test_the_other_query_is_slower_until_the_restart():
    """Of two queries, one is killed; the batches of the other are half as long again until it is back, and
    the sink has nothing but those.
    """
    episode, costs = killed("kill_driver", 12.3, strategy="active_replication")
    run = simulated(episode, costs, replace(TRUE["kill_driver"], slowdown=1.5))
    seen, usual = run.curve(), run.other_batches.median_s()
    lasted = seen.outputs - np.floor(seen.outputs)  # triggers are at whole seconds
    truth = TRUE["kill_driver"]
    restarted = run.failed_s + truth.detection_s + truth.restart_s
    held_up = (np.floor(seen.outputs) > run.failed_s) & (np.floor(seen.outputs) < restarted)
    assert held_up.sum() == 8
    assert lasted[held_up] == pytest.approx(1.5 * usual, rel=0.01)
    assert lasted[seen.outputs < run.failed_s][3:] == pytest.approx(usual, rel=0.01)


@pytest.mark.parametrize("after_output", [0.005, 0.02])
def test_rows_that_are_read_again_are_not_created_again(after_output):
    """A driver dies between output and commit, and its batch is run again: the sink has seen it, and the
    other query has no more to do than before.
    """
    episode, costs = killed("kill_driver", 12.3, strategy="active_replication")
    batch = simulated(episode, costs).batches
    at = episode.begin_s + 12 + batch.median_s() + after_output
    episode, _ = killed("kill_driver", at - episode.begin_s, strategy="active_replication")
    run = simulated(episode, costs, TRUE["kill_driver"])
    seen_before = run.batches.visible < run.failed_s
    assert run.batches.triggered[seen_before][-1] > run.failed_s  # run again
    assert episode.figures()["catch_up_s"] == 0
    outputs = run.curve().outputs
    after = outputs[outputs > run.failed_s]
    assert (run.curve().backlog(after) <= 1.01 * episode.rate_per_s * batch.median_s() + 100).all()


def test_noise_decides_what_hangs_by_a_hair():
    """With batches of the other query nearly long enough to be noticed, some ways are, and some are not."""
    episode, costs = killed("kill_driver", 12.3, strategy="active_replication")
    costs = replace(costs, noise=0.1)
    faults = replace(TRUE["kill_driver"], slowdown=1.6, noise=0.3)
    ways = noisy(episode, costs, faults, np.random.default_rng(1))
    late = [way["catch_up_s"] > 0 for way in ways]
    assert 0.1 < np.mean(late) < 0.95
    again = noisy(episode, costs, faults, np.random.default_rng(1))
    assert ways == again


@pytest.mark.parametrize("kind", ["kill_executor", "kill_driver"])
@pytest.mark.parametrize("at", [12.05, 12.3, 12.8])
def test_run_and_calibrate_tell_the_same_catch_up_and_gap(kind, at):
    """The scenario of an episode, run by itself, beside what the calibration predicts of it. A backlog falls
    when results are out; ``run`` sees that at the next boundary of its slots of 10 ms.
    """
    episode, costs = killed(kind, at)
    told = counterpart.predicted(episode, costs, TRUE[kind])
    (row,) = simulate(counterpart.scenario(episode, costs, TRUE[kind])).recoveries
    assert told["catch_up_s"] > 1
    late = row["catch_up_s"] - told["catch_up_s"]
    assert 0 <= late <= 0.01
    assert row["output_gap_s"] == pytest.approx(told["output_gap_s"], abs=1e-6)


@pytest.mark.parametrize(("behind", "says"), [(0.0, True), (0.8, True), (1.2, False), (20.0, False)])
def test_a_query_that_has_not_caught_up_is_known_before_its_fault(behind, says):
    """Batches as long as their interval of 1 s leave the rows of 2 s, just before an output; these leave
    those of ``behind`` s more. What comes after the fault says nothing of it.
    """
    episode, _ = killed("kill_driver", 12.3)
    outputs = np.arange(3.0, episode.end_s)
    rate, emitted = episode.rate_per_s, np.array([0.0, episode.end_s])
    seen = BacklogCurve(outputs, rate * (outputs - 1 - behind), (emitted, rate * emitted))
    until = outputs < episode.fault.at_s
    silent = BacklogCurve(outputs[until], seen.done[until], seen.emitted)
    assert [replace(episode, curve=curve).caught_up for curve in (seen, silent)] == [says, says]


def test_what_strikes_a_backlog_is_left_out_and_named(monkeypatch):
    """All is as without it, but that it is said, and that its counts are looked at."""
    plain, _ = steady_episode()
    kills = [killed("kill_executor", at, number=i)[0] for i, at in enumerate((12.1, 12.6), 1)]
    late, seen = kills[0].fault.at_s, kills[0].curve
    out = (seen.outputs < late - 5) | (seen.outputs > late)
    behind = BacklogCurve(seen.outputs[out], seen.done[out], seen.emitted)
    tables = campaigns.steady("s", (2000,) * 4, lambda rows: 0.25, length=34.0)
    found = [plain, *kills]
    made, one_behind = [], replace(kills[0], number=3, curve=behind)
    for every in (found, [*found, one_behind], [plain, one_behind]):
        monkeypatch.setattr(calibration, "episodes", lambda _, every=every: every)
        made.append(calibration.analyse(tables, silent))
    without, with_it, nothing_left = made
    assert any(said.endswith("too slow for its --pace, or was busy") for said in nothing_left.warnings)
    assert without.warnings == ()
    (said,) = with_it.warnings
    assert said.startswith("left out, as the rows of more than 3 triggers waited")
    assert said.endswith(": s/3")
    for name in ("pairs", "parameters", "timelines"):
        pd.testing.assert_frame_equal(with_it.frames[name], without.frames[name])
    assert [one.frames["correctness"]["kills"].tolist() for one in made[:2]] == [[2], [3]]
    busy = replace(kills[1], others_cores=1.0)  # left out for a quiet kill, but not for one that is left out
    for other, says in ((kills[0], True), (replace(kills[0], curve=behind), False)):
        assert [one.disturbed for one in marked([other, busy])] == [False, says]


@pytest.mark.parametrize(
    ("executor", "stage", "result", "late"),
    [("1", "map", "TaskKilled", 1.7), ("1", "reduce", "TaskKilled", None), ("2", "reduce", "Success", 1.7)],
)
def test_a_worker_that_reads_is_told_from_its_executor(executor, stage, result, late):
    """A task that reads takes 1.7 s longer: on an executor that was there before if one was stopped on it,
    and on a new one if the process runs already.
    """
    episode, costs = killed("kill_executor", 12.3)
    at = episode.fault.at_s
    old = campaigns.task_row("s", 1, "map", episode.begin_s, "1")
    before = campaigns.task_row("s", 900, stage, at + 0.1, executor) | {"result": result}
    first = campaigns.task_row("s", 901, "map", at + 2, executor, 1.7)
    episode = replace(episode, tasks=pd.concat([episode.tasks, pd.DataFrame([old, before, first])]))
    assert episode.worker_again_s() == pytest.approx(late or np.nan, nan_ok=True)
    fitted = fault_fits((episode, costs))["micro_batch", "kill_executor"].faults
    assert fitted.worker_cold_s == pytest.approx(late or np.nan, nan_ok=True)
