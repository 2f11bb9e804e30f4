"""What flows over each edge of the topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Counts = Mapping[str, Mapping[str, int]]
"""Of each edge messages, bytes, and those of them that went to another host."""


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
