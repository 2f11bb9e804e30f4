"""What passes by itself, and nobody notices: partitions, pauses, and what is slow, or down, for a while.

Scenarios name them, `Supervisor` lets them strike. A new kind is a class that says what it does in `begin`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from tideover.sim.faults import (
    FAULTS,
    Draft,
    Found,
    HostFault,
    LinkFault,
    PassingFault,
    StoreFault,
    Target,
    TaskFault,
)
from tideover.sim.registry import setting


@FAULTS.register("partition")
class Partition(LinkFault):
    """For ``duration`` nothing passes between the two sides: ``messages`` wait, as TCP's do, or are lost, as
    Storm's workers drop what they cannot send (`Client` of its Netty transport).

    Both sides live on. If a detector listens on the other side, it does not hear the processes of these
    hosts, and takes them for dead after its timeout. Acks, checkpoints and requests are not held up. Bailis
    and Kingsbury: *The network is reliable*, CACM 57, 2014.
    """

    messages: Literal["hold", "lose"] = setting(
        "what becomes of tuples on the way, and sent meanwhile; control messages wait", "hold"
    )

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.cut(outage, self.between, self.messages == "lose")

    def problems(self, draft: Draft) -> Iterator[Found]:
        yield from super().problems(draft)
        if self.messages == "lose":
            if draft.strategy is not None and not draft.strategy.loses_messages:
                why = f"{draft.strategy.kind} counts on links that lose nothing"
                yield ("messages",), f"{why}: leave it out, and messages wait"
            elif draft.bounded:
                yield ("messages",), "does not go with bounded queues: this is not simulated"


@FAULTS.register("pause")
class Pause(PassingFault, TaskFault):
    """The task's process does nothing for ``duration``, and then goes on where it was: SIGSTOP and SIGCONT.

    It keeps all it has; what arrives meanwhile waits in its queue. Nobody notices, unless it is silent for
    longer than a detector's timeout: then it counts as dead, and another process takes its place. Under
    ``micro_batch`` it is the executor that is stopped.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.pause(victim, outage)


@FAULTS.register("slow_host")
class SlowHost(HostFault, PassingFault):
    """Each core of the host works at ``factor`` of its speed for ``duration``; then all is as before.

    A neighbour on the same machine, a throttled processor, a failing disk. Nothing is lost, and nobody
    notices. Spouts keep their beat. If several hold at once, the slowest does. Under ``micro_batch`` tasks
    run in executors, and are not slower.
    """

    example: ClassVar[dict[str, Any]] = {"factor": 0.5}

    factor: Annotated[float, Field(gt=0, lt=1, description="part of its speed that a core has, e.g. 0.5")]

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.slow_down(self.host, outage, self.factor)


@FAULTS.register("slow_link")
class SlowLink(LinkFault):
    """Messages between the two sides take ``latency_factor`` times as long on the wire, and each card that
    they go through is busy with them for ``transfer_factor`` times as long.

    A congested switch, a detour, a cable that loses packets (H. Gunawi et al.: *Fail-slow at scale*, FAST
    2018, has them all). It holds for what comes to the wire, or to a card, within ``duration``; what is there
    goes on as it was, and nothing overtakes. Of several at once the greatest factor holds. Acks, heartbeats
    and requests take no time all the same.
    """

    example: ClassVar[dict[str, Any]] = {"latency_factor": 10.0}

    latency_factor: float = setting("how many times as long the latency is, e.g. 10", 1.0, ge=1, le=1_000_000)
    transfer_factor: float = setting(
        "how many times as long a message takes in a network card (nic), e.g. 10: a tenth of the bandwidth",
        1.0,
        ge=1,
        le=1_000_000,
    )

    @model_validator(mode="after")
    def _is_slow(self) -> SlowLink:
        if max(self.latency_factor, self.transfer_factor) == 1:
            raise ValueError("nothing is slow: give latency_factor or transfer_factor, more than 1")
        return self

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.slow_links(outage, self.between, (self.latency_factor, self.transfer_factor))

    def problems(self, draft: Draft) -> Iterator[Found]:
        yield from super().problems(draft)
        cards = any(machine.nic is not None for machine in getattr(draft.hosts, "machines", {}).values())
        if self.transfer_factor > 1 and not cards:
            yield ("transfer_factor",), "has no effect: no machine has a network card (hosts.machines.….nic)"


@FAULTS.register("slow_store")
class SlowStore(StoreFault, PassingFault):
    """Requests that begin within ``duration`` take ``factor`` times as long; the one in service goes on as it
    was. Of several that hold at once the newest does.
    """

    factor: float = setting("how many times as long a request takes", 10.0, gt=1, le=1e6)

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.slow_store(victim, outage, self.factor)


@FAULTS.register("store_down")
class StoreDown(StoreFault, PassingFault):
    """For ``duration`` requests wait; one that was in service is made again, and begins anew. What has been
    written is kept.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.stop_store(victim, outage)
