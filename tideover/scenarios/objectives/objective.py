"""Service level objectives: as they are written, and whether the replications of a scenario meet them.

`check`, plans and the loader's checks (`problems`) call it. What a text means is in `Objective.parse` and
`terms`; what of the replications is compared with a limit, and when that is sure, in `Objective.judge`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tideover.models.job.components import Run
from tideover.models.schema import HEADLINE, LOSSY, TIMES
from tideover.scenarios.errors import Problem, ScenarioError, shorten
from tideover.scenarios.objectives.terms import (
    Metric,
    bound_of_fraction,
    find,
    least_tries,
    of_fraction,
    parse_limit,
    parse_share,
)
from tideover.scenarios.statistics.intervals import Interval, of_mean, quantile_interval
from tideover.scenarios.yaml_source import Node

if TYPE_CHECKING:
    import pandas as pd

KEY = "slo"
LEVEL = 0.95
FORM = "METRIC[_STATISTIC] <= LIMIT [in 95 % of runs], as in recovery_p95 <= 20 s"

_FORM = re.compile(
    r"\s*(?P<name>[A-Za-z][A-Za-z0-9_. -]*?)\s*(?P<sign><=|>=|==|=|<|>|≤|≥)\s*(?P<limit>.+?)"
    r"(?:\s+in\s+(?P<share>\S+?\s*%)\s+of\s+(?P<of>\S.*?))?\s*"
)
_SIGNS = {"==": "=", "≤": "<=", "≥": ">="}
_MEETS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
}
_ROUNDING = 1e-9
_MOST_NEEDED = 1_000_000
_TOO_NEAR = ("it is too near to its limit to be decided by more replications",)

Floats = npt.NDArray[np.float64]
Frames = Mapping[str, "pd.DataFrame | None"]
Rule = Literal["every", "mean", "quantile", "runs", "time"]
Verdict = Literal["met", "broken", "unsure"]


@dataclass(frozen=True)
class Judgement:
    """What became of an objective.

    value       what is compared with ``limit``: the mean, the quantile, the part of runs or time, or of
                ``every`` run the worst value; in the unit of the column, parts of one for parts; infinite if
                something was not reached by the end of a run; None if no run has a value
    low, high   ends of its interval at the objective's level; None where there is none (one value, a value
                that is infinite, ``every``)
    limit       of the objective; for parts the part that is asked for
    n           replications that have a value
    verdict     ``met`` or ``broken`` if the interval leaves no doubt, else ``unsure``
    holds       whether the value itself meets the limit
    breaking    replications that break the limit by themselves; None where that means nothing
    bound       for ``every``: the part of all runs that may break it, at most, at the objective's level
    notes       what else has to be known of it, in sentences
    endings     of a time to recover: how each recovery ended
    """

    objective: Objective
    value: float | None
    low: float | None
    high: float | None
    limit: float
    n: int
    verdict: Verdict
    holds: bool
    breaking: int | None = None
    bound: float | None = None
    notes: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Objective:
    """What is asked of a run.

    text       as it was written, but for spaces
    metric     table and column
    rule       what of the replications has to meet the limit:
               every     each of them
               mean      their mean
               quantile  their quantile ``share``
               runs      at least the part ``share`` of them
               time      at least the part ``share`` of the seconds, mean over the replications
    sign       ``<=``, ``<``, ``>=``, ``>`` or ``=``
    limit      in the column's unit
    share      as ``rule`` says; 1 for ``every``, unused for ``mean``
    level      of the interval, between a half and one
    """

    text: str
    metric: Metric
    rule: Rule
    sign: str
    limit: float
    share: float = 1.0
    level: float = LEVEL

    @staticmethod
    def parse(text: str, level: float = LEVEL, *, at: Node | None = None, key: str = "") -> Objective:
        """The objective of a text such as ``recovery_p95 <= 20 s``.

        ``at``, ``key``: where it stands, for messages. Raises ScenarioError.

        >>> found = Objective.parse("p99_latency <= 500 ms")
        >>> found.metric.column.name, found.rule, found.limit
        ('end_to_end_p99_ms', 'mean', 500.0)
        >>> Objective.parse("recovery <= 20 s in 95 % of runs").share
        0.95
        """
        try:
            return _parsed(text, level)
        except ValueError as error:
            if at is not None:
                raise at.refused(key, str(error)) from None
            raise ScenarioError([Problem("objective", None, shorten(text, 80), str(error))]) from None

    @property
    def is_of_parts(self) -> bool:
        """Whether a part of the runs, or of the time, is asked for."""
        return self.rule in ("runs", "time")

    @property
    def is_least(self) -> bool:
        """Whether the limit is a lower one."""
        return self.sign in (">=", ">")

    @property
    def worst(self) -> float:
        """The value that breaks the objective whatever its limit."""
        return -math.inf if self.is_least else math.inf

    @property
    def needed(self) -> int:
        """So few replications at least can decide it: an interval of the mean needs two; a quantile, or a
        part of the runs, so many that even if all of them meet the limit the interval does so.
        """
        if self.rule == "every":
            return 1
        if self.rule in ("mean", "time"):
            return 2
        easier = self.share if self.rule == "runs" or self.sign in ("<=", "<") else 1 - self.share
        return least_tries(easier, self.level)

    def meets(self, value: Any) -> Any:
        return _MEETS[self.sign](value, self.limit)

    def remarks(self, run: Run) -> list[str]:
        """What an expert would say of it before any such run."""
        found = []
        whole = self.rule == "time" and self.share == 1
        if whole or (self.metric.column.name == "availability" and self.limit == 1):
            found.append(
                f"{self.text}: an objective of 100 % leaves no error budget: any failure breaks it; ask for "
                "less, such as 99.9 % (Beyer et al. (2016), Site Reliability Engineering, ch. 3)"
            )
        lumps = "run.lump" if run.lump > 1 else "run.lump_rate" if run.lump_rate is not None else None
        if lumps and self.metric.column.name.startswith(("latency", "end_to_end")):
            found.append(
                f"{self.text}: latencies are those of lumps of tuples ({lumps}), which wait and are served "
                "as one, mostly longer than a tuple's: it may be met where it is called broken; without "
                "lumps they are exact, and a run takes longer"
            )
        return found

    def judge(
        self,
        runs: pd.DataFrame,
        recoveries: pd.DataFrame,
        timeline: pd.DataFrame | None = None,
        tasks: pd.DataFrame | None = None,
        *,
        warmup_s: float = 0.0,
    ) -> Judgement:
        """Whether the replications of one scenario meet it; the frames are those of a result.

        ``timeline`` is needed by objectives ``of the time`` (seconds before ``warmup_s`` are left out), and
        ``tasks`` by ``utilisation``. Raises ValueError if one of them is missing.
        """
        frames = {"runs": runs, "recoveries": recoveries, "timeline": timeline, "tasks": tasks}
        table, column = self.metric.table, self.metric.column
        if (frame := frames[table]) is None:
            raise ValueError(f"{self.text}: needs the table {table}")
        if column.name not in frame.columns and len(frame):
            said = f"this scenario has no {column.name} ({column.meaning})"
            return self._judgement(None, notes=(said,))
        values, notes = _sample(self, runs, frame, warmup_s)
        timed = table == "recoveries" and column.name in TIMES
        endings = tuple(frame["ended"]) if timed else ()
        if not values.size:
            return self._judgement(None, notes=notes, endings=endings)
        return _judged(self, values, notes, endings)

    def _judgement(self, value: float | None, n: int = 0, **others: Any) -> Judgement:
        """Without any more to say: that it is unsure."""
        known: dict[str, Any] = {"low": None, "high": None, "verdict": "unsure", "holds": False} | others
        return Judgement(self, value, limit=self.share if self.is_of_parts else self.limit, n=n, **known)


def _parsed(text: str, level: float) -> Objective:
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{shorten(repr(text), 60)} is no objective; write {FORM}")
    name = re.sub(r"[\s-]+", "_", found["name"].lower())
    sign = _SIGNS.get(found["sign"], found["sign"])
    of = found["of"] and found["of"].lower().removeprefix("the ").strip()
    if of not in (None, "runs", "replications", "time"):
        raise ValueError(f"a part is one of runs, or of the time, not of {found['of']}")
    in_time = of == "time"
    metric, statistic = find(name, in_time)
    limit = parse_limit(found["limit"], metric.column)
    share = None if found["share"] is None else parse_share(found["share"])
    if metric.column.name == "availability" and sign == ">" and limit == 1:
        raise ValueError("nothing is available for more than 100 %; ask for less")
    rule, share = _rule(metric, statistic, sign, share, in_time)
    tail = f" in {found['share']} of {found['of']}" if found["share"] else ""
    written = " ".join(f"{found['name']} {sign} {found['limit']}{tail}".split())
    return Objective(written, metric, rule, sign, limit, share, level)


def _rule(
    metric: Metric, statistic: str, sign: str, share: float | None, in_time: bool
) -> tuple[Rule, float]:
    """What of the replications has to meet the limit; raises ValueError if the text says two things."""
    if share is not None:
        if statistic:
            raise ValueError(f"_{statistic} and a part both say what has to meet the limit; leave one out")
        if share == 0:
            raise ValueError("0 % asks for nothing; write a part of more than 0 %")
        if in_time:
            return "time", share
        return ("every", 1.0) if share == 1 else ("runs", share)
    if not statistic:
        alone = sign == "=" or metric.is_asked_of_every_run
        return ("every", 1.0) if alone else ("mean", 1.0)
    if statistic in ("max", "min"):
        if sign not in ("=", *(("<=", "<") if statistic == "max" else (">=", ">"))):
            wanted = "<=" if statistic == "max" else ">="
            raise ValueError(f"_{statistic} goes with {wanted}: of all runs the one that is farthest off")
        return "every", 1.0
    if sign == "=":
        raise ValueError(f"= asks it of every run; leave _{statistic} out, or write <= or >=")
    if statistic == "mean":
        return "mean", 1.0
    q = 0.5 if statistic == "median" else float(Fraction(statistic[1:]) / 100)
    if not q:
        raise ValueError("there is no p0; the least value is _min")
    return "quantile", q


# The replication is the unit of all statistics, since what happens within one is not independent. So a run
# has one value: of its recoveries the mean where the objective speaks of a mean, and else the worst one.
# What was not reached by the end of a run, and all of a run that failed, is worse than any limit; nothing
# of that is left out.


def _sample(
    objective: Objective, runs: pd.DataFrame, frame: pd.DataFrame, warmup_s: float
) -> tuple[Floats, tuple[str, ...]]:
    """One value a replication, in their order; and what is to be said of those that have none."""
    numbers = runs["replication"].to_numpy(np.int64)
    failed = set(numbers[runs["error"].notna().to_numpy()]) if "error" in runs.columns else set()
    notes = [f"{len(failed)} of {len(numbers)} runs failed, and count as broken"] if failed else []
    table, name = objective.metric.table, objective.metric.column.name
    values = frame[name].to_numpy(np.float64) if len(frame) else np.empty(0)
    undefined = np.isnan(values)
    if table == "runs":
        at_most = f"{name.removesuffix('_ms')}_at_most_ms"
        if at_most in frame and objective.sign in ("<=", "<"):
            values = np.where(undefined, frame[at_most].to_numpy(np.float64), values)
        unknown = int(np.isnan(values).sum()) - len(failed)
        if unknown > 0:
            said = objective.metric.column.undefined
            notes.append(f"{unknown} of {len(numbers)} runs have no value ({said}), and count as broken")
        return np.where(np.isnan(values), objective.worst, values), tuple(notes)
    kept = ~undefined
    if table == "recoveries" and len(frame):
        values, kept, more = _recoveries(objective, frame, values)
        notes += more
    elif table == "timeline" and len(frame):
        # A second in which nothing was processed is broken if that is an outage, and says nothing if not.
        backlog, normal, second = (
            frame[name].to_numpy(np.float64) for name in ("backlog", "backlog_without_failures", "second")
        )
        values = np.where(undefined, False, objective.meets(values)).astype(np.float64)
        kept = (second >= warmup_s) & (kept | (backlog > normal))
    of_run: dict[int, list[float]] = {}
    if len(frame):
        for number, value in zip(frame["replication"].to_numpy()[kept], values[kept], strict=True):
            of_run.setdefault(int(number), []).append(value)
    found, without = [], 0
    for number in numbers:
        if number in failed:
            found.append(0.0 if objective.rule == "time" else objective.worst)
        elif (mine := of_run.get(number)) is None:
            without += 1
        elif table == "tasks":  # its busiest one
            found.append(max(mine))
        elif objective.rule in ("mean", "time"):
            found.append(float(np.mean(mine)))
        else:
            found.append(_worst(objective, np.array(mine)))
    if without:
        notes.append(f"{without} of {len(numbers)} runs have nothing of it to judge, and are left out")
    return np.array(found, dtype=np.float64), tuple(notes)


def _recoveries(
    objective: Objective, frame: pd.DataFrame, values: Floats
) -> tuple[Floats, npt.NDArray[np.bool_], list[str]]:
    """Values of recoveries, which count, and notes; undefined is not reached, but for what may be absent."""
    column, undefined = objective.metric.column, np.isnan(values)
    absent = np.zeros(len(frame), dtype=bool)
    if column.passable:
        absent = undefined & ~np.isnan(frame[HEADLINE].to_numpy(np.float64))
    cut_off = int((undefined & ~absent).sum())
    notes = []
    if cut_off:
        notes.append(f"{cut_off} of {len(frame)} recoveries were cut off by the end of the run: broken")
    lossy = int((frame["ended"] == LOSSY).sum()) if column.name in TIMES else 0
    if lossy:
        notes.append(f"{lossy} of {len(frame)} recoveries have lost roots for good, and count all the same")
    if absent.any():
        notes.append(f"{int(absent.sum())} of {len(frame)} recoveries are left out: {column.undefined}")
    return np.where(undefined, objective.worst, values), ~absent, notes


def _worst(objective: Objective, values: Floats) -> float:
    if objective.sign == "=":
        return float(values[np.argmax(np.abs(values - objective.limit))])
    return float(values.min() if objective.is_least else values.max())


def _judged(
    objective: Objective, values: Floats, notes: tuple[str, ...], endings: tuple[str, ...]
) -> Judgement:
    """What values of replications, one at least, say of an objective."""
    n, share, level = values.size, objective.share, objective.level
    hits = int(objective.meets(values).sum())
    found: dict[str, Any] = {}
    more: tuple[str, ...] = ()
    if objective.rule == "every":
        # broken by a single run; if there is none, the bound says how many may break it all the same
        value, holds, sure = _worst(objective, values), hits == n, True
        found = {"breaking": n - hits, "bound": bound_of_fraction(n - hits, n, level)}
    elif objective.rule == "runs":
        value, holds = hits / n, hits >= share * n - _ROUNDING
        low, high = of_fraction(hits, n, level)
        sure = low >= share or high < share
        found = {"low": low, "high": high, "breaking": n - hits}
        more = _more_runs(objective, hits, n, share)
    elif objective.rule == "quantile":
        # the least value that a part of the runs does not exceed, so that none is taken for a better one; an
        # end of the interval that so few runs do not allow is infinite
        value = float(np.sort(values)[max(1, math.ceil(n * share - _ROUNDING)) - 1])
        least, most = quantile_interval(values, share, level)
        low, high = -math.inf if least is None else least, math.inf if most is None else most
        holds, *others = (bool(objective.meets(end)) for end in (value, low, high))
        sure = others == [holds, holds]
        found = {"low": low, "high": high, "breaking": n - hits}
        more = _more_runs(objective, hits, n, 1 - share if objective.is_least else share)
    elif not np.isfinite(values).all():
        value, holds, sure = objective.worst, False, True
    else:
        limit = share if objective.rule == "time" else objective.limit
        value, ends = float(values.mean()), of_mean(values, level)
        each = (value, *(ends or ()))
        if objective.rule == "time":
            holds, *others = (end >= limit - _ROUNDING for end in each)
        else:
            holds, *others = (bool(objective.meets(end)) for end in each)
        sure = others == [holds, holds]
        found = {"low": ends and ends[0], "high": ends and ends[1]}
        more = _more_for_mean(value, limit, ends, n)
    verdict = "unsure" if not sure else "met" if holds else "broken"
    notes = notes if sure else (*notes, *more)
    return objective._judgement(value, n, verdict=verdict, holds=holds, notes=notes, endings=endings, **found)


def _more_runs(objective: Objective, hits: int, n: int, share: float) -> tuple[str, ...]:
    """How many replications would decide it, if as large a part of them met the limit as now."""
    if n < objective.needed:
        return (f"{n} replications are too few to decide it: at least {objective.needed:,} are needed",)
    many = n
    while many < _MOST_NEEDED:
        many = math.ceil(many * 1.1)
        low, high = of_fraction(round(hits / n * many), many, objective.level)
        if low >= share or high < share:
            return (f"about {_rounded(many):,} replications would decide it",)
    return _TOO_NEAR


def _more_for_mean(value: float, limit: float, ends: Interval | None, n: int) -> tuple[str, ...]:
    """The same for a mean, whose interval shrinks with the root of their number."""
    if ends is None:
        return ("a single replication has no interval: at least 2 are needed",)
    gap, half = abs(value - limit), (ends[1] - ends[0]) / 2
    many = n * (half / gap) ** 2 if gap else math.inf
    return (
        _TOO_NEAR
        if many > _MOST_NEEDED
        else (f"about {_rounded(max(many, n + 1)):,} replications would decide it",)
    )


def _rounded(many: float) -> int:
    """Upwards, to two digits: more it is not known."""
    digits = max(0, math.floor(math.log10(many)) - 1)
    return math.ceil(many / 10**digits) * 10**digits


def problems(root: Node) -> Iterator[Problem]:
    """What is wrong with the texts in the block of a scenario's tree; other values are refused elsewhere."""
    block = root.get(KEY)
    entries = block.value if block is not None and isinstance(block.value, list) else []
    for number, entry in enumerate(entries):
        node = entry.get("objective") if entry.is_mapping else entry
        key = f"{KEY}.{number}.objective" if entry.is_mapping else f"{KEY}.{number}"
        if node is not None and isinstance(node.value, str):
            try:
                Objective.parse(node.value, at=node, key=key)
            except ScenarioError as error:
                yield from error.problems
