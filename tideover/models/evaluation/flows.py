"""What flows over each edge of the topology, and between hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Counts = Mapping[str, Mapping[str, int]]
"""Of each edge messages, bytes, and those of them that went to another host."""
Pairs = Sequence[Mapping[str, int]]
"""Hosts, that of the sender and of the receiver, with messages and bytes."""


def flows(runs: Sequence[Counts], duration_s: float) -> list[dict[str, float | str]]:
    """By edge, the mean over the runs and all of their time: messages and bytes per second, and bytes per
    second between hosts.
    """
    found: list[dict[str, float | str]] = []
    for name in runs[0] if runs else ():
        per_s = {
            key: sum(run[name][count] for run in runs) / (len(runs) * duration_s)
            for key, count in (
                ("messages_per_s", "messages"),
                ("bytes_per_s", "bytes"),
                ("between_hosts_per_s", "remote_bytes"),
            )
        }
        found.append({"edge": name, **per_s})
    return found


def between_hosts(runs: Sequence[Pairs], duration_s: float) -> list[dict[str, float | int]]:
    """By sender's and receiver's host, the mean over the runs and all of their time: messages and bytes per
    second. Pairs of which no run sent anything are left out.
    """
    counts: dict[tuple[int, int], list[int]] = {}
    for pair in (pair for run in runs for pair in run):
        count = counts.setdefault((pair["from_host"], pair["to_host"]), [0, 0])
        count[0] += pair["messages"]
        count[1] += pair["bytes"]
    whole = len(runs) * duration_s
    return [
        {"from_host": up, "to_host": down, "messages_per_s": messages / whole, "bytes_per_s": bytes_ / whole}
        for (up, down), (messages, bytes_) in sorted(counts.items())
    ]
