"""What a failure costs by the hour of the day: one scenario, whose failure strikes at hour after hour. Called
by ``tideover.hours``; a new figure is added to `MEASURES` and `Hours.values`.

Each hour is a run of its own, around its failure, with the load of that hour (``run.fails_at``). Luck is the
same in all of them. A day's mean weights each hour with the part of the day that is nearest to it,
replication by replication, as the hours of one replication have their luck in common. Where the hours that
were asked leave out half the day, nothing is said of it, but the plain mean of these hours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.models import config
from tideover.models.advice import in_short
from tideover.models.config import rate_at
from tideover.models.schema import HEADLINE, Column, counted, named
from tideover.models.simulation import Replication
from tideover.scenarios import runs
from tideover.scenarios.loader import Scenario, load
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.statistics.intervals import Estimate, estimate
from tideover.sim.registry import kind_of
from tideover.sim.units import DAY, HOUR, MINUTE, format_time_of_day, parse_time_of_day

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results import Result

Floats = npt.NDArray[np.float64]
Report = Callable[[str, int, int], None]
"""Called with what is being done, how many runs are done, and of how many."""

_OTHERWISE = "end_to_end_p99_ms"
_WIDEST_GAP = 12.0


def _greatest(name: str, what: str, unit: str, label: str) -> Column:
    meaning = f"greatest {what} from the first failure until the end of the run"
    return Column(name, meaning, unit, undefined="nothing failed", label=label)


MEASURES = (
    named("recoveries", HEADLINE),
    named("recoveries", "catch_up_s"),
    _greatest("peak_backlog", "backlog", "roots", "greatest backlog"),
    _greatest("end_to_end_max_ms", "end-to-end latency", "ms", "greatest latency, ms"),
    Column(
        _OTHERWISE,
        "99th percentile of the end-to-end latency outside of recoveries",
        "ms",
        undefined=named("runs", _OTHERWISE).undefined,
        label="p99 otherwise, ms",
    ),
)
"""What is said of each hour; of several failures in one run their mean, if all are over."""
STEP = 2 * HOUR
_CURVE_STEP = 10 * MINUTE


@dataclass(frozen=True)
class Hour:
    """The failure at one time of day (``18:00``), in hours since midnight, too; ``rate``: roots/s of all
    spouts.
    """

    time: str
    hour: float
    rate: float
    result: Result


@dataclass(frozen=True)
class Hours:
    """What ``tideover hours`` says: an answer for each hour, and for the day. Hours rise."""

    scenario: Scenario
    every: tuple[Hour, ...]

    def values(self, measure: str) -> Floats:
        """A measure by hour (rows) and replication (columns); undefined is NaN."""

        def value(one: Replication) -> float:
            if not one.recoveries:
                return math.nan
            first = min(row["failed_at_s"] for row in one.recoveries)
            after = [row for row in one.timeline if row["second"] >= math.floor(first)]
            if measure == "peak_backlog":
                return max(float(row["backlog"]) for row in after)
            if measure == "end_to_end_max_ms":
                return max((row[measure] for row in after if row[measure] is not None), default=math.nan)
            return float(np.mean(np.array([row[measure] for row in one.recoveries], np.float64)))

        if measure == _OTHERWISE:
            rows = [[row[measure] for row in each.result.rows("runs")] for each in self.every]
        else:
            rows = [[value(one) for one in each.result.replications] for each in self.every]
        return np.array(rows, np.float64)

    def estimates(self, measure: str) -> list[Estimate]:
        """The mean of a measure in each hour, over its replications."""
        return [estimate(row, resample=False) for row in self.values(measure)]

    def mean(self, measure: str) -> Estimate:
        """The mean over a moment of failure that is uniform over the day, or of the hours alone (not
        ``of_the_day``). A replication in which the measure is undefined in some hour has none.
        """
        return estimate(self.weights @ self.values(measure), resample=False)

    @property
    def endings(self) -> list[list[str]]:
        return [[row["ended"] for row in each.result.rows("recoveries")] for each in self.every]

    @property
    def every_ending(self) -> list[str]:
        return [ending for each in self.endings for ending in each]

    @cached_property
    def _gaps(self) -> Floats:
        """From each hour to the next, over midnight too (h)."""
        hours = np.array([each.hour for each in self.every])
        return np.diff(np.append(hours, hours[0] + 24))

    @property
    def of_the_day(self) -> bool:
        """Whether the hours say what is to be expected of a day: none is farther than 12 h from the next."""
        return bool(self._gaps.max() <= _WIDEST_GAP)

    @property
    def weights(self) -> Floats:
        """Which part of the day each hour stands for: half the way to its neighbours, or all the same."""
        if not self.of_the_day:
            return np.full(len(self._gaps), 1 / len(self._gaps))
        return np.asarray((self._gaps + np.roll(self._gaps, 1)) / 48, np.float64)

    @property
    def worst(self) -> Hour:
        """The hour with the longest time to recover; longer than any is one that is not over in some run."""
        ranks = [(found.undefined, found.mean or 0.0) for found in self.estimates(HEADLINE)]
        return self.every[ranks.index(max(ranks))]

    @property
    def best(self) -> Hour:
        ranks = [(found.undefined, found.mean or 0.0) for found in self.estimates(HEADLINE)]
        return self.every[ranks.index(min(ranks))]

    @property
    def warnings(self) -> list[str]:
        return in_short(text for each in self.every for text in each.result.warnings)

    @property
    def frame(self) -> pd.DataFrame:
        """One row an hour and measure: ``time``, ``hour``, ``rate_per_s``, ``measure``, ``unit``, ``n``,
        ``undefined``, ``mean``, the 95 % interval ``low`` to ``high``, and how recoveries ``ended``.
        """
        import pandas as pd

        rows = [
            {"time": each.time, "hour": each.hour, "rate_per_s": each.rate}
            | {"measure": column.name, "unit": column.unit}
            | found.record()
            | {"ended": counted(ended)}
            for column in MEASURES
            for each, found, ended in zip(self.every, self.estimates(column.name), self.endings, strict=True)
        ]
        return pd.DataFrame(rows)

    @property
    def load(self) -> pd.DataFrame:
        """The load over the day: ``hour``, ``rate_per_s``, every ten minutes from midnight to midnight."""
        import pandas as pd

        times = range(0, DAY + 1, _CURVE_STEP)
        rates = [rate_at(self.scenario, time) for time in times]
        return pd.DataFrame({"hour": [time / HOUR for time in times], "rate_per_s": rates})

    def to_dict(self) -> dict[str, Any]:
        """What ``tideover hours --json`` prints."""
        by_name = {column.name: self.estimates(column.name) for column in MEASURES}
        ended = [counted(each) for each in self.endings]
        return {
            "scenario": to_data(self.scenario),
            "strategy": kind_of(self.scenario.strategy),
            "seed": self.scenario.run.seed,
            "replications": self.scenario.run.replications,
            "warnings": self.warnings,
            "hours": [
                {"time": each.time, "rate_per_s": each.rate, "ended": ended[place]}
                | {name: found[place].record() for name, found in by_name.items()}
                for place, each in enumerate(self.every)
            ],
            "day" if self.of_the_day else "mean": {"ended": counted(self.every_ending)}
            | {column.name: self.mean(column.name).record() for column in MEASURES},
            "worst": self.worst.time,
            "best": self.best.time,
        }


def times_of_day(step: int = STEP) -> list[str]:
    """Times of day at this distance (ns), from midnight on."""
    return [format_time_of_day(time) for time in range(0, DAY, step)]


def hours(
    scenario: config.Scenario, times: Sequence[str] | None = None, report: Report | None = None
) -> Hours:
    """Let the scenario's first failure strike at each of these times of day; None: every two hours. Raises
    ScenarioError (no load by the time of day, or no failure with ``at``), ValueError for times, and
    RunFailed.
    """
    asked = at_hours(scenario, times_of_day() if times is None else times)
    tell = report and (lambda text, done, total: report(f"a failure at {text}", done, total))
    results = runs.each(asked, tell)
    moments = {text: parse_time_of_day(text) for text in asked}
    every = [
        Hour(text, moments[text] / HOUR, rate_at(one, moments[text]), results[text])
        for text, one in asked.items()
    ]
    return Hours(Scenario.of(scenario), tuple(every))


def at_hours(scenario: config.Scenario, times: Sequence[str]) -> dict[str, Scenario]:
    """The scenario with its first failure at each of these times, by time; raises like ``hours``."""
    asked = sorted({parse_time_of_day(text) for text in times})
    if not asked:
        raise ValueError("no time of day is given; name at least one")
    texts = map(format_time_of_day, asked)
    return {text: load(scenario, {"run.starts_at": None, "run.fails_at": text}) for text in texts}
