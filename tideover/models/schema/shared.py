"""What a record has besides where tasks share something: cores, cards, stores."""

from __future__ import annotations

from tideover.models.schema.columns import Column, at_top, text

SHARED_RECORD = at_top(
    Column(
        "complete_latency_ms",
        "from the emission of a root until all of its tree is acked, or, if nothing acks, until the measured "
        "component is done with it; of all replications, after the warm-up",
        "ms",
        label="Complete latency",
    ),
    Column(
        "resources",
        "which part of the time after the warm-up each task, and each of what tasks share, was busy, mean "
        "over replications, the busiest first",
        "ratio",
    ),
    Column(
        "flows",
        "what flows over each edge, mean over the replications and all of their time: messages and bytes per "
        "second, and bytes per second between hosts",
        "1/s",
    ),
    Column(
        "between_hosts",
        "what tasks of one host send to those of another, mean over the replications and all of their time: "
        "messages and bytes per second; pairs of hosts with nothing between them are left out",
        "1/s",
    ),
    text("bottleneck", "the busiest of them and the next, in a sentence"),
)
"""More of its keys, where tasks share something: cores, cards, stores."""
