"""The speed at which servers share cores on average."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tideover.sim.sharing import even_speed


@pytest.mark.parametrize(
    ("capacity", "work", "speed"),
    [
        (2.0, (1.0, 1.0, 10.0), 1.0),
        (1.0, (1.0, 1.0, 10.0), 0.8),
        (1.0, (10.0, 0.0, 10.0), 0.5),
        (0.3, (10.0, 10.0, 10.0), 0.1),
        (0.0, (10.0, 0.0), 0.0),
        (1.0, (), 1.0),
    ],
)
def test_who_has_little_to_do_leaves_the_rest(capacity: float, work: Sequence[float], speed: float) -> None:
    """In 10 ns: what is left when the others are done goes to those that have more; none is faster than 1."""
    assert even_speed(capacity, 1.0, work, 10.0) == pytest.approx(speed)
