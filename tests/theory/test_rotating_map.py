"""The law behind the 60 s of source replay, and what is told of it."""

from __future__ import annotations

import numpy as np
import pytest

from tideover.reports.published import papers


def recovery(at: float, into: float, timeout: float, phase: float = 0.0, buckets: int = 2) -> float:
    """Seconds until a windowed count that lost its state at ``at``, ``into`` its window, has caught up: for
    a window as long as the timeout T, a constant rate, and no network. The map of B buckets rotates at
    ``phase`` + k T; b is the first rotation at or after the failure: B T if one fell inside (window start,
    failure], else (b - failure) + (B - 1) T + into.
    """
    since = (at - phase) % timeout
    return buckets * timeout if since < into else timeout - since + (buckets - 1) * timeout + into


def replayed_one_by_one(start: float, at: float, timeout: float, phase: float, buckets: int) -> float:
    """The same root by root: failed by the rotation that drops its bucket, served in turn."""
    period = 0.01
    emitted = np.arange(start + period / 2, at, period)
    rotation = np.ceil((emitted - phase) / timeout) + buckets - 1
    served = -np.inf
    for failed in phase + rotation * timeout:
        served = max(served + period, failed)
    return served + period - at


@pytest.mark.parametrize("into", [0.5, 5.0, 15.0, 30.0])
@pytest.mark.parametrize("timeout", [10.0, 30.0])
def test_with_the_papers_phase_it_is_always_two_timeouts(into, timeout):
    into = into * timeout / 30
    assert recovery(3 * timeout + into, into, timeout) == pytest.approx(2 * timeout)


def test_the_law_is_what_a_rotating_map_does():
    rng = np.random.default_rng(3)
    for _ in range(200):
        timeout, buckets = float(rng.choice([10.0, 30.0])), int(rng.choice([2, 3]))
        start, into, phase = 4 * timeout, rng.uniform(0.1, timeout), rng.uniform(0, timeout)
        law = recovery(start + into, into, timeout, phase, buckets)
        one_by_one = replayed_one_by_one(start, start + into, timeout, phase, buckets)
        assert law == pytest.approx(one_by_one, abs=0.03)


def test_the_last_sentence_says_the_law():
    told = papers()["stableford-phase2"]["findings"]
    assert len(told) == 5
    assert f"= {recovery(75.0, 15.0, 30.0):g} s, whatever f is" in told[-1]
