"""Source replay: its settings, and timeouts that strike though nothing was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from tideover.models.acking import Acking
from tideover.models.advice import timeouts
from tideover.models.strategies.base import KeyPath, Promise
from tideover.sim.units import MS, Duration, Size

if TYPE_CHECKING:
    from tideover.models.advice.plan import Plan


class SourceReplaySettings(Acking):
    """Of the acker, and of the spout's map of pending roots."""

    promise: ClassVar[Promise] = "at least once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task"})
    roles: ClassVar[frozenset[str]] = frozenset({"acker"})
    counts_tuples: ClassVar[tuple[str, ...]] = ("max_spout_pending",)
    spouts_wait: ClassVar[tuple[str, ...]] = ("max_spout_pending",)
    gives_up: ClassVar[tuple[str, ...]] = ("message_timeout",)
    per_tuple: ClassVar[frozenset[str]] = frozenset({"ack_cost"})

    message_timeout: Annotated[Duration, Field(ge=MS, description="distance of two rotations")] = 30 * 10**9
    timeout_buckets: Annotated[int, Field(ge=2, le=64, description="buckets of the spout's rotating map")] = 2
    timeout_phase: Annotated[
        Duration | None, Field(description="first rotation after the spout's start; random if not given")
    ] = None
    acker_buckets: Annotated[int, Field(ge=2, le=64, description="buckets of the acker's rotating map")] = 3
    acker_host: Annotated[
        int | None, Field(ge=0, description="host of the acker; none: it fails only if it is named")
    ] = None
    ack_size: Annotated[Size, Field(description="bytes of an ack message")] = 20
    max_spout_pending: Annotated[int | None, Field(ge=1, description="most roots pending per spout task")] = (
        None
    )

    @property
    def acker_at(self) -> int | None:  # type: ignore[override]
        return self.acker_host

    def cycle(self) -> tuple[int, int] | None:
        return None if self.timeout_phase is None else (self.timeout_phase, self.message_timeout)

    def named_hosts(self) -> dict[KeyPath, int]:
        return {} if self.acker_host is None else {("acker_host",): self.acker_host}

    def remarks(self, plan: Plan) -> list[str]:
        timeout, least = self.message_timeout, self.message_timeout * (self.timeout_buckets - 1)
        return [
            *timeouts.windows(plan, "message_timeout", timeout, least, self.ack_cost),
            *timeouts.held(plan, least),
        ]
