"""What must hold between the time of day at which a run begins and the rest of a scenario."""

from __future__ import annotations

from collections.abc import Iterator

from tideover.models.job.arrivals.day import Day
from tideover.models.job.components import SpoutConfig
from tideover.scenarios.draft import Draft
from tideover.scenarios.errors import Problem


def check(draft: Draft) -> Iterator[Problem]:
    """Problems of ``run.starts_at`` and ``run.fails_at``, if all components could be built."""
    if draft.run is None or any(config is None for config in draft.topology.values()):
        return
    spouts = [config for config in draft.topology.values() if isinstance(config, SpoutConfig)]
    for key in ("starts_at", "fails_at"):
        if getattr(draft.run, key) is None:
            continue
        if spouts and not any(isinstance(config.arrivals, Day) for config in spouts):
            message = "has no effect: the load follows the time of day only with arrivals: {kind: day, …}"
            yield draft.problem(message, "run", key)
        elif key == "fails_at" and not any(f is None or f.at is not None for f in draft.failures):
            message = "needs a failure with at, which is then at this time of day; or give starts_at"
            yield draft.problem(message, "run", key)
