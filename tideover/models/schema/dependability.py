"""What a result says of how far a job can be relied on, and its detector."""

from __future__ import annotations

from tideover.models.schema.columns import Column, count


def dependability(failed_run: str) -> tuple[Column, ...]:
    """The columns of a run; ``failed_run``: what to say of one without figures."""
    return (
        Column(
            "availability",
            "part of the measured time outside of every time to recover",
            "ratio",
            undefined=f"nothing is measured after the warm-up, or {failed_run}",
            record=("dependability", "availability"),
            label="availability",
            pool="mean",
        ),
        count(
            "false_detections",
            "processes that lived, but that the detector took for dead and launched anew; with heartbeats",
            "processes",
            failed_run,
            record=("dependability", "false_detections"),
            label="false detections",
            pool="mean",
            optional=True,
        ),
    )
