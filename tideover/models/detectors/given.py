"""Each fault says how long it takes."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.detectors.base import DETECTORS, Detector
from tideover.models.runtime.job import Job
from tideover.models.runtime.watch import Watch


@DETECTORS.register("given")
class Given(Detector):
    """Each fault's own ``detection`` and ``restart``: what a scenario without ``detector`` has."""

    by_fault: ClassVar[bool] = True

    def watch(self, job: Job) -> Watch:
        return Watch()
