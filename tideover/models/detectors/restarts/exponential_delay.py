"""Delays that grow while failures follow one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, model_validator

from tideover.models.detectors.restarts.base import RESTARTS, Earlier, RestartStrategy
from tideover.sim.units import Duration, S, format_duration


@RESTARTS.register("exponential_delay")
class ExponentialDelay(RestartStrategy):
    """The first restart waits for ``initial``, each one after it ``factor`` times as long, at most ``most``.

    Once it has run for ``reset_after`` without a failure, the next restart is a first one. Apache Flink,
    ``restart-strategy.type: exponential-delay``, with its defaults, without jitter.
    """

    initial: Annotated[Duration, Field(gt=0, description="how long the first restart waits")] = S
    factor: Annotated[float, Field(ge=1, le=1000, description="by which each wait is longer")] = 1.5
    most: Annotated[Duration, Field(gt=0, description="longest wait; at least initial")] = 60 * S
    reset_after: Annotated[
        Duration, Field(gt=0, description="time without a failure after which waits begin anew")
    ] = 3600 * S

    @model_validator(mode="after")
    def _in_order(self) -> ExponentialDelay:
        if self.initial > self.most:
            longest = format_duration(self.most)
            raise ValueError(
                f"initial ({format_duration(self.initial)}) must not be longer than most ({longest})"
            )
        return self

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        in_a_row, later = 0, noticed
        for one in reversed(earlier):
            if later - one.ready >= self.reset_after:
                break
            in_a_row, later = in_a_row + 1, one.noticed
        delay = float(self.initial)
        for _ in range(in_a_row):
            delay = min(delay * self.factor, self.most)
        return round(delay)
