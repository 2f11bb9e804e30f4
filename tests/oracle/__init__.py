"""The reference: a plain SimPy program that moves one tuple at a time, and that the engine must equal.

``run(scenario, replication)`` gives the ``Trace``. Nothing here is shared with the engine except what is
pure: the configuration, the draws, the distributions and the moments of a spout's calls. ``judge`` gives the
``Figures`` of a run besides: what is said of its recoveries, latencies, windows and costs.

How to read it: ``layout`` says what depends on no clock (places, identities, contents), ``channels`` what is
on its way, ``lines`` who has to wait with it, ``tasks`` is one queue (``entrances``) and one server each
(``bolts``, ``spouts``; what they know in ``states``), ``program`` sets them going. ``record`` and ``outages``
note what happens, ``windows`` and ``figures`` make the figures of it, ``comparison`` holds them against the
engine's. The strategies stand in ``acks`` (with ``rotating_map``), ``buffers``, ``replicas``, ``snapshots``
and ``batches`` (with ``executors``, ``rehearsal`` and ``starting_anew``). Random worlds are made in
``random_worlds``, of what ``random_topologies``, ``random_windows`` and ``random_parameters`` draw;
``random_settings`` and others change something about them.
"""

from .figures import Figures
from .program import judge, run
from .trace import Trace

__all__ = ["Figures", "Trace", "judge", "run"]
