"""Service level objectives: as they are written, and whether the replications of a scenario meet them.

`check`, plans and the loader (`problems`) call it. What a text means is in `Objective.parse`; another
everyday name, or unit of a limit, is added below; what of the replications is compared with a limit, and when
that is sure, in `Objective.judge`.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tideover.models.job.components import Run
from tideover.models.schema import HEADLINE, LOSSY, TABLES, TIMES, Column, named
from tideover.scenarios.errors import Problem, ScenarioError, shorten
from tideover.scenarios.statistics.intervals import Interval, of_mean, quantile_interval
from tideover.scenarios.yaml_source import Node
from tideover.sim.units import DAY, HOUR, MS, S, parse_duration, parse_rate, parse_size

if TYPE_CHECKING:
    import pandas as pd

# The words of objectives: what they may speak of, how large it has to be, and how sure a part is.

_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_PERCENT = re.compile(rf"({_NUMBER})\s*%")
_PER_HOUR = re.compile(rf"({_NUMBER})\s*/\s*(h|d)")
_COUNT = re.compile(rf"({_NUMBER})(?:\s*([a-z]+))?")
_BARE = re.compile(_NUMBER)


def parse_limit(text: str, column: Column) -> float:
    """The limit in the unit of the column; raises ValueError, which says what is allowed.

    >>> from tideover.models.schema import named
    >>> parse_limit("500 ms", named("recoveries", "catch_up_s"))
    0.5
    >>> parse_limit("99.5 %", named("runs", "availability"))
    0.995
    """
    unit = column.unit
    if unit in ("s", "ms"):
        return parse_duration(text) / (S if unit == "s" else MS)
    if unit == "ratio":
        return parse_share(text)
    if unit == "tuples/s":
        return parse_rate(text)
    if unit == "B":
        return float(parse_size(text))
    if unit == "1/h":
        match = _PER_HOUR.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a price per time; write 4.5/h or 108/d")
        return float(match[1]) * (1 if match[2] == "h" else HOUR / DAY)
    match = _COUNT.fullmatch(text) if unit in COUNTED else _BARE.fullmatch(text)
    if match is None or (match.lastindex == 2 and match[2] not in (unit, unit.removesuffix("s"))):
        raise ValueError(f"{text!r} is not a number of {unit}; write a number, as 0 or 5")
    return float(match[1] if unit in COUNTED else match[0])


def parse_share(text: str) -> float:
    """A percentage as a part of one.

    >>> parse_share("95 %")
    0.95
    """
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a percentage; write a number and %, such as 99.9 %")
    share = Fraction(match[1]) / 100
    if share > 1:
        raise ValueError(f"{text!r} is more than the whole; at most 100 %")
    return float(share)


def of_fraction(hits: int, n: int, level: float) -> Interval:
    """The interval of a probability of which ``hits`` of ``n`` tries were seen: Clopper and Pearson (1934),
    "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26:404-413.
    It covers with at least ``level``.

    >>> [round(end, 4) for end in of_fraction(0, 20, 0.95)]
    [0.0, 0.1684]
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high


def bound_of_fraction(hits: int, n: int, level: float) -> float:
    """The one-sided upper bound of the same, at a level above a half. For no hit it is
    1 - (1 - level)^(1/n), about 3/n at 95 %: the rule of three (Hanley and Lippman-Hand (1983), "If nothing
    goes wrong, is everything all right?", JAMA 249:1743-1745).

    >>> round(bound_of_fraction(0, 100, 0.95), 4)
    0.0295
    """
    return of_fraction(hits, n, 2 * level - 1)[1]


def least_tries(share: float, level: float) -> int:
    """So many tries at least, all of them hits, put the whole interval of ``of_fraction`` at or above
    ``share``, which is less than 1.

    >>> least_tries(0.95, 0.95), least_tries(0.99, 0.95)
    (72, 368)
    """
    return max(1, math.ceil(math.log((1 - level) / 2) / math.log(share) - 1e-9)) if share > 0 else 1


EVERYDAY = {
    "recovery": ("recoveries", HEADLINE),
    "median_latency": ("runs", "end_to_end_median_ms"),
    "mean_latency": ("runs", "end_to_end_mean_ms"),
    "p95_latency": ("runs", "end_to_end_p95_ms"),
    "p99_latency": ("runs", "end_to_end_p99_ms"),
    "max_latency": ("runs", "end_to_end_max_ms"),
    "throughput": ("runs", "throughput_mean_per_s"),
    "wrong_windows": ("runs", "windows_wrong"),
    "missing_windows": ("runs", "windows_missing"),
    "cost": ("runs", "price_per_h"),
    "utilisation": ("tasks", "utilisation"),
}
"""Everyday names, and the table and column that each stands for. Latencies are those that somebody waits:
from a root's first emission, however often it is sent again. ``utilisation``: of the busiest task. This is
the one place of these names; docs/checks.md and the reference list them from here.
"""

EVERYDAY_IN_TIME = {
    "mean_latency": ("timeline", "end_to_end_mean_ms"),
    "max_latency": ("timeline", "end_to_end_max_ms"),
}
"""The same where an objective is to hold for a part of the time."""

COUNTED = ("roots", "windows", "tuples", "hosts", "snapshots")
"""Units of which a whole number is counted; a limit may name them, or be the number alone."""

_ENDINGS = {"s": "_s", "ms": "_ms", "tuples/s": "_per_s", "B": "_bytes", "1/h": "_per_h"}
_MOST_NAMED = 6
_SURELY = 0.85
_NO_MEASURE = ("number", "index")
_STATISTIC = re.compile(r"mean|median|max|min|p[0-9]{1,2}(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Metric:
    """A numeric column of a table of results."""

    table: str
    column: Column

    @property
    def is_asked_of_every_run(self) -> bool:
        """Whether, where no statistic is named, every run is meant: of a count, a maximum or a minimum."""
        return self.column.unit in COUNTED or bool(re.search(r"(^|_)(max|min)(_|$)", self.column.name))


def find(name: str, in_time: bool = False) -> tuple[Metric, str]:
    """Metric and statistic of a name such as ``recovery_p95``; the statistic is empty if none is named.

    ``in_time``: among the columns of the timeline. A column's own name goes before a shorter one's with a
    statistic: ``throughput_min`` is the least of a run's seconds. Raises ValueError, with the nearest name.

    >>> metric, statistic = find("recovery_p95")
    >>> metric.table, metric.column.name, statistic
    ('recoveries', 'time_to_recover_s', 'p95')
    >>> find("throughput_min")[0].column.name
    'throughput_min_per_s'
    """
    known = names(in_time)
    if name in known:
        return known[name], ""
    base, _, statistic = name.rpartition("_")
    if base in known and _STATISTIC.fullmatch(statistic):
        return known[base], statistic
    raise ValueError(f"unknown metric {name!r}; {_hint(name, known)}")


@cache
def names(in_time: bool = False) -> Mapping[str, Metric]:
    """Every name of a metric, and what it means: ``table.column``, the column's name, the same without its
    unit, and the everyday names. Of two columns of one name that of ``runs`` is meant.
    """
    tables = ("timeline",) if in_time else ("runs", "recoveries")
    metrics = [
        Metric(table, column)
        for table in tables
        for column in TABLES[table]
        if column.dtype in ("int64", "float64") and column.unit not in _NO_MEASURE
    ]
    found: dict[str, Metric] = {}
    for form in ("{0}.{1}", "{0}.{2}", "{1}", "{2}"):
        for metric in metrics:
            column = metric.column
            short = column.name.removesuffix(_ENDINGS.get(column.unit, ""))
            found.setdefault(form.format(metric.table, column.name, short), metric)
    for everyday, (table, name) in (EVERYDAY_IN_TIME if in_time else EVERYDAY).items():
        found[everyday] = Metric(table, named(table, name))
    return found


def _hint(name: str, known: Mapping[str, Metric]) -> str:
    """The nearest names, with the statistic that was asked for, wherever it stands."""
    short = [one for one in known if "." not in one]
    first, last = name.split("_")[0], name.split("_")[-1]
    asked = next((step for step in (last, first) if _STATISTIC.fullmatch(step) and step != name), "")
    base = name.removesuffix(f"_{asked}").removeprefix(f"{asked}_") if asked else name
    near = [f"{base}_{asked}"] if asked and base in known else _close(name, short, _SURELY)
    if not near:
        family = {known[one]: one for one in short if base in one.split("_")}
        near = [*family.values()][:_MOST_NAMED]
    if not near:
        near = [f"{one}_{asked}" if asked else one for one in _close(base, short)]
    in_time = "timeline.backlog" in known
    everyday = ", ".join(EVERYDAY_IN_TIME if in_time else EVERYDAY)
    where = "table timeline" if in_time else "tables runs and recoveries"
    listed = f"known: {everyday}, and the numeric columns of the {where}"
    return f"did you mean {' or '.join(near)}? ({listed})" if near else listed


def _close(name: str, known: Sequence[str], cutoff: float = 0.6) -> list[str]:
    return difflib.get_close_matches(name[:100], known, 1, cutoff)


# Objectives, as they are written.

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
