"""Service level objectives: as they are written, and whether the replications of a scenario meet them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.config import Scenario
from tideover.models.schema import HEADLINE, LOSSY, TIMES
from tideover.scenarios.errors import Problem, ScenarioError, shorten
from tideover.scenarios.objectives import terms
from tideover.scenarios.objectives.terms import LEVEL, Metric, Rule, Terms, find, parse_limit, parse_share
from tideover.scenarios.statistics.intervals import of_mean, quantile_interval
from tideover.scenarios.yaml_source import Node, Origin

if TYPE_CHECKING:
    import pandas as pd


# The replication is the unit of all statistics, since what happens within one is not independent. So a run
# has one value: of its recoveries the mean where the objective speaks of a mean, and else the worst one.
# What was not reached by the end of a run, and all of a run that failed, is worse than any limit; nothing
# of that is left out.

Floats = npt.NDArray[np.float64]
Verdict = Literal["met", "broken", "unsure"]

_MAY_BE_ABSENT = ("state_recovery_s", "sink_spacing_s")
_LATENCIES = ("latency_ms", "end_to_end_ms")
_ROUNDING = 1e-9
_MOST_NEEDED = 1_000_000


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

    objective: Terms
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


class _Sample(NamedTuple):
    """One value a replication, in their order; and what is to be said of those that have none."""

    values: Floats
    notes: tuple[str, ...] = ()


def judge(objective: Terms, frames: Mapping[str, pd.DataFrame | None], warmup_s: float) -> Judgement:
    """Judge the replications of one scenario; raises ValueError if a frame is missing that is needed."""
    table = objective.metric.table
    frame, runs = frames[table], frames["runs"]
    if frame is None or runs is None:
        raise ValueError(f"{objective.text}: needs the table {table}")
    if objective.metric.column.name not in frame.columns and len(frame):
        column = objective.metric.column
        return _nothing(objective, (f"this scenario has no {column.name} ({column.meaning})",))
    sample = _samples(objective, runs, frame, warmup_s)
    if not sample.values.size:
        found = _nothing(objective, sample.notes)
    else:
        judging = {"every": _every, "runs": _part_of_runs, "quantile": _quantile}
        found = judging.get(objective.rule, _mean)(objective, sample)
    return replace(found, endings=tuple(frame["ended"])) if _is_told_with_endings(objective) else found


def _is_told_with_endings(objective: Terms) -> bool:
    return objective.metric.table == "recoveries" and objective.metric.column.name in TIMES


def _nothing(objective: Terms, notes: tuple[str, ...]) -> Judgement:
    """No run says anything of it."""
    limit = objective.share if objective.rule in ("runs", "time") else objective.limit
    return Judgement(objective, None, None, None, limit, 0, "unsure", False, notes=notes)


def _samples(objective: Terms, runs: pd.DataFrame, frame: pd.DataFrame, warmup_s: float) -> _Sample:
    numbers = runs["replication"].to_numpy(np.int64)
    failed = set(numbers[runs["error"].notna().to_numpy()]) if "error" in runs.columns else set()
    notes = [f"{len(failed)} of {len(numbers)} runs failed, and count as broken"] if failed else []
    if objective.metric.table == "runs":
        name = objective.metric.column.name
        values = frame[name].to_numpy(np.float64)
        at_most = f"{name.removesuffix('_ms')}_at_most_ms"
        if at_most in frame and objective.sign in ("<=", "<"):
            values = np.where(np.isnan(values), frame[at_most].to_numpy(np.float64), values)
        unknown = int(np.isnan(values).sum()) - len(failed)
        if unknown > 0:
            said = objective.metric.column.undefined
            notes.append(f"{unknown} of {len(numbers)} runs have no value ({said}), and count as broken")
        return _Sample(np.where(np.isnan(values), objective.worst, values), tuple(notes))
    rows = _rows(objective, frame, warmup_s)
    of_run = _by_run(frame["replication"].to_numpy(np.int64)[rows.kept], rows.values[rows.kept])
    broken = 0.0 if objective.rule == "time" else objective.worst
    found, without = [], 0
    for number in numbers:
        if number in failed:
            found.append(broken)
        elif number in of_run:
            found.append(_reduced(objective, of_run[number]))
        else:
            without += 1
    notes += rows.notes
    if without:
        notes.append(f"{without} of {len(numbers)} runs have nothing of it to judge, and are left out")
    return _Sample(np.array(found, dtype=np.float64), tuple(notes))


class _Rows(NamedTuple):
    """A value for each row of a table, and which rows count."""

    values: Floats
    kept: npt.NDArray[np.bool_]
    notes: tuple[str, ...] = ()


def _rows(objective: Terms, frame: pd.DataFrame, warmup_s: float) -> _Rows:
    if not len(frame):
        return _Rows(np.empty(0), np.empty(0, dtype=bool))
    values = frame[objective.metric.column.name].to_numpy(np.float64)
    undefined = np.isnan(values)
    if objective.metric.table == "recoveries":
        return _recoveries(objective, frame, values, undefined)
    if objective.metric.table == "timeline":
        # A second in which nothing was processed is broken if that is an outage, and says nothing if not.
        backlog, normal, second = (
            frame[name].to_numpy(np.float64) for name in ("backlog", "backlog_without_failures", "second")
        )
        met = np.where(undefined, False, objective.meets(values))
        return _Rows(met.astype(np.float64), (second >= warmup_s) & (~undefined | (backlog > normal)))
    return _Rows(values, ~undefined)


def _recoveries(
    objective: Terms, frame: pd.DataFrame, values: Floats, undefined: npt.NDArray[np.bool_]
) -> _Rows:
    """What is undefined was not reached, but for what a recovery may be without."""
    column = objective.metric.column
    absent = np.zeros(len(frame), dtype=bool)
    if column.name in _MAY_BE_ABSENT or column.record[:1] in [(name,) for name in _LATENCIES]:
        absent = undefined & ~np.isnan(frame[HEADLINE].to_numpy(np.float64))
    cut_off = int((undefined & ~absent).sum())
    notes = []
    if cut_off:
        notes.append(f"{cut_off} of {len(frame)} recoveries were cut off by the end of the run: broken")
    lossy = int((frame["ended"] == LOSSY).sum()) if _is_told_with_endings(objective) else 0
    if lossy:
        notes.append(f"{lossy} of {len(frame)} recoveries have lost roots for good, and count all the same")
    if absent.any():
        notes.append(f"{int(absent.sum())} of {len(frame)} recoveries are left out: {column.undefined}")
    return _Rows(np.where(undefined, objective.worst, values), ~absent, tuple(notes))


def _by_run(numbers: npt.NDArray[np.int64], values: Floats) -> dict[int, Floats]:
    order = np.argsort(numbers, kind="stable")
    found, first = np.unique(numbers[order], return_index=True)
    return dict(zip(found.tolist(), np.split(values[order], first[1:]), strict=bool(len(found))))


def _reduced(objective: Terms, values: Floats) -> float:
    """One value of a run: its busiest task, or the mean of its recoveries or seconds, or its worst one."""
    if objective.metric.table == "tasks":
        return float(values.max())
    if objective.rule in ("mean", "time"):
        return float(values.mean())
    return _worst(objective, values)


def _worst(objective: Terms, values: Floats) -> float:
    if objective.sign == "=":
        return float(values[np.argmax(np.abs(values - objective.limit))])
    return float(values.min() if objective.sign in (">=", ">") else values.max())


def _every(objective: Terms, sample: _Sample) -> Judgement:
    """Broken by a single run. If there is none, the bound says how many may break it all the same."""
    n = sample.values.size
    breaking = n - int(objective.meets(sample.values).sum())
    holds = breaking == 0
    return Judgement(
        objective,
        _worst(objective, sample.values),
        None,
        None,
        objective.limit,
        n,
        "met" if holds else "broken",
        holds,
        breaking,
        terms.bound_of_fraction(breaking, n, objective.level),
        sample.notes,
    )


def _part_of_runs(objective: Terms, sample: _Sample) -> Judgement:
    n = sample.values.size
    hits = int(objective.meets(sample.values).sum())
    low, high = terms.of_fraction(hits, n, objective.level)
    holds = hits >= objective.share * n - _ROUNDING
    verdict = _verdict(holds, low >= objective.share or high < objective.share)
    notes = (*sample.notes, *_more_runs(objective, verdict, hits, n, objective.share))
    return Judgement(
        objective, hits / n, low, high, objective.share, n, verdict, holds, n - hits, None, notes
    )


def _mean(objective: Terms, sample: _Sample) -> Judgement:
    """Of the runs' values, or of their parts of the time, with its interval."""
    values, n = sample.values, sample.values.size
    limit = objective.share if objective.rule == "time" else objective.limit
    if not np.isfinite(values).all():
        note = sample.notes
        return Judgement(objective, objective.worst, None, None, limit, n, "broken", False, None, None, note)
    value, ends = float(values.mean()), of_mean(values, objective.level)
    if objective.rule == "time":
        meets = [end >= limit - _ROUNDING for end in (value, *(ends or ()))]
    else:
        meets = [bool(objective.meets(end)) for end in (value, *(ends or ()))]
    verdict = _verdict(meets[0], ends is not None and len({*meets}) == 1)
    notes = (*sample.notes, *(_more_for_mean(value, limit, ends, n) if verdict == "unsure" else ()))
    low, high = ends or (None, None)
    return Judgement(objective, value, low, high, limit, n, verdict, meets[0], None, None, notes)


def _quantile(objective: Terms, sample: _Sample) -> Judgement:
    """The least value that a part ``share`` of the runs does not exceed, so that none is taken for a better
    one. An end of the interval that so few runs do not allow is infinite.
    """
    values, n, limit = sample.values, sample.values.size, objective.limit
    value = float(np.sort(values)[max(1, math.ceil(n * objective.share - _ROUNDING)) - 1])
    ends = quantile_interval(values, objective.share, objective.level)
    low = -math.inf if ends[0] is None else ends[0]
    high = math.inf if ends[1] is None else ends[1]
    meets = [bool(objective.meets(end)) for end in (value, low, high)]
    verdict = _verdict(meets[0], len({*meets}) == 1)
    hits = int(objective.meets(values).sum())
    share = objective.share if objective.worst > 0 else 1 - objective.share
    notes = (*sample.notes, *_more_runs(objective, verdict, hits, n, share))
    return Judgement(objective, value, low, high, limit, n, verdict, meets[0], n - hits, None, notes)


def _verdict(holds: bool, sure: bool) -> Verdict:
    return "unsure" if not sure else "met" if holds else "broken"


def _more_runs(objective: Terms, verdict: Verdict, hits: int, n: int, share: float) -> tuple[str, ...]:
    """How many replications would decide it, if as large a part of them met the limit as now."""
    if verdict != "unsure":
        return ()
    if n < objective.needed:
        return (f"{n} replications are too few to decide it: at least {objective.needed:,} are needed",)
    many = n
    while many < _MOST_NEEDED:
        many = math.ceil(many * 1.1)
        low, high = terms.of_fraction(round(hits / n * many), many, objective.level)
        if low >= share or high < share:
            return (f"about {_rounded(many):,} replications would decide it",)
    return ("it is too near to its limit to be decided by more replications",)


def _more_for_mean(value: float, limit: float, ends: terms.Interval | None, n: int) -> tuple[str, ...]:
    """The same for a mean, whose interval shrinks with the root of their number."""
    if ends is None:
        return ("a single replication has no interval: at least 2 are needed",)
    gap, half = abs(value - limit), (ends[1] - ends[0]) / 2
    many = n * (half / gap) ** 2 if gap else math.inf
    if many > _MOST_NEEDED:
        return ("it is too near to its limit to be decided by more replications",)
    return (f"about {_rounded(max(many, n + 1)):,} replications would decide it",)


def _rounded(many: float) -> int:
    """Upwards, to two digits: more it is not known."""
    digits = max(0, math.floor(math.log10(many)) - 1)
    return math.ceil(many / 10**digits) * 10**digits


FORM = "METRIC[_STATISTIC] <= LIMIT [in 95 % of runs], as in recovery_p95 <= 20 s"

_FORM = re.compile(
    r"\s*(?P<name>[A-Za-z][A-Za-z0-9_. -]*?)\s*(?P<sign><=|>=|==|=|<|>|≤|≥)\s*(?P<limit>.+?)"
    r"(?:\s+in\s+(?P<share>\S+?\s*%)\s+of\s+(?P<of>\S.*?))?\s*"
)
_SIGNS = {"==": "=", "≤": "<=", "≥": ">="}


@dataclass(frozen=True)
class Objective(Terms):
    """What is asked of a run, as it was written (``text``), and in its terms."""

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
        return judge(self, frames, warmup_s)


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
        alone = sign == "=" or metric.is_count or metric.is_extreme
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


KEY = "slo"


def objectives_of(scenario: Scenario) -> list[Objective]:
    """The objectives that a scenario names; raises ScenarioError for one that is none, which only a scenario
    that was not loaded can have.
    """
    return [Objective.parse(one.objective, one.level) for one in scenario.slo]


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


def read(texts: Sequence[str], source: str) -> list[Objective]:
    """The objectives of texts that did not come in a file but from ``source``; raises ScenarioError with all
    that is wrong.
    """
    found, wrong = [], []
    for text in texts:
        try:
            found.append(Objective.parse(text, at=Node(text, Origin(source)), key=text or repr(text)))
        except ScenarioError as error:
            wrong += error.problems
    if wrong:
        raise ScenarioError(wrong)
    return found
