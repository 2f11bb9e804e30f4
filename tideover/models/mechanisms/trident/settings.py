"""What Trident's spouts and states are, when batches begin and fail, and what their steps take."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tideover.sim.registry import Part
from tideover.sim.units import MS, Duration, S

Kind = Literal["non_transactional", "transactional", "opaque"]


class TridentSettings(Part):
    """First the two that decide what is exact; then the steps of a batch, in their order."""

    spout: Annotated[
        Kind,
        Field(
            description="what is read again when a batch has failed: transactional: the same; opaque: "
            "what is there, each tuple in one committed batch; non_transactional: what is there, nothing is "
            "written down of what was read"
        ),
    ] = "opaque"
    state: Annotated[
        Kind,
        Field(
            description="what is stored: non_transactional: the value; transactional: the transaction's "
            "number too; opaque: this, and the value before it"
        ),
    ] = "opaque"
    failed_batches: Annotated[
        Literal["emitted_again", "lost"],
        Field(description="what a non_transactional spout does with the tuples of a batch that failed"),
    ] = "emitted_again"
    batch_interval: Annotated[
        Duration,
        Field(ge=MS, description="least distance of two batches (topology.trident.batch.emit.interval)"),
    ] = 500 * MS
    max_spout_pending: Annotated[
        int,
        Field(ge=1, le=10_000, description="batches that are under way at once (topology.max.spout.pending)"),
    ] = 1
    message_timeout: Annotated[
        Duration,
        Field(ge=MS, description="a batch that is not done fails after one to two of these"),
    ] = 30 * S
    metadata_time: Annotated[
        Duration,
        Field(
            description="time to write down what a transaction reads: a transactional spout before it "
            "emits, an opaque one while it commits"
        ),
    ] = 0
    task_time: Annotated[
        Duration, Field(description="time of a task for each batch, besides its tuples' service")
    ] = 0
    state_time: Annotated[Duration, Field(description="time of a task to update its store")] = 0
    state_cost: Annotated[Duration, Field(description="the same, for each key that the batch has")] = 0
    commit_time: Annotated[
        Duration,
        Field(description="from the last update until the coordinator has marked the batch as committed"),
    ] = 0

    def cycle(self) -> tuple[int, int] | None:
        return self.batch_interval, self.batch_interval
