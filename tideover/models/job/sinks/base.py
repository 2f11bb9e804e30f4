"""Sinks: how what leaves the topology comes to its readers."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from tideover.sim.registry import Part, Registry

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
