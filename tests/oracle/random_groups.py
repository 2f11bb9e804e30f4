"""Random small worlds whose processes are members of a consumer group."""

from __future__ import annotations

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.detectors.base import DETECTORS
from tideover.sim.registry import kind_of

from .random_times import TICK, TICK_MS
from .random_worlds import overlapping, worlds
from .worlds import ms

GROUPED = ("none", "rsm", "changelog", "changelog")


@st.composite
def grouped(draw: st.DrawFn, strategies: tuple[str, ...] = GROUPED) -> Scenario:
    """A random world with a coordinator, in which nothing is merely stopped, and with time to recover."""
    failing = worlds(strategies).filter(lambda found: found.failures)
    scenario = draw(st.one_of(failing, overlapping(strategies)))
    others = [fault for fault in scenario.failures if kind_of(fault) != "pause"]
    failures = tuple(fault.model_copy(update={"detection": 0, "restart": 0}) for fault in others)
    longer = scenario.run.model_copy(update={"duration": scenario.run.duration + 100 * TICK})
    interval, back = draw(st.sampled_from((3, 5, 10))), draw(st.sampled_from((None, None, 0, 4, 25)))
    odd = draw(st.sampled_from((0, 17)))
    detector = DETECTORS["consumer_group"](
        heartbeat_interval=interval * TICK,
        session_timeout=(interval + draw(st.sampled_from((0, 1, 10, 20)))) * TICK,
        rebalance=ms(draw(st.sampled_from((0, 0, 150, 700)))),
        restart=None if back is None else ms(back * TICK_MS + odd),
        static=back is not None and draw(st.booleans()),
    )
    changes = {"failures": failures, "run": longer, "detector": detector}
    return scenario.model_copy(update=changes)
