"""State in the memory of the task."""

from __future__ import annotations

from tideover.models.job.backends.base import BACKENDS, Backend


@BACKENDS.register("memory")
class Memory(Backend):
    """A map in the task's memory; an access costs next to nothing."""
