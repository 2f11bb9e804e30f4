"""The network between two sets of hosts is cut."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from tideover.sim.faults.base import FAULTS, Fault, Target
from tideover.sim.units import Duration


@FAULTS.register("partition")
class Partition(Fault):
    """For ``duration`` nothing passes between the ``hosts`` and all others: messages wait, as TCP's do.

    Both sides live on. If a detector listens on the other side, it does not hear the processes of these
    hosts, and takes them for dead after its timeout. Acks, checkpoints and requests are not held up. Bailis
    and Kingsbury: *The network is reliable*, CACM 57, 2014.
    """

    kills: ClassVar[bool] = False

    hosts: Annotated[
        tuple[int, ...], Field(min_length=1, description="numbers of the hosts that are cut off")
    ]
    duration: Annotated[Duration, Field(gt=0, description="for how long, e.g. 30 s")]

    @model_validator(mode="after")
    def _ends_by_itself(self) -> Partition:
        if self.detection or self.restart:
            raise ValueError("a partition is not detected and ends by itself: give duration alone")
        return self

    @property
    def where(self) -> str:
        return f"hosts {', '.join(map(str, self.hosts))}"

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"hosts": (host,)}

    @property
    def lasts(self) -> int:
        return self.duration

    def victims(self, target: Target) -> list[Any]:
        found = {victim: None for host in self.hosts for victim in target.tasks_on(host)}
        return sorted(found, key=lambda victim: int(victim.number))

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.cut_off(victim, outage, self.hosts)
