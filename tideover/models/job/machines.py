"""Machines: what a host of the cluster is."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import Field

from tideover.sim.registry import Part
from tideover.sim.units import Bandwidth


class MachineType(Part):
    """A sort of machine, and how many there are of it. What is left out has no limit."""

    count: Annotated[int, Field(ge=1, le=100_000, description="how many there are")]
    cores: Annotated[
        int | None, Field(ge=1, le=1024, description="cores that its tasks share; default: one for each task")
    ] = None
    nic: Annotated[
        Bandwidth | None,
        Field(description="bandwidth of its network card, in and out each; default: no limit"),
    ] = None
    slots: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="most tasks that it takes; default: no limit")
    ] = None
    price: Annotated[
        float | None,
        Field(ge=0, le=1e9, allow_inf_nan=False, description="of one for an hour, in any currency"),
    ] = None


class Host(NamedTuple):
    """One machine. None: no limit, or (type, price) nothing known.

    number   from 0, in the order of the types
    rack     number of its rack, from 0
    cores    that its tasks share
    nic      bandwidth of its card, in and out each (bytes/s)
    slots    most tasks that it takes
    price    per hour
    reserve  it takes no task until another host has failed
    """

    number: int
    type: str | None = None
    rack: int = 0
    cores: int | None = None
    nic: int | None = None
    slots: int | None = None
    price: float | None = None
    reserve: bool = False
