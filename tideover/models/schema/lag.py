"""What a result says of queues before spouts."""

from __future__ import annotations

from dataclasses import replace

from tideover.models.schema.columns import Column, count

LAG = replace(
    count("lag", "records before spouts that are not read as the second begins", "roots"), optional=True
)
"""Of a second."""

DRAINED = (
    replace(
        count(
            "max_lag",
            "most records before spouts that were not read as a second began, from the failure until the "
            "queues were drained, or the end; where spouts read from queues",
            "roots",
            record=("max_lag",),
            label="greatest lag",
        ),
        optional=True,
    ),
    Column(
        "drain_s",
        "from the failure until the first second with which the lag is what it would have been without "
        "failures (a quarter more at most), and stays so for 4 s; where spouts read from queues",
        "s",
        undefined="it was not by the end of the run",
        record=("drain_s",),
        label="time to drain the queues",
        optional=True,
    ),
)
"""Of a recovery."""
