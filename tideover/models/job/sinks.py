"""Sinks: how what leaves the topology comes to its readers. One class a kind.

Strategies with transactions ask for terms; what they do by them is in `mechanisms/sink_transactions.py`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field

from tideover.sim.registry import Part, Registry
from tideover.sim.units import Duration

SINKS: Registry[Sink] = Registry("sink")


class Terms(NamedTuple):
    """What a broker grants a transaction (ns).

    timeout      so long after it was opened it is aborted, if it is not committed
    commit_time  from when it is to be committed until it is
    """

    timeout: int
    commit_time: int


class Sink(Part):
    """How what leaves the topology comes to its readers."""

    kind: ClassVar[str]

    @property
    def terms(self) -> Terms | None:
        """Of its transactions; None: it has none, readers see at once what is put out."""
        return None


@SINKS.register("direct")
class DirectSink(Sink):
    """Readers see what leaves the topology as it leaves. They know a window by its number, and keep the first
    of those that come twice; a tuple that comes twice they count twice.
    """


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
        Duration, Field(gt=0, description="a transaction that is open for longer is aborted by the broker")
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
