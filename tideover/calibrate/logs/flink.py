"""Flink: a JobManager's logs, REST's checkpoints and exceptions, and its configuration."""

from __future__ import annotations

from collections.abc import Sequence

from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import Findings

WHAT = "a Flink JobManager's log, with REST's checkpoints and exceptions and config.yaml beside it"


def recognises(file: LogFile) -> str:
    return "log" if b"org.apache.flink." in file.head else ""


def read(files: Sequence[tuple[str, LogFile]]) -> list[Findings]:
    return []
