"""(h) Bounded queues: a word count whose queues have 1,000 places, beside the same without bounds."""

from __future__ import annotations

from typing import Any

from benchmarks.table import Row, side_by_side
from benchmarks.worlds import bolt, scenario
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Arrivals, Periodic, Saturating
from tideover.models.job.components import QueueSettings, SpoutConfig
from tideover.models.job.spouts import SPOUTS
from tideover.models.strategies.base import Strategy
from tideover.models.strategies.none import Amnesia
from tideover.models.strategies.source_replay import SourceReplay
from tideover.models.world import World
from tideover.sim.distributions import Constant
from tideover.sim.units import S

PLACES = 1_000
SERVED = 2_250
"""Sentences a second that the counter can take: 0.1 ms a word, 4.4 words each."""
HALF_EMPTY, FULL, CROWDED, SATURATED = 1.5, 1.5, 2.5, 4.0
"""How many times as long it may take."""


def word_count(
    arrivals: Arrivals,
    strategy: Strategy,
    seconds: float,
    bounded: bool,
    splitters: int = 1,
    counters: int = 1,
) -> Scenario:
    """The built-in word count, at another rate: with one task each 0.2 ms a sentence, 0.1 ms a word; with
    more tasks each takes as many times as long.
    """
    topology: dict[str, Any] = {
        "sentences": SpoutConfig(spout=SPOUTS["sentences"](), arrivals=arrivals),
        "split": bolt("split_words", "sentences", "shuffle", Constant(value=200_000 * splitters), splitters),
        "count": bolt(
            "windowed_count",
            "split",
            "fields",
            Constant(value=100_000 * counters),
            counters,
            window={"length": 30 * S},
        ),
    }
    queues = QueueSettings(length=PLACES) if bounded else None
    return scenario("queues", topology, strategy, seconds, queues=queues)


def _row(
    what: str,
    bounded: Arrivals,
    without: Arrivals,
    strategy: Strategy,
    target: float,
    quick: bool,
    tasks: tuple[int, int] = (1, 1),
) -> Row:
    seconds = 3 if quick else 60

    def program(arrivals: Arrivals, bound: bool) -> int:
        World(word_count(arrivals, strategy, seconds, bound, *tasks)).run()
        return 1

    ours, theirs = side_by_side(
        lambda: program(bounded, True), lambda: program(without, False), 1 if quick else 5
    )
    return Row(
        f"queues of {PLACES}, {what}, {strategy.kind}",
        f"{1e3 / ours:.0f} ms",
        theirs / ours,
        target,
        False,
        f"without bounds {1e3 / theirs:.0f} ms",
    )


def rows(quick: bool) -> list[Row]:
    """Time of a run with bounds, over that of the same run without."""
    found = []
    for strategy in (Amnesia(), SourceReplay(message_timeout=30 * S)):
        slow, fast, as_served = (Periodic(rate=rate) for rate in (0.66 * SERVED, 1.33 * SERVED, SERVED))
        found.append(_row("half empty", slow, slow, strategy, HALF_EMPTY, quick))
        found.append(_row("full", fast, fast, strategy, FULL, quick))
        saturating = Saturating(emit_cost=1_000)
        found.append(_row("full, saturating spout", saturating, as_served, strategy, SATURATED, quick))
        found.append(_row("full, 4 and 8 tasks", fast, fast, strategy, CROWDED, quick, (4, 8)))
    return found
