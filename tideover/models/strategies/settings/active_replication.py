"""Active replication: its settings, the replicas that they ask for, and where these fail together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from tideover.models.advice.replicas import side_by_side
from tideover.models.strategies.base import KeyPath, Promise, Strategy
from tideover.sim.units import Bandwidth, Duration, Size

if TYPE_CHECKING:
    from tideover.models.advice.plan import Plan


class ReplicationSettings(Strategy):
    """How many replicas of what, and what it takes to copy one."""

    promise: ClassVar[Promise] = "exactly once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host"})
    after_failures: ClassVar[frozenset[str]] = frozenset({"copy_time", "copy_bandwidth"})

    k: Annotated[
        int, Field(ge=0, le=15, description="hosts of a replica set that may be down; k + 1 replicas")
    ] = 1
    components: Annotated[
        tuple[str, ...] | None, Field(description="bolts that are replicated; all if not given")
    ] = None
    copy_time: Annotated[
        Duration, Field(description="time for a replica that comes back to begin its copy")
    ] = 0
    copy_bandwidth: Annotated[
        Bandwidth | None, Field(description="speed at which state is copied; unlimited if not given")
    ] = None
    entry_size: Annotated[Size, Field(description="bytes of an entry of the state that is copied")] = 64

    def replicas(self, component: str) -> int:
        return self.k + 1 if self.components is None or component in self.components else 1

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        k = given.get("k")
        return k + 1 if type(k) is int else 1

    def named_bolts(self) -> dict[KeyPath, str]:
        return {("components", i): name for i, name in enumerate(self.components or ())}

    def remarks(self, plan: Plan) -> list[str]:
        return side_by_side(plan, f"k = {self.k}")
