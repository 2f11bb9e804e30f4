"""How many replications: a number, or as many as it takes until an interval is narrow enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tideover.scenarios.sweeps.recipe import Fixed

if TYPE_CHECKING:
    import pyarrow as pa

Wanted = list[tuple[int, int]]
"""For each point from which replication up to which."""


def rounds(replications: Fixed, points: int, estimates: Callable[[str], pa.Table]) -> Iterator[Wanted]:
    """What is to be done, round by round; ``estimates`` of a metric are asked for when a round is over."""
    yield [(0, replications.least)] * points
