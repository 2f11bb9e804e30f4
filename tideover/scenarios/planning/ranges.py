"""Ranges of values: ``{from: 5 s, to: 300 s, steps: 9, scale: log}``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from tideover.scenarios import swept
from tideover.scenarios.nodes import Node
from tideover.scenarios.part_builder import PartBuilder
from tideover.sim.registry import Part


class Range(Part):
    from_: Annotated[Any, Field(description="the first value")]
    to: Annotated[Any, Field(description="the last value")]
    steps: Annotated[int, Field(ge=2, le=1000, description="how many values")]
    scale: Annotated[Literal["linear", "log"], Field(description="log: equal quotients")] = "linear"


def spaced(builder: PartBuilder, node: Node, key: str) -> list[Node]:
    """The values of a range; none if there was a problem."""
    found = builder.part(Range, node, key)
    if found is None:
        return []
    unit = swept.unit_of([found.from_, found.to])
    first, last = (swept.number(one, unit) for one in (found.from_, found.to))
    space = np.geomspace if found.scale == "log" else np.linspace
    numbers = space(first, last, found.steps).tolist()
    if unit:
        return [node.like(swept.written(float(f"{one:.4g}"), unit)) for one in numbers]
    whole = all(isinstance(one, int) for one in (first, last))
    values = [round(float(one)) if whole else float(f"{one:.4g}") for one in numbers]
    return [node.like(one) for one in dict.fromkeys(values)]
