"""Restarts until failures come too often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from tideover.models.detectors.restarts.base import RESTARTS, Earlier, RestartStrategy
from tideover.sim.units import Duration, S


@RESTARTS.register("failure_rate")
class FailureRate(RestartStrategy):
    """Each restart waits for ``delay``, unless more than ``most_failures`` were noticed ``within`` a span.

    Apache Flink, ``restart-strategy.type: failure-rate``, with its defaults.
    """

    delay: Annotated[Duration, Field(description="how long each restart waits")] = S
    most_failures: Annotated[int, Field(ge=1, le=10**9, description="most failures in the span")] = 1
    within: Annotated[Duration, Field(gt=0, description="the span")] = 60 * S

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        recent = sum(noticed - one.noticed < self.within for one in earlier)
        return self.delay if recent < self.most_failures else None
