"""Spark's own process, which this one starts and talks to: a session that is embedded or drives a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.scenarios.java import JavaNotFound, find_java, java_environment
from tideover.scenarios.spark.masters import SparkNotStarted, is_embedded, reach
from tideover.scenarios.spark.package import NAME, PYTHON, zipped
from tideover.scenarios.spark.scratch import LOG, changed_environment, last_words, scratch
from tideover.scenarios.spark.settings import environment, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Launch = tuple[bool, dict[str, str], Path | None]

END_S = 10.0
"""How long Spark's process may take to end."""


@contextmanager
def started(
    master: str, app_name: str, conf: Mapping[str, str], archive: Path | None
) -> Iterator[SparkSession]:
    """A session with this master, stopped at the end of the block; ``archive``: packages for its workers."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    interrupt = signal.getsignal(signal.SIGINT)
    context = _start(master, app_name, conf, archive)
    session = SparkSession(context)
    try:
        yield session
    except Exception as error:
        if _has_ended(context._gateway):
            error.add_note(f"Spark's process has ended. It printed last:\n{last_words()}")
        raise
    finally:
        if _has_ended(context._gateway):
            # There is nobody left to stop, and the next session must not take this one for alive.
            SparkContext._active_spark_context = SparkSession._instantiatedSession = None
            SparkContext._gateway = SparkContext._jvm = None
        else:
            session.stop()
        # PySpark puts its own handler in, and leaves it there.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


def _start(master: str, app_name: str, conf: Mapping[str, str], archive: Path | None) -> Any:
    """A SparkContext. Its process is the one of the session before, if that one was started alike."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext

    reach(master)
    java = find_java()
    if java is None:
        raise JavaNotFound()
    asked = settings(master, app_name, scratch()) | dict(conf)
    variables = environment(master, java_environment(java))
    if archive is not None:
        asked["spark.archives"] = f"{archive}#{NAME}"
        if own := os.environ.get("PYSPARK_PYTHON"):
            asked["spark.executorEnv.TIDEOVER_PYTHON"] = own
        variables["PYSPARK_PYTHON"] = f"./{PYTHON}"
    with changed_environment(variables):
        gateway = _gateway(asked, (is_embedded(master), dict(conf), archive))
        # Made only now: it may hold on to the process that was there before.
        spark_conf = SparkConf(loadDefaults=False).setAll(list(asked.items()))
        try:
            context = SparkContext(conf=spark_conf, gateway=gateway)
            if not is_embedded(master):
                context.addPyFile(str(zipped()))
        except Py4JError as error:  # its own message is about what broke in Spark then, not about why
            if (begun := SparkContext._active_spark_context) is not None:
                begun.stop()
            raise SparkNotStarted(f"Spark gave up on {master}. It printed last:\n{last_words()}") from error
    return context


_launched: _Launch | None = None
"""What Spark's process was started with: embedded or not, and what else a user says."""


def _gateway(asked: Mapping[str, str], launch: _Launch) -> Any:
    """Spark's process, with no context in it.

    It keeps what it was started with as defaults of its own, so one that was started otherwise is ended.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    global _launched
    if SparkContext._gateway is not None and launch == _launched:
        return SparkContext._gateway
    if SparkContext._gateway is not None:
        _end(SparkContext._gateway)
        SparkContext._gateway = SparkContext._jvm = None
    # What it prints goes to a file: our standard output may be one JSON object, and nothing else.
    with (scratch() / LOG).open("ab") as log:
        try:
            gateway = launch_gateway(
                SparkConf(loadDefaults=False).setAll(list(asked.items())), {"stdout": log, "stderr": log}
            )
        except PySparkRuntimeError as error:
            raise SparkNotStarted(f"Spark did not start. It printed last:\n{last_words()}") from error
    _launched = launch
    return gateway


def _end(gateway: Any) -> None:
    process = getattr(gateway, "proc", None)
    gateway.shutdown()
    if process is None:
        return
    process.stdin.close()  # it ends with its input
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _has_ended(gateway: Any) -> bool:
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None
