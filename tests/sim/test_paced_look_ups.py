"""Look-ups that wait for one another, as speeds."""

from __future__ import annotations

import pytest

from tideover.sim.look_ups import wait


@pytest.mark.parametrize(("servers", "around"), [(8, 4), (8, 8), (100, 20)])
def test_a_store_that_is_full_serves_one_after_the_other(servers: int, around: float) -> None:
    """Law: n that go round in c + w, with an operation of 1 each, are served once each in n."""
    assert around + wait(servers, servers / around, 1, 1) >= servers
