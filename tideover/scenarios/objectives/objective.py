"""An objective as it is written, and what it means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tideover.scenarios.errors import Problem, ScenarioError, shorten
from tideover.scenarios.nodes import Node
from tideover.scenarios.objectives.judging import Judgement, judge
from tideover.scenarios.objectives.limits import parse_limit, parse_share
from tideover.scenarios.objectives.metrics import Metric, find
from tideover.scenarios.objectives.terms import LEVEL, Rule, Terms

if TYPE_CHECKING:
    import pandas as pd

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
    """Raises ValueError."""
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
