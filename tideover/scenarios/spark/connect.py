"""A session at a Spark Connect server: only questions and answers go over the wire, and no Java runs here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.scenarios.spark.conf import REQUIRED
from tideover.scenarios.spark.masters import CONNECT_S, SparkNotStarted, reach_server, shown
from tideover.scenarios.spark.package import NAME, PYTHON, zipped
from tideover.scenarios.spark.scratch import changed_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = {"max_retries": 8, "max_backoff": 4000}
"""The client's own patience with a server that has gone away is ten minutes; with this, half a minute."""
_COORDINATED = "spark.hadoop.outputCommitCoordination.enabled"
_OF_SERVER = {_COORDINATED, "spark.submit.deployMode"}
"""Settings that a server has for all of its sessions."""
_WORKERS_PYTHON = "spark.sql.execution.pyspark.python"
_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""By this variable PySpark's functions know which kind of column they are to make."""


@contextmanager
def connected(remote: str, conf: Mapping[str, str], archive: Path | None) -> Iterator[SparkSession]:
    """A session of its own at this server, which has Tideover for its workers; it ends with the block.

    Raises SparkNotStarted if packages for it are missing, nobody answers, or the server refuses something.
    """
    session = _connect(remote)
    try:
        _set_up(session, remote, conf, archive)
        with changed_environment({_MODE: "1"}):
            yield session
    finally:
        session.stop()


def _connect(remote: str) -> Any:
    try:
        import grpc
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise SparkNotStarted(
            f"Spark Connect needs packages that are not installed ({_first_line(error)}). "
            'Mend it by: pip install "tideover[connect]"'
        ) from error
    reach_server(remote)
    try:
        channel = DefaultChannelBuilder(remote).toChannel()
    except PySparkException as error:
        raise SparkNotStarted(f"{shown(remote)}: {_first_line(error)}") from error
    with channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=CONNECT_S)
        except grpc.FutureTimeoutError:
            raise SparkNotStarted(
                f"{shown(remote)} answers, but not as a Spark Connect server does within {CONNECT_S:g} s "
                "(is it the right port? does it want use_ssl=true, or not?)"
            ) from None
    session = SparkSession.builder.remote(remote).create()
    session.client.set_retry_policies([DefaultPolicy(**_PATIENCE)])
    return session


def _set_up(session: Any, remote: str, conf: Mapping[str, str], archive: Path | None) -> None:
    from pyspark.errors import PySparkException

    try:
        session.version  # noqa: B018  the first question to the server
        session.addArtifacts(str(zipped()), pyfile=True)
        if archive is not None:
            session.addArtifacts(f"{archive}#{NAME}", archive=True)
    except PySparkException as error:
        raise SparkNotStarted(f"the server {shown(remote)} refuses us: {_first_line(error)}") from error
    if session.conf.get(_COORDINATED, REQUIRED[_COORDINATED][0]) != REQUIRED[_COORDINATED][0]:
        raise SparkNotStarted(f"the server {shown(remote)} has {_COORDINATED} off: a row could count twice")
    required = {key: value for key, (value, _) in REQUIRED.items() if key not in _OF_SERVER}
    packages = {} if archive is None else {_WORKERS_PYTHON: PYTHON}
    for key, value in (required | packages | {**conf}).items():
        try:
            # What is meant for Hadoop goes there from a session under its own name alone.
            session.conf.set(key.removeprefix("spark.hadoop."), value)
        except PySparkException as error:
            raise SparkNotStarted(
                f"the server {shown(remote)} does not let a session set {key}: {_first_line(error)} "
                "(memory, cores and the like are set where the server is started)"
            ) from error


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
