"""Random spouts and bolts, and what calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tideover.models.job.arrivals import Arrivals, Burst, Day, Poisson, Ramp, TraceOfRates
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.groupings import GROUPINGS

from .random_times import TICK, TICK_MS, durations, times
from .random_windows import BY_EVENT, COUNTS, JOINED, joined_windows, windows
from .worlds import bolt, spout

RATES = Path(__file__).with_name("rates.csv")
DAY = Path(__file__).with_name("day.csv")
"""Its load changes at noon, within seconds."""


@dataclass
class Stream:
    """What is known of a component's output while a topology is being made up."""

    field: str
    sentences: bool
    anchored: bool = True
    spout: bool = False
    used: bool = False


@st.composite
def arrivals(draw: st.DrawFn, gap: float) -> Arrivals | None:
    """About one call in ``gap`` ms; None: at equal distances."""
    rate = 1e3 / gap
    kind = draw(st.sampled_from((None, None, "poisson", "poisson", "ramp", "burst", "trace", "day")))
    if kind == "poisson":
        return Poisson(rate=rate)
    if kind == "ramp":
        end, begin = rate * draw(st.sampled_from((0.2, 2.0))), draw(st.sampled_from((0, 30, 70)))
        return Ramp(start=rate, end=end, begin=begin * TICK, over=50 * TICK)
    if kind == "burst":
        every = draw(st.sampled_from((23, 50)))
        return Burst(rate=rate / 2, peak=3 * rate, length=10 * TICK, every=every * TICK)
    if kind == "trace":
        return TraceOfRates(file=str(RATES), repeat=draw(st.sampled_from((None, 7.5))), scale=rate)
    if kind == "day":
        return Day(file=str(DAY), interpolation=draw(st.sampled_from(("linear", "steps"))), scale=rate)
    return None


@st.composite
def spouts(draw: st.DrawFn, ties: bool, hosts: int | None, late: bool = False) -> tuple[SpoutConfig, Stream]:
    kind = draw(st.sampled_from(("sentences", "keys", "values")))
    more: dict[str, Any] = {"parallelism": draw(st.sampled_from((1, 1, 2)))}
    if kind == "keys":
        more |= {"keys": draw(st.integers(1, 5)), "exponent": draw(st.sampled_from((0.0, 1.1)))}
    if kind == "values":
        values = st.lists(st.integers(0, 9), min_size=1, max_size=8).map(tuple)
        more |= {"values": draw(values), "repeat": draw(st.booleans())}
    if hosts is not None and draw(st.booleans()):
        more["hosts"] = tuple(draw(st.integers(0, hosts - 1)) for _ in range(more["parallelism"]))
    gap = draw(times(ties, 5, 6, 10)) + (0 if ties else 4 * TICK_MS)
    if not ties and (calls := draw(arrivals(gap))) is not None:
        more["arrivals"] = calls
    if late:
        more["event_delay"] = draw(durations(ties, 0, 5, 20))
    offset = draw(st.sampled_from((0, 0, 5))) * TICK_MS if ties else None
    field = "sentence" if kind == "sentences" else "key"
    return spout(kind, gap, offset, **more), Stream(field, kind == "sentences", spout=True)


@st.composite
def bolts(
    draw: st.DrawFn,
    ties: bool,
    hosts: int | None,
    streams: dict[str, Stream],
    last: bool,
    marker_ms: int,
    event_time: bool,
    endings: Callable[[int, bool], st.SearchStrategy[dict[str, Any]]] = windows,
) -> tuple[BoltConfig, Stream]:
    unread = [name for name in streams if last and not streams[name].used and streams[name].spout]
    first = draw(st.sampled_from(unread or list(streams)))
    if endings in BY_EVENT and not streams[first].anchored:
        endings = windows  # what windows put out has no events
    others = [name for name in streams if streams[name].anchored == streams[first].anchored]
    joins = endings is joined_windows and streams[first].spout
    if joins:
        ups = [name for name in others if streams[name].spout]
    else:
        ups = [name for name in others if name == first or name in unread or draw(st.integers(0, 2)) == 0]
    inputs = {
        up: draw(st.sampled_from(("shuffle", "fields", "fields", "global", "all", "direct"))) for up in ups
    }
    sentences = all(streams[up].sentences for up in ups)
    kinds = ("split_words",) * 3 * sentences + ("forward", "filter", "generic") + ("windowed_count",) * 3
    kind = draw(st.sampled_from(kinds))
    if joins:
        kind = "windowed_join"
    elif kind == "windowed_count" and len(ups) == 2 and endings in JOINED:
        kind = draw(st.sampled_from((kind, "windowed_join", "windowed_join")))
    more: dict[str, Any] = {"parallelism": draw(st.integers(1, 3))}
    if kind == "filter":
        more["keep"] = draw(st.sampled_from((0.0, 0.5, 0.9, 1.0)))
    if kind == "generic":
        more["selectivity"] = draw(st.sampled_from((0.0, 0.5, 1.0, 1.5, 2.0, 2.5)))
    if kind in COUNTS:
        more["window"] = draw(endings(marker_ms, event_time))
    if hosts is not None and draw(st.booleans()):
        more["hosts"] = tuple(draw(st.integers(0, hosts - 1)) for _ in range(more["parallelism"]))
    config = bolt(kind, inputs, draw(durations(ties, 0, 0, 1, 2, 4)), **more)
    field = {"split_words": "word", "windowed_count": "key", "windowed_join": "key"}.get(
        kind, streams[ups[0]].field
    )
    for up, grouping in inputs.items():
        streams[up].used = True
        if grouping == "fields":
            config.from_[up] = GROUPINGS["fields"](fields=(streams[up].field,))
    anchored = kind not in COUNTS and streams[first].anchored
    return config, Stream(field, sentences and kind in ("forward", "filter", "generic"), anchored)
