"""Fit what acks cost on the spread of latencies that was measured, and see what that says of their mean.

A windowed count acks a whole window at its end, one tuple after the other, and serves nothing meanwhile. For
a stall of length d in each window W the standard deviation of latency is about sqrt(d^3/(3W)), and the mean
grows by d^2/(2W): one stall, two figures. Stableford (City University London, 2015) measured both at two
rates. With 9.5 times as many acks the stall is only 2.2 times as long, so it has a part that acks do not
share: d = ack_time + n * ack_cost. Both are fitted on the two deviations, and judged by the two means:

    python examples/fit_ack_cost.py

A tuple takes 0.2 ms at ``split`` and 0.1 ms at ``count``; how long it is on the way comes from R+SM's mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tideover.models  # noqa: F401  (registers strategies and bolts)
from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

WINDOW_S, WORDS = 30, 4.4
"""Length of a window, and words of a sentence in the mean."""


class Published(NamedTuple):
    """A phase of the study: how its spout emits, and latencies in ms (stableford_normal_latency.csv)."""

    phase: int
    spout: dict[str, str]
    per_s: float
    replay_mean: float
    replay_std: float
    rsm_mean: float

    @property
    def acks(self) -> float:
        """Words of a window."""
        return WORDS * WINDOW_S * self.per_s


PHASES = (
    Published(1, {"pause": "10 ms", "emit_cost": "0.53 ms"}, 1000 / 10.53, 6.36, 46.27, 1.32),
    Published(2, {"rate": "10/s"}, 10, 3.39, 14.13, 2.17),
)


class Costs(NamedTuple):
    """What a burst of acks takes, and each of its acks (ns)."""

    ack_time: int
    ack_cost: int


def word_count(spout: dict[str, str], strategy: dict[str, Any], hop_ns: int = 0) -> Scenario:
    """Stableford's pipeline without failures, the first minute not measured.

    sentences ──▶ split (0.2 ms) ──▶ count (0.1 ms, 30 s)    each on a host of its own, ``hop_ns`` apart
    """
    return load(
        {
            "name": "word count without failures",
            "topology": {
                "sentences": {"spout": "sentences", **spout},
                "split": {"bolt": "split_words", "from": {"sentences": "shuffle"}, "service": "0.2 ms"},
                "count": {
                    "bolt": "windowed_count",
                    "from": {"split": {"fields": ["word"]}},
                    "service": "0.1 ms",
                    "window": f"{WINDOW_S} s",
                },
            },
            "links": {"latency": f"{hop_ns} ns"},
            "strategy": strategy,
            "run": {"duration": "360 s", "warmup": "60 s"},
        }
    )


def latency(spout: dict[str, str], costs: Costs | None, hop_ns: int = 0) -> dict[str, float | None]:
    """Latency (ms) under source replay with these costs of acks; None: under R+SM."""
    strategy: dict[str, Any] = {"kind": "rsm", "checkpoint_interval": "5 s", "serialise_time": "1 ms"}
    if costs is not None:
        of_acks = {name: f"{cost} ns" for name, cost in costs._asdict().items()}
        strategy = {"kind": "source_replay", "timeout_phase": "0 s", **of_acks}
    return simulate(word_count(spout, strategy, hop_ns)).latency.summary(1e6)


def figure(found: dict[str, float | None], name: str) -> float:
    value = found[name]
    assert value is not None
    return value


def stall(known: Published) -> float:
    """How long (ns) a window's end keeps the count if the standard deviation is as published: by bisection,
    for it rises with the stall.
    """
    low, high = 0, 2 * 10**9
    while high - low > low // 1000:
        middle = (low + high) // 2
        short = figure(latency(known.spout, Costs(middle, 0)), "std") < known.replay_std
        low, high = (middle, high) if short else (low, middle)
    return high


def fit() -> Costs:
    """The line through the stalls of both phases, over their numbers of acks."""
    many, few = PHASES
    ack_cost = (stall(many) - stall(few)) / (many.acks - few.acks)
    return Costs(round(stall(few) - ack_cost * few.acks), round(ack_cost))


def hop(known: Published) -> int:
    """How long (ns) a tuple is on each of its two ways, by the mean under R+SM."""
    return round((known.rsm_mean - figure(latency(known.spout, None), "mean")) / 2 * 1e6)


def main() -> None:
    """Print the fit, and what it says of both phases and of twice the lower rate."""
    costs = fit()
    print(f"a burst of acks takes {costs.ack_time / 1e6:.1f} ms, each ack {costs.ack_cost / 1e3:.1f} us")  # noqa: T201
    twice = Published(2, {"rate": "20/s"}, 20, float("nan"), float("nan"), PHASES[1].rsm_mean)
    for known in (*PHASES, twice):
        way = hop(known)
        replay, rsm = latency(known.spout, costs, way), latency(known.spout, None, way)
        rise = figure(replay, "mean") - figure(rsm, "mean")
        print(  # noqa: T201
            f"{known.per_s:.0f} sentences/s: std {replay['std']:.2f} ms (published {known.replay_std}), mean "
            f"{replay['mean']:.2f} ms ({known.replay_mean}), {rise:.2f} ms over R+SM "
            f"({known.replay_mean - known.rsm_mean:.2f})"
        )


if __name__ == "__main__":
    main()
