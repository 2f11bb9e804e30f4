"""The reference: a plain SimPy program that moves one tuple at a time, and that the engine must equal.

``run(scenario, replication)`` gives the ``Trace``. Nothing here is shared with the engine except what is
pure: the configuration, the draws, the distributions and the moments of a spout's calls.

How to read it: ``layout`` says what depends on no clock (places, identities, contents), ``tasks`` is one
queue and one server per task, ``program`` sets them going. The strategies stand in ``acks``, ``buffers``,
``replicas``, ``snapshots`` and ``batches`` (with ``executors``, ``rehearsal`` and ``starting_anew``).
"""

from .program import run
from .trace import Trace

__all__ = ["Trace", "run"]
