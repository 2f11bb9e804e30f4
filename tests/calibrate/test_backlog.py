"""A batch takes all rows created up to its trigger, and they are out when it ends: what follows from that."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.calibrate import episodes
from tideover.calibrate.episodes import BacklogCurve


def batches(duration, rate=1000.0, interval=1.0, until=60.0, silent=None):
    """Outputs of batches triggered every ``interval``; none come out in ``silent`` = (from, to)."""
    triggers = np.arange(1, int(until / interval)) * interval
    outputs = triggers + duration
    if silent is not None:
        out = (outputs < silent[0]) | (outputs >= silent[1])
        triggers, outputs = triggers[out], outputs[out]
    return BacklogCurve(outputs, rate * triggers, (np.array([0.0, until]), np.array([0.0, rate * until])))


@given(st.floats(0.01, 0.99), st.floats(1, 1e5), st.floats(0.1, 5))
def test_latency_is_uniform_over_the_interval(share, rate, interval):
    duration = share * interval
    found = batches(duration, rate, interval, until=40 * interval).latencies(10 * interval, 30 * interval)
    at = np.quantile(found, [0, 0.5, 0.95, 1])
    assert at == pytest.approx(duration + interval * np.array([0, 0.5, 0.95, 1]), abs=1e-3 * interval)


@given(st.floats(0.01, 0.99), st.floats(20, 40), st.floats(1.5, 10))
def test_gap_holds_the_outage(duration, failed, down):
    seen = batches(duration, silent=(failed, failed + down))
    last = seen.outputs[seen.outputs < failed][-1]
    first = seen.outputs[seen.outputs > failed][0]
    assert episodes.output_gap(seen, failed, 60.0) == pytest.approx(first - last)
    assert first - last >= down


def test_gap_that_the_end_cuts_off_is_not_counted():
    seen = batches(0.3, silent=(30.0, 99.0))
    assert episodes.output_gap(seen, 30.0, 60.0) is None
    assert episodes.catch_up(seen, 10.0, 30.0, 60.0) is None


@given(st.floats(0.1, 0.9), st.floats(0.0, 0.99), st.integers(2, 8))
def test_one_large_batch_catches_up_at_its_end(duration, phase, missed):
    """The batch after the outage takes everything: its output is the end of the catch-up."""
    failed = 30 + phase
    seen = batches(duration, silent=(failed, failed + missed))
    first = seen.outputs[seen.outputs > failed][0]
    assert episodes.catch_up(seen, 10.0, failed, 60.0) == pytest.approx(first - failed)


@given(st.floats(0.1, 0.9), st.floats(20, 40))
def test_nothing_lost_is_nothing_to_catch_up_with(duration, failed):
    assert episodes.catch_up(batches(duration), 10.0, failed, 60.0) == 0.0


@given(st.floats(0.1, 0.9), st.floats(20, 40))
def test_what_comes_much_later_is_not_caught_up_with(duration, failed):
    """Ten seconds after the fault the rate is doubled, and with it the backlog: not the fault's doing."""
    plain = batches(duration)
    moments = np.array([0.0, failed + 10, 60.0])
    created = np.array([0.0, 1000 * (failed + 10), 1000 * (failed + 10) + 2000 * (50 - failed)])
    done = np.interp(plain.outputs - duration, moments, created)
    seen = BacklogCurve(plain.outputs, done, (moments, created))
    assert episodes.catch_up(seen, 10.0, failed, 60.0) == 0.0


def test_catch_up_waits_for_slow_batches():
    """After the outage the batches are late by 2 s, 1 s, 0.5 s, and then as they were."""
    triggers = np.arange(1.0, 50.0)
    late = np.zeros(49)
    late[30:33] = (2.0, 1.0, 0.5)
    seen = BacklogCurve(
        triggers + 0.3 + late, 100 * triggers, (np.array([0.0, 50.0]), np.array([0.0, 5000.0]))
    )
    found = episodes.catch_up(seen, 5.0, 30.5, 50.0)
    assert found == pytest.approx(33.8 - 30.5)  # of the third late batch, the last of them


def test_nothing_new_is_no_output():
    """A batch that runs again, and the slower of two queries, tell nothing new."""
    moments, rows = episodes.new_outputs(np.array([1.0, 3.0, 2.0, 1.5, 4.0]), np.array([10, 30, 20, 10, 30]))
    assert moments.tolist() == [1.0, 2.0, 3.0]
    assert rows.tolist() == [10, 20, 30]


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 1000)), max_size=30))
def test_outputs_rise(pairs):
    moments, rows = episodes.new_outputs(np.array([m for m, _ in pairs]), np.array([r for _, r in pairs]))
    assert (np.diff(moments) >= 0).all()
    assert (np.diff(rows) > 0).all()
    assert (rows[-1] if len(rows) else 0) == max((r for _, r in pairs), default=0)
