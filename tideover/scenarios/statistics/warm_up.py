"""Where the warm-up of a run ends: `settling`, for `tideover run --find-warmup`.

The curves that are asked, and the rule by which they have settled, are changed here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.models.config import Scenario, if_nothing_fails
from tideover.models.simulation import simulate
from tideover.scenarios.runs import RunFailed
from tideover.sim.draws import Draws
from tideover.sim.units import S

BATCH = 5
"""Values that are averaged first: MSER-5."""


def mser5(series: npt.ArrayLike) -> int | None:
    """How many values at the front are warm-up, by the marginal standard error rule on means of five values:
    drop so many that the interval of the mean of the rest is narrowest. None: the series is too short to
    tell, as that is more than half of it, or it has fewer than ten batches.

    White, An Effective Truncation Heuristic for Bias Reduction in Simulation Output, Simulation 69, 1997;
    White, Cobb and Spratt, A Comparison of Five Steady-State Truncation Heuristics, WSC 2000, with the rule
    that a point in the second half says that the run is too short. The last five batches are no candidates:
    of few values the error is small by chance.

    Raises ValueError for undefined values.
    """
    values = np.asarray(series, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("the rule needs a value at every place of the series")
    count = len(values) // BATCH
    if count < 2 * BATCH:
        return None
    means = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    means = means - means.mean()  # sums of squares of what is far from 0 would lose digits
    left = np.arange(count, 0, -1)
    sums, squares = (np.cumsum(each[::-1])[::-1] for each in (means, means**2))
    errors = (squares - sums**2 / left) / left**2
    candidates = np.maximum(errors, 0.0)[: count - BATCH + 1]
    # of points that differ by rounding alone, the first: a series that is constant at last has many
    least = int(np.argmax(candidates <= candidates.min() + 1e-14 * squares[0]))
    return None if least > count // 2 else least * BATCH


MOST_RUNS = 10
"""Replications that are averaged, second by second, as Welch does: more hardly make the curves smoother."""
CURVES = {"backlog": "backlog", "latency_mean_ms": "mean latency", "throughput_per_s": "throughput"}
"""Columns of the timeline, and what they are called."""


@dataclass(frozen=True)
class Settling:
    """When a scenario has settled, in whole seconds from its start, by each curve of the timeline (None: its
    run is too short to tell); ``given_s``: the warm-up that the scenario says.
    """

    by_curve: dict[str, int | None]
    given_s: float
    duration_s: float

    @property
    def found_s(self) -> int | None:
        """The latest of them; None: the run is too short to tell."""
        known = [second for second in self.by_curve.values() if second is not None]
        return max(known) if len(known) == len(self.by_curve) else None

    @property
    def sentence(self) -> str:
        """The answer, and what to set."""
        if self.found_s is None:
            short = " and ".join(CURVES[name] for name, second in self.by_curve.items() if second is None)
            return (
                f"no end of the warm-up shows in {short}: it is in the second half of "
                f"{self.duration_s:g} s, or there is none (the load changes, or the backlog grows); a longer "
                "run.duration may show it"
            )
        latest = max(self.by_curve, key=lambda name: self.by_curve[name] or 0)
        by = f" ({CURVES[latest]} is the last to settle)" if self.found_s else ""
        if self.given_s >= self.found_s:
            return f"the warm-up is over after {self.found_s} s{by}; run.warmup is {self.given_s:g} s: enough"
        return (
            f"the warm-up is over after {self.found_s} s{by}, but run.warmup is {self.given_s:g} s: "
            f"--set run.warmup={self.found_s}s"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"warmup_s": self.found_s, "given_s": self.given_s, "by_curve_s": self.by_curve}


def settling(scenario: Scenario, report: Callable[[int, int], None] | None = None) -> Settling:
    """Find it by MSER-5 (`warm_up.mser5`) on backlog, latency and throughput of each second, averaged over
    replications in which nothing fails.

    ``report``: called with the number of runs that are done, and of all. Raises RunFailed.
    """
    count = min(MOST_RUNS, scenario.run.replications)
    rows: dict[str, list[list[float]]] = {name: [] for name in CURVES}
    for number in range(count):
        if report is not None:
            report(number, count)
        quiet = if_nothing_fails(scenario, Draws(scenario.run.seed, number))
        try:
            timeline = simulate(quiet, number).timeline
        except Exception as error:
            raise RunFailed(f"replication {number}: {type(error).__name__}: {error}") from error
        for name, curves in rows.items():
            curves.append([np.nan if each[name] is None else float(each[name]) for each in timeline])
    found = {name: _settled(np.array(curves)) for name, curves in rows.items()}
    return Settling(found, scenario.run.warmup / S, scenario.run.duration / S)


def _settled(curves: np.ndarray) -> int | None:
    """The second at which the mean of the curves has settled; seconds without a value are left out."""
    known = ~np.isnan(curves)
    counts = known.sum(axis=0)
    seconds = np.flatnonzero(counts)
    mean = np.where(known, curves, 0.0).sum(axis=0)[seconds] / counts[seconds]
    first = mser5(mean)
    return int(seconds[first]) if first else first
