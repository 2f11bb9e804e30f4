"""What a result says of snapshots of the whole job."""

from __future__ import annotations

from tideover.models.schema.columns import Column, Pool

_WHERE = "under `aligned_snapshots` with bounded queues"


def _time(name: str, label: str, meaning: str, pool: Pool = "mean") -> Column:
    return Column(
        name,
        f"{meaning}; {_WHERE}",
        "s",
        undefined="no snapshot was complete",
        record=("cost", name),
        label=label,
        pool=pool,
        optional=True,
    )


def snapshots(failed_run: str) -> tuple[Column, ...]:
    """The columns; ``failed_run``: what to say of a run without figures."""
    return (
        Column(
            "snapshots",
            f"complete snapshots of the job; {_WHERE}",
            "snapshots",
            "int64",
            failed_run,
            record=("cost", "snapshots"),
            label="snapshots",
            pool="mean",
            optional=True,
        ),
        _time("snapshot_s", "time of a snapshot", "mean time from a snapshot's trigger to its end"),
        _time("snapshot_max_s", "longest snapshot", "the longest of them", "max"),
        _time(
            "alignment_s",
            "alignment",
            "how long a task waited for a snapshot's barriers, from its first to its last; the longest of "
            "all tasks, mean over snapshots",
        ),
    )
