"""Fit the cost of an ack on the spread of latencies that was measured, and see what that says of their mean.

A windowed count acks a whole window at its end, one tuple after the other, and serves nothing meanwhile. For
a stall of length d in each window W the standard deviation of latency is about sqrt(d^3/(3W)), and the mean
grows by d^2/(2W): one constant, two figures. Here it is fitted on the first and judged by the second, with
the two experiments of Stableford (City University London, 2015), in which a tuple takes 0.2 ms at ``split``
and 0.1 ms at ``count``:

    python examples/fit_ack_cost.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tideover.models  # noqa: F401  (registers strategies and bolts)
from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load


class Published(NamedTuple):
    """A phase of the study: how its spout emits, and latencies in ms (stableford_normal_latency.csv)."""

    phase: int
    spout: dict[str, str]
    replay_mean: float
    replay_std: float
    rsm_mean: float


PHASES = (
    Published(1, {"pause": "10 ms", "emit_cost": "0.53 ms"}, 6.36, 46.27, 1.32),
    Published(2, {"rate": "10/s"}, 3.39, 14.13, 2.17),
)


class Fit(NamedTuple):
    """What was fitted (``ack_cost_us``, on ``std_ms``), and what follows: the rise of the mean over R+SM."""

    ack_cost_us: float
    std_ms: float
    rise_ms: float
    published_rise_ms: float

    @property
    def error(self) -> float:
        """Relative error of the rise."""
        return self.rise_ms / self.published_rise_ms - 1


def word_count(spout: dict[str, str], strategy: dict[str, Any], seconds: int = 360) -> Scenario:
    """Stableford's pipeline without failures, the first minute not measured.

    sentences ──▶ split (0.2 ms) ──▶ count (0.1 ms, 30 s)
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
                    "window": "30 s",
                },
            },
            "strategy": strategy,
            "run": {"duration": f"{seconds} s", "warmup": "60 s"},
        }
    )


def latency(spout: dict[str, str], ack_cost_ns: int | None) -> dict[str, float | None]:
    """Latency (ms) under source replay with this ack cost; None: under R+SM."""
    strategy: dict[str, Any] = {"kind": "rsm", "checkpoint_interval": "5 s", "serialise_time": "1 ms"}
    if ack_cost_ns is not None:
        strategy = {"kind": "source_replay", "timeout_phase": "0 s", "ack_cost": f"{ack_cost_ns} ns"}
    return simulate(word_count(spout, strategy)).latency.summary(1e6)


def fit_ack_cost(spout: dict[str, str], std_ms: float, low_ns: int = 0, high_ns: int = 1_000_000) -> int:
    """The ack cost (ns) at which source replay's standard deviation is ``std_ms``: by bisection, for it rises
    with the cost.
    """
    while high_ns - low_ns > max(1, low_ns // 1000):
        middle = (low_ns + high_ns) // 2
        std = latency(spout, middle)["std"]
        low_ns, high_ns = (middle, high_ns) if std is not None and std < std_ms else (low_ns, middle)
    return high_ns


def judge(published: Published, ack_cost_ns: int) -> Fit:
    """The rise of the mean over R+SM that an ack cost makes, beside the published one."""
    replay, rsm = latency(published.spout, ack_cost_ns), latency(published.spout, None)
    assert replay["mean"] is not None
    assert replay["std"] is not None
    assert rsm["mean"] is not None
    return Fit(
        ack_cost_ns / 1e3,
        replay["std"],
        replay["mean"] - rsm["mean"],
        published.replay_mean - published.rsm_mean,
    )


def main() -> None:
    """Print both fits, and what each constant says of the other phase."""
    costs = {p.phase: fit_ack_cost(p.spout, p.replay_std) for p in PHASES}
    for published in PHASES:
        for fitted_on, cost in costs.items():
            fit = judge(published, cost)
            print(  # noqa: T201
                f"phase {published.phase}, ack cost of phase {fitted_on} ({fit.ack_cost_us:.1f} us):"
                f" std {fit.std_ms:.2f} ms (published {published.replay_std});"
                f" mean rises by {fit.rise_ms:.2f} ms ({fit.published_rise_ms:.2f}): {fit.error:+.0%}"
            )


if __name__ == "__main__":
    main()
