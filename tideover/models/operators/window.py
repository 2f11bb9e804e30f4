"""When a stateful bolt puts out what it knows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tideover.sim.registry import Part
from tideover.sim.units import MS, Duration


class Window(Part):
    """A tumbling window: ``length`` of time, ended by a tick or by a marker that the spouts send; or a
    number of ``tuples``.
    """

    length: Annotated[Duration | None, Field(description="length in time, e.g. 30 s")] = None
    tuples: Annotated[int | None, Field(ge=1, le=10**9, description="length in tuples")] = None
    trigger: Annotated[
        Literal["tick", "marker"],
        Field(description="what ends a window of time: the task's clock, or the spouts' marker"),
    ] = "tick"

    @model_validator(mode="after")
    def _one_length(self) -> Window:
        if (self.length is None) == (self.tuples is None):
            raise ValueError("give either length (a duration) or tuples (a number)")
        if self.length is not None and self.length < MS:
            raise ValueError("length must be at least 1 ms")
        if self.tuples is not None and self.trigger == "marker":
            raise ValueError("a window of tuples ends by itself: trigger does not go with tuples")
        return self
