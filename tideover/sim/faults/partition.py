"""The network between two sets of hosts is cut."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tideover.sim.faults.base import FAULTS, LinkFault, Target


@FAULTS.register("partition")
class Partition(LinkFault):
    """For ``duration`` nothing passes between the two sides: ``messages`` wait, as TCP's do, or are lost, as
    Storm's workers drop what they cannot send (`Client` of its Netty transport).

    Both sides live on. If a detector listens on the other side, it does not hear the processes of these
    hosts, and takes them for dead after its timeout. Acks, checkpoints and requests are not held up. Bailis
    and Kingsbury: *The network is reliable*, CACM 57, 2014.
    """

    messages: Annotated[
        Literal["hold", "lose"],
        Field(description="what becomes of tuples on the way, and sent meanwhile; control messages wait"),
    ] = "hold"

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.cut(outage, self.between, self.messages == "lose")
