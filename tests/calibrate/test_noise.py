"""Batches that are put off come out as if they had been simulated longer."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calibrate.test_faults import TRUE, killed, steady_episode
from tideover.calibrate.counterpart import noisy, simulated
from tideover.calibrate.episodes import Batches


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
    assert (
        run.batches.triggered[run.batches.visible < run.failed_s][-1] > run.failed_s
    )  # run again, seen before
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
