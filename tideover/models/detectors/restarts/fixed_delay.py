"""Always the same delay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from tideover.models.detectors.restarts.base import RESTARTS, Earlier, RestartStrategy
from tideover.sim.units import Duration


@RESTARTS.register("fixed_delay")
class FixedDelay(RestartStrategy):
    """Each restart waits for ``delay``; after ``attempts`` of them there is no other.

    Apache Flink, ``restart-strategy.type: fixed-delay``.
    """

    delay: Annotated[Duration, Field(description="how long each restart waits")] = 10**9
    attempts: Annotated[int | None, Field(ge=0, description="most restarts; default: any number")] = None

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        if self.attempts is not None and len(earlier) >= self.attempts:
            return None
        return self.delay
