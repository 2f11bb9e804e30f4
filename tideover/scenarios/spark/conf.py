"""Spark settings that a user gives (``--conf``): which are refused, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tideover.scenarios.errors import Problem, ScenarioError

REQUIRED: dict[str, tuple[str, str]] = {
    "spark.sql.session.timeZone": ("UTC", "a time means the same wherever the driver and the workers stand"),
    "spark.sql.execution.arrow.pyspark.enabled": (
        "true",
        "columns go to and from pandas as they are, with nothing guessed from their rows",
    ),
    "spark.sql.files.maxRecordsPerFile": ("0", "the runs of one task are one file"),
    "spark.hadoop.outputCommitCoordination.enabled": (
        "true",
        "of several attempts of one task, one may hand in its rows",
    ),
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": (
        "1",
        "the other one shows a task's files before all tasks are done",
    ),
    "spark.submit.deployMode": ("client", "the driver is this process"),
}
"""Settings that Tideover makes itself, and cannot do without: the value, and what holds by it."""

_COMMITTERS = {
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
        "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    ),
    "spark.sql.parquet.output.committer.class": (
        "org.apache.parquet.hadoop.ParquetOutputCommitter",
        "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
    ),
}
"""How a task's files become part of the output: those of which it is known that one attempt counts."""

_ELSEWHERE = {
    "spark.master": "it is what master (--master) says",
    "spark.remote": "it is what remote (--remote) says",
    "spark.api.mode": "remote (--remote) says whether Spark Connect is used",
    "spark.archives": "an archive of packages goes with archive (--archive)",
}
_NAME = re.compile(r"spark\.[^\s=,]+")


def parse(texts: Iterable[str], of: str = "--conf") -> dict[str, str]:
    """``key=value`` texts as settings; raises ScenarioError, with a problem for each that is none.

    >>> parse(["spark.executor.memory=2g", "spark.driver.extraJavaOptions=-Da=b"])
    {'spark.executor.memory': '2g', 'spark.driver.extraJavaOptions': '-Da=b'}
    """
    settings: dict[str, str] = {}
    problems = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            said = "is not a setting; allowed: key=value, as in spark.executor.memory=2g"
            problems.append(Problem(of, None, repr(text), said))
        elif settings.setdefault(key.strip(), value.strip()) != value.strip():
            problems.append(Problem(of, None, key.strip(), "is given twice, with different values"))
    if problems:
        raise ScenarioError(problems)
    return check(settings, of)


def check(conf: Mapping[str, Any], of: str = "conf") -> dict[str, str]:
    """Settings as Spark takes them, texts; raises ScenarioError for those that no sweep could work with.

    >>> check({"spark.speculation": True, "spark.cores.max": 4})
    {'spark.speculation': 'true', 'spark.cores.max': '4'}
    """
    settings = {key: _text(value) for key, value in conf.items()}
    found = [(key, _refused(key, value)) for key, value in settings.items()]
    if problems := [Problem(of, None, key or "(nothing)", said) for key, said in found if said is not None]:
        raise ScenarioError(problems)
    return settings


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(key: str, value: str) -> str | None:
    """Why a setting is refused, or None."""
    if _NAME.fullmatch(key) is None:
        return "is no setting of Spark's; allowed: names that begin with spark., as spark.executor.memory"
    if not value:
        return "has no value; allowed: key=value, as in spark.executor.memory=2g"
    if key in _ELSEWHERE:
        return f"is not set here: {_ELSEWHERE[key]}"
    if key in REQUIRED and value != REQUIRED[key][0]:
        needed, why = REQUIRED[key]
        return f"{value!r} would break a sweep; allowed: {needed} ({why})"
    if key in _COMMITTERS and value not in _COMMITTERS[key]:
        allowed = " or ".join(_COMMITTERS[key])
        return f"of {value!r} nobody knows whether a task's rows could count twice; allowed: {allowed}"
    return None
