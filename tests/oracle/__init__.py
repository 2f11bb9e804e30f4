"""The reference: a plain SimPy program that moves one tuple at a time, and that the engine must equal.

``run(scenario, replication)`` gives the ``Trace``. Nothing here is shared with the engine except what is
pure: the configuration, the draws, the distributions and the moments of a spout's calls. ``judge`` gives the
``Figures`` of a run besides: what is said of its recoveries, latencies, windows and costs.

How to read it: ``layout`` says what depends on no clock (places, identities, contents), ``channels`` what is
on its way and who has to wait with it, ``tasks`` is one queue and one server each (``bolts``, ``spouts``),
``program`` sets them going. ``record`` notes what happens, ``windows`` and ``figures`` make the figures of
it, ``comparison`` holds them against the engine's. ``protocol`` is all that a strategy may do; the
strategies stand in ``acks``, ``storm``, ``buffers``, ``standbys``, ``replicas``, ``snapshots``,
``changelogs``, ``batches`` (on ``executors``) and ``trident``; each registers itself, and says what its
settings are in random worlds. What failures do is in ``faults``. Random worlds are made in ``random_worlds``
(of ``making``); ``random_changes`` and ``random_clusters`` change something about them.
"""

from .figures import Figures
from .program import judge, run
from .record import Trace

__all__ = ["Figures", "Trace", "judge", "run"]
