"""The fit of faults finds, from output gaps and catch-up times alone, what the runs were made with."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from tests.calibrate import campaigns
from tideover.calibrate import comparison
from tideover.calibrate import fits as fitting
from tideover.calibrate.comparison import correctness, fit, pairs, ranking, timelines
from tideover.calibrate.counterpart import Faults, predicted, simulated
from tideover.calibrate.episodes import BacklogCurve, Fault, episodes
from tideover.calibrate.fits import fit_costs

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


@pytest.mark.parametrize("kind", sorted(TRUE))
def test_what_was_put_in_is_found(kind):
    made = [killed(kind, 12.1), killed(kind, 12.6)]
    known = [e for e, _ in made]
    found = fitting.fit_faults(known, {e.condition: c for e, c in made}, np.random.default_rng(1), silent)
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
    episode, costs = killed("kill_driver", 12.3)
    found = fitting.fit_faults([episode], {episode.condition: costs}, np.random.default_rng(1), silent)
    assert found["micro_batch", "kill_driver"].cold_identified is (cold_s > 0)


def test_comparison_tells_errors_and_intervals():
    plain, _ = steady_episode()
    kills = [killed("kill_driver", at, number=i)[0] for i, at in enumerate((12.1, 12.6), 1)]
    unseen = killed("kill_driver", 12.4, held_out=True, number=4)[0]
    known = [plain, *kills, unseen]
    fits = fit(known, 1, silent)
    table = pairs(known, fits, silent)
    assert set(table["measure"]) == set(plain.figures()) | set(fitting.MEASURES)
    held = table[table["held_out"]]
    assert (held["error"].abs() < 0.1).all()
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
    found = fitting.fit_faults([episode], {episode.condition: costs}, np.random.default_rng(1), silent)
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
