"""One Spark session: embedded in this process by default, or on a cluster."""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tideover
from tideover.scenarios.java import JavaNotFound, find_java, java_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = Path(tideover.__file__).parent

LOG = "spark.log"


CONNECT_S = 5.0
"""How long a cluster may take to answer."""
_ADDRESS = re.compile(r"(?:spark|k8s)://(?:(https?)://)?(.+)")
_PORTS = {"http": 80, "https": 443}


class SparkNotStarted(RuntimeError):
    """Spark did not start, or its cluster could not be reached. The message says why."""


@contextmanager
def spark_session(master: str = "local[*,4]", app_name: str = "tideover") -> Iterator[SparkSession]:
    """A Spark session, stopped at the end of the block.

    If this process has one already (a notebook on a cluster has), that one is used as it is and left running.

    Raises:
        JavaNotFound: there is no Java that Spark can run on
        SparkNotStarted: Spark's process ended at once, or the cluster cannot be reached or does not want us
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        yield SparkSession.builder.getOrCreate()
        return

    interrupt = signal.getsignal(signal.SIGINT)
    context = _start(master, app_name)
    session = SparkSession(context)
    try:
        yield session
    except Exception as error:
        if _has_ended(context._gateway):
            error.add_note(f"Spark's process has ended. It printed last:\n{_last_words()}")
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


def is_embedded(master: str) -> bool:
    """Whether this master runs the tasks inside the driver's own process."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def reach(master: str) -> None:
    """See whether somebody listens at a cluster's address; raises SparkNotStarted if nobody does.

    Spark itself tries for a minute or more, and then ends with an error of its own making. Of ``yarn`` the
    address is in the cluster's files, so that is left to Spark.
    """
    match = _ADDRESS.fullmatch(master)
    if match is None:
        return
    scheme, rest = match.groups()
    reasons = []
    for address in rest.split("/")[0].split(","):
        host, colon, port = address.rpartition(":")
        if not colon:
            host, port = address, str(_PORTS.get(scheme or "https"))
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        except (OSError, ValueError, OverflowError) as error:
            reasons.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise SparkNotStarted(f"the Spark cluster {master} cannot be reached: {'; '.join(reasons)}")


def settings(master: str, app_name: str, scratch: Path) -> dict[str, str]:
    """Spark's settings, each with its reason."""
    chosen = {
        "spark.master": master,
        "spark.app.name": app_name,
        # Its page would open a port, and costs time at the start.
        "spark.ui.enabled": "false",
        # We draw our own progress bar.
        "spark.ui.showConsoleProgress": "false",
        # Warnings at the start are about clusters and native libraries; errors reach us as exceptions.
        "spark.log.level": "ERROR",
        # Columns go to and from pandas as they are, not row by row.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # A time means the same wherever the driver stands.
        "spark.sql.session.timeZone": "UTC",
        # Tables are never saved by name; without this, a directory appears wherever the user happens to be.
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
    }
    if is_embedded(master):
        chosen |= {
            # Out of the network's reach; and it starts even where the host's own name does not resolve.
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Spark only hands work to Python here: a compiler that does not optimise much, and one thread for
            # garbage, leave the cores to the simulation. Halves the time until the first task ends.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            # Shuffle files go away with the session.
            "spark.local.dir": str(scratch / "local"),
            # 200, the default, means 200 tiny tasks for a table of a few hundred runs.
            "spark.sql.shuffle.partitions": "8",
        }
    return chosen


def environment(master: str, java: Mapping[str, str]) -> dict[str, str | None]:
    """What Spark's process finds in its environment beside ours; None: taken out."""
    if not is_embedded(master):
        return {**java}  # whoever has a cluster has set up the rest
    path = os.pathsep.join(filter(None, [str(_PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    return {
        **java,
        # The workers are this very Python, with what is installed for it, ...
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # ... and find Tideover even when it isn't installed.
        "PYTHONPATH": path,
        # Another Spark's jars and settings, left from some other work, must not mix with ours.
        "SPARK_HOME": None,
        "SPARK_CONF_DIR": None,
        "SPARK_LOCAL_DIRS": None,
        "SPARK_LOCAL_IP": None,
        "SPARK_REMOTE": None,
        "PYSPARK_SUBMIT_ARGS": None,
    }


def _start(master: str, app_name: str) -> Any:
    """A SparkContext. Its process is the one of the session before, if there was one."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    reach(master)
    java = find_java()
    if java is None:
        raise JavaNotFound()
    scratch = _scratch()
    conf = SparkConf(loadDefaults=False).setAll(list(settings(master, app_name, scratch).items()))
    with _environment(environment(master, java_environment(java))):
        gateway = SparkContext._gateway
        if gateway is None:
            # What it prints goes to a file: our standard output may be one JSON object, and nothing else.
            with (scratch / LOG).open("ab") as log:
                try:
                    gateway = launch_gateway(conf, {"stdout": log, "stderr": log})
                except PySparkRuntimeError as error:
                    raise SparkNotStarted(
                        f"Spark did not start. It printed last:\n{_last_words()}"
                    ) from error
        try:
            context = SparkContext(conf=conf, gateway=gateway)
            if not is_embedded(master):
                _send_tideover(context, scratch)
        except Py4JError as error:  # its own message is about what broke in Spark then, not about why
            if (begun := SparkContext._active_spark_context) is not None:
                begun.stop()
            raise SparkNotStarted(f"Spark gave up on {master}. It printed last:\n{_last_words()}") from error
    return context


def _send_tideover(context: Any, scratch: Path) -> None:
    """The workers are elsewhere: they get Tideover from us, and need its dependencies installed."""
    context.addPyFile(shutil.make_archive(str(scratch / "tideover"), "zip", _PACKAGE.parent, _PACKAGE.name))


@functools.cache
def _scratch() -> Path:
    """Spark's own directory. Spark's process remembers its name, and both go away with this process."""
    directory = tempfile.TemporaryDirectory(prefix="tideover-spark-", ignore_cleanup_errors=True)
    atexit.register(directory.cleanup)
    return Path(directory.name)


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """``os.environ`` with these changes, for the length of the block."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _has_ended(gateway: Any) -> bool:
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None


def _last_words(size: int = 2000) -> str:
    return (_scratch() / LOG).read_bytes()[-size:].decode(errors="replace").strip() or "(nothing)"
