"""A sink whose readers see at once what is put out."""

from __future__ import annotations

from tideover.models.job.sinks.base import SINKS, Sink


@SINKS.register("direct")
class DirectSink(Sink):
    """Readers see what leaves the topology as it leaves. They know a window by its number, and keep the first
    of those that come twice; a tuple that comes twice they count twice.
    """
