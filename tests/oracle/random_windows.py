"""Random windows of each sort: what a count of `random_topologies` is given."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .random_times import TICK


@st.composite
def windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    trigger = draw(st.sampled_from(("tick", "tick", "marker", "marker", "tuples")))
    if trigger == "tuples":
        return {"tuples": draw(st.integers(1, 9))}
    by_marker = event_time or trigger == "marker"
    length = marker_ms if by_marker else draw(st.sampled_from((10, 20, 30, 37)))
    return {"length": length * TICK, "trigger": trigger}


@st.composite
def marked_windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    """Windows that slide, and are ended by markers; their panes are of one length."""
    panes, slide = draw(st.sampled_from(((1, 1), (2, 1), (3, 1), (3, 2), (4, 1))))
    return {"length": panes * marker_ms * TICK, "slide": slide * marker_ms * TICK, "trigger": "marker"}


@st.composite
def sliding_windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    """Windows that slide; by marker their panes are of one length."""
    trigger = draw(st.sampled_from(("tick", "tick", "tick", "marker", "tuples")))
    if trigger == "tuples":
        tuples = draw(st.integers(1, 9))
        return {"tuples": tuples, "slide_tuples": draw(st.integers(1, tuples))}
    if event_time or trigger == "marker":
        return draw(marked_windows(marker_ms, event_time)) | {"trigger": trigger}
    length, slide = draw(st.sampled_from(((20, 10), (30, 10), (30, 20), (37, 10), (20, 20), (60, 15))))
    return {"length": length * TICK, "slide": slide * TICK}


@st.composite
def event_windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    """Windows by event."""
    length, slide = draw(st.sampled_from(((20, None), (30, None), (20, 10), (30, 10), (37, 10), (30, 20))))
    return {
        "by": "event",
        "length": length * TICK,
        "slide": None if slide is None else slide * TICK,
        "lag": draw(st.sampled_from((0, 0, 5, 20))) * TICK,
        "watermark_interval": draw(st.sampled_from((3, 10, 10, 17))) * TICK,
        "idle_after": draw(st.sampled_from((None, None, 15 * TICK))),
    }


@st.composite
def ids_windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    """Windows of which checkpoints have ids only."""
    length, slide = draw(st.sampled_from(((20, 10), (30, 10), (37, 10), (20, 20), (20, None), (10, None))))
    return {"length": length * TICK, "slide": None if slide is None else slide * TICK, "saved": "ids"}


def aside_windows(marker_ms: int, event_time: bool) -> st.SearchStrategy[dict[str, Any]]:
    """The same, with late tuples put aside."""
    return event_windows(marker_ms, event_time).map(lambda window: window | {"late": "aside"})


def session_windows(marker_ms: int, event_time: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Sessions."""
    rest = event_windows(marker_ms, event_time)
    gaps = st.sampled_from((5, 8, 12, 20))
    return st.tuples(rest, gaps).map(
        lambda both: both[0] | {"length": None, "slide": None, "gap": both[1] * TICK}
    )


@st.composite
def arrival_sessions(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    """Sessions by arrival."""
    gap, interval = draw(st.sampled_from((3, 5, 8, 12))), draw(st.sampled_from((3, 10, 10, 17)))
    return {"gap": gap * TICK, "watermark_interval": interval * TICK}


def batch_event_windows(marker_ms: int, event_time: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Windows by event that wait for all inputs."""
    return event_windows(marker_ms, event_time).map(lambda window: window | {"idle_after": None})


def batch_sessions(marker_ms: int, event_time: bool) -> st.SearchStrategy[dict[str, Any]]:
    """The same of sessions."""
    return session_windows(marker_ms, event_time).map(lambda window: window | {"idle_after": None})


def joined_windows(marker_ms: int, event_time: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Of counts and of joins: what reads spouts reads both, and joins them."""
    return st.one_of(sliding_windows(marker_ms, event_time), event_windows(marker_ms, event_time))


COUNTS = ("windowed_count", "windowed_join")
JOINED = (sliding_windows, marked_windows, event_windows, batch_event_windows, joined_windows)
"""With these, what counts two streams joins them, too."""
BY_EVENT = (
    event_windows,
    aside_windows,
    session_windows,
    batch_event_windows,
    batch_sessions,
    joined_windows,
)
