"""A sink that writes in transactions of a broker."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tideover.models.job.sinks.base import SINKS, Sink, Terms
from tideover.sim.units import Duration

BROKERS_LIMIT = 900 * 10**9
"""``transaction.max.timeout.ms`` of a Kafka broker, if nothing else is set (ns)."""


@SINKS.register("transactional")
class TransactionalSink(Sink):
    """Readers see what leaves the topology when the transaction is committed that it was written in.

    So do Flink's KafkaSink with ``EXACTLY_ONCE`` (TwoPhaseCommitSinkFunction, KafkaCommitter), for consumers
    that read ``read_committed``: P. Carbone et al., *State Management in Apache Flink*, PVLDB 10(12), 2017,
    section 4.
    """

    transaction_timeout: Annotated[
        Duration,
        Field(gt=0, description="a transaction that is open for longer is aborted by the broker"),
    ] = BROKERS_LIMIT
    commit_time: Annotated[
        Duration,
        Field(
            description="from when a transaction is to be committed until readers see it: its task is told, "
            "and the broker commits"
        ),
    ] = 100_000_000

    @property
    def terms(self) -> Terms:
        return Terms(self.transaction_timeout, self.commit_time)
