"""What runs Spark's jobs: how wide it is, how far a job is, how to stop one; with a master, or with Connect.

A job is known by a tag. Whatever a thread asks of Spark inside ``tagged`` belongs to that tag.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any

_MANY = 1 << 16
"""More rows than a cluster has cores."""


@contextmanager
def cluster(session: Any) -> Iterator[Cluster]:
    """What is behind a session."""
    if not type(session).__module__.startswith("pyspark.sql.connect."):
        yield _Classic(session)
        return
    found = _Connect(session)
    session.registerProgressHandler(found.hear)
    try:
        yield found
    finally:
        session.removeProgressHandler(found.hear)


class Cluster(ABC):
    """A session's cores and jobs."""

    def __init__(self, session: Any) -> None:
        self.session = session

    @cached_property
    @abstractmethod
    def cores(self) -> int:
        """How many tasks run at a time, by Spark's own account when it is first asked."""

    @contextmanager
    @abstractmethod
    def tagged(self, tag: str) -> Iterator[None]:
        """What this thread asks of Spark in the block is one job, known by the tag."""

    @abstractmethod
    def interrupt(self, tag: str) -> None:
        """Stop the job with this tag, if it is under way; who waits for it gets Spark's exception."""

    @abstractmethod
    def fraction(self, tag: str) -> float:
        """How much of a job under way is done: tasks done by tasks known, 0 to 1."""


class _Classic(Cluster):
    """A session that drives its executors itself. A tag is a job group: Spark tells of jobs by these."""

    @cached_property
    def cores(self) -> int:
        return int(self.session.sparkContext.defaultParallelism)

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        context = self.session.sparkContext
        context.setJobGroup(tag, tag)
        try:
            yield
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
            context.setLocalProperty("spark.job.description", None)

    def interrupt(self, tag: str) -> None:
        self.session.sparkContext.cancelJobGroup(tag)

    def fraction(self, tag: str) -> float:
        tracker = self.session.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(tag)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return _share((stage.numCompletedTasks, stage.numTasks) for stage in stages if stage)


class _Connect(Cluster):
    """A session at a Spark Connect server, which reports of each operation every other second."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._done: dict[str, float] = {}
        self._lock = Lock()

    @cached_property
    def cores(self) -> int:
        from pyspark.sql import functions

        # Spark cuts a range into as many parts as it has cores; it does not say the number itself.
        parts = self.session.range(_MANY).select(functions.spark_partition_id().alias("part"))
        return int(parts.agg(functions.max("part")).first()[0]) + 1

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        self.session.addTag(tag)
        try:
            yield
        finally:
            self.session.removeTag(tag)
            with self._lock:
                self._done.pop(tag, None)

    def interrupt(self, tag: str) -> None:
        self.session.interruptTag(tag)

    def fraction(self, tag: str) -> float:
        with self._lock:
            return self._done.get(tag, 0.0)

    def hear(self, stages: Iterable[Any] | None, **_: object) -> None:
        """Called in the thread that waits for the operation, whose tags are those of the operation."""
        done = _share((stage.num_completed_tasks, stage.num_tasks) for stage in stages or ())
        with self._lock:
            self._done |= dict.fromkeys(self.session.getTags(), done)


def _share(tasks: Iterable[tuple[int, int]]) -> float:
    done, known = map(sum, zip(*tasks, strict=True)) if (tasks := list(tasks)) else (0, 0)
    return done / known if known else 0.0
