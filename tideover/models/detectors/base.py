"""What a detector is."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.runtime.job import Job
from tideover.models.runtime.watch import Watch
from tideover.sim.registry import Part, Registry

DETECTORS: Registry[Detector] = Registry("detector")


class Detector(Part):
    """How failures are noticed, and what they hit is restarted.

    Subclasses register themselves with ``@DETECTORS.register(name)`` and give ``watch``, which does it in
    one simulation.
    """

    kind: ClassVar[str]
    by_fault: ClassVar[bool] = False
    """Whether each fault says itself how long detection and restart take."""

    each_alone: ClassVar[bool] = False
    """Whether it brings tasks back one by one: it does not go with a job that fails as one."""

    false_detections: ClassVar[bool] = False
    """Whether it launches what it takes for dead anew, as after a failure of the kind ``false_detection``."""

    @property
    def moves_tasks(self) -> bool:
        """Whether tasks may be restarted on other hosts than they were on."""
        return False

    def watch(self, job: Job) -> Watch:
        """Whoever notices and restarts in ``job``."""
        raise NotImplementedError
