"""Why source replay takes 60 s and not 30: the law, and five sentences that lead to it."""

from __future__ import annotations

NS = 1_000_000_000


def source_replay_recovery_s(
    failed_at_s: float, *, window_s: float, timeout_s: float, phase_s: float = 0.0, buckets: int = 2
) -> float:
    """Recovery time of a windowed count that lost its state, from the mechanism alone.

    Holds for a window as long as the timeout, windows that start at 0, a constant input rate, and a network
    that takes no time. ``phase_s``: time of the first rotation of the spout's map; rotations follow every
    ``timeout_s``.

    With B buckets, T the timeout, f the time from the window's start to the failure, and b the first rotation
    at or after the failure: B T if a rotation fell inside (window start, failure], else (b - failure) + (B -
    1) T + f.

    >>> source_replay_recovery_s(75.0, window_s=30.0, timeout_s=30.0)
    60.0
    >>> source_replay_recovery_s(75.0, window_s=30.0, timeout_s=30.0, phase_s=20.0)
    50.0
    """
    failed, window, timeout, phase = (round(v * NS) for v in (failed_at_s, window_s, timeout_s, phase_s))
    into = (failed - 1) % window + 1
    since_rotation = (failed - phase) % timeout
    if since_rotation < into:
        return buckets * timeout / NS
    until_rotation = timeout - since_rotation
    return (until_rotation + (buckets - 1) * timeout + into) / NS


def why_sixty(timeout_s: float = 30.0, buckets: int = 2) -> tuple[str, ...]:
    """Five sentences, for a window as long as the timeout and a map that rotates when windows start."""
    t, waits, total = _s(timeout_s), _s((buckets - 1) * timeout_s), _s(buckets * timeout_s)
    before = "one timeout" if buckets == 2 else f"{buckets - 1} timeouts"
    after = "two" if buckets == 2 else str(buckets)
    return (
        "The spout does not watch each tuple's age: it keeps its unfinished roots in a map of "
        f"{buckets} buckets that rotates every {t}, and a root fails only when its bucket falls out, so a "
        f"lost one waits between {before} and {after}, {waits} to {total}.",
        "A windowed count acks only at the end of its window, so a failure at time t, f after the window's "
        "start, destroys the ids of all roots of these f, and every one of them has to time out.",
        "In the published experiment the map rotates when a window starts, so these roots share one bucket: "
        f"the rotation at the window's end, {t} − f after the failure, only ages it, and {waits} later the "
        "next one fails them all.",
        "A failed root is sent again by the spout's next call, one root per call and before any new one, so "
        "replaying the roots of f uses up the input rate for another f.",
        f"The sum is ({t} − f) + {waits} + f = {total}, whatever f is; with any other phase, and b the first "
        f"rotation after the failure, it is {total} if a rotation fell inside (window start, t], else "
        f"(b − t) + {waits} + f.",
    )


def _s(seconds: float) -> str:
    return f"{seconds:g} s"
