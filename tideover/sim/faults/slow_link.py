"""The links between two sets of hosts are slow for a while."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from tideover.sim.faults.base import FAULTS, LinkFault, Target


@FAULTS.register("slow_link")
class SlowLink(LinkFault):
    """Messages between the two sides take ``latency_factor`` times as long on the wire, and each card that
    they go through is busy with them for ``transfer_factor`` times as long.

    A congested switch, a detour, a cable that loses packets (H. Gunawi et al.: *Fail-slow at scale*, FAST
    2018, has them all). It holds for what comes to the wire, or to a card, within ``duration``; what is there
    goes on as it was, and nothing overtakes. Of several at once the greatest factor holds. Acks, heartbeats
    and requests take no time all the same.
    """

    latency_factor: Annotated[
        float, Field(ge=1, le=1_000_000, description="how many times as long the latency is, e.g. 10")
    ] = 1.0
    transfer_factor: Annotated[
        float,
        Field(
            ge=1,
            le=1_000_000,
            description="how many times as long a message takes in a network card (nic), e.g. 10: a tenth of "
            "the bandwidth",
        ),
    ] = 1.0

    @model_validator(mode="after")
    def _is_slow(self) -> SlowLink:
        if max(self.latency_factor, self.transfer_factor) == 1:
            raise ValueError("nothing is slow: give latency_factor or transfer_factor, more than 1")
        return self

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return super().aimed_at(component, host) | {"latency_factor": 10.0}

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.slow_links(outage, self.between, (self.latency_factor, self.transfer_factor))
