"""Who runs the bolts, if they do not run tuple by tuple in processes of their own."""

from __future__ import annotations

from tideover.models.runtime.views import BoltView, OutageView


class Runner:
    """A mechanism that runs bolts in batches is their runner (``job.runner``)."""

    def paused(self, task: BoltView, outage: OutageView) -> None:
        """A fault stops ``task`` until the outage's end."""

    def busy_since(self, task: BoltView) -> int | None:
        """Since when ``task`` runs in a batch (ns); None: it does not run now."""
        return None
