"""Where Spark runs and how it is set up, each setting with its reason.

`session` starts Spark with these; the commands check here what users give (``--conf``, ``--master``).
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tideover
from tideover.scenarios.errors import Problem, ScenarioError

if TYPE_CHECKING:
    import pyarrow as pa


PACKAGE = Path(tideover.__file__).parent


def settings(master: str, app_name: str, scratch: Path) -> dict[str, str]:
    """Spark's settings, each with its reason."""
    chosen = {key: value for key, (value, _) in REQUIRED.items()}
    chosen |= {
        "spark.master": master,
        "spark.app.name": app_name,
        # Its page would open a port, and costs time at the start.
        "spark.ui.enabled": "false",
        # We draw our own progress bar.
        "spark.ui.showConsoleProgress": "false",
        # Warnings at the start are about clusters and native libraries; errors reach us as exceptions.
        "spark.log.level": "ERROR",
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
            # Enough for the summary of a million runs; with more, only garbage lies about for longer.
            "spark.driver.memory": "640m",
            # Shuffle files go away with the session.
            "spark.local.dir": str(scratch / "local"),
            # 200, the default, means 200 tiny tasks for a table of a few hundred runs.
            "spark.sql.shuffle.partitions": "8",
        }
    return chosen


def environment(master: str, java: Mapping[str, str]) -> dict[str, str | None]:
    """What Spark's process finds in its environment beside ours; None: taken out."""
    if not is_embedded(master):
        # Whoever has a cluster has set up the rest. A local one has its workers here, where this Python is.
        if master.startswith("local-cluster") and "PYSPARK_PYTHON" not in os.environ:
            return {**java, "PYSPARK_PYTHON": sys.executable}
        return {**java}
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
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


# Spark settings that a user gives (``--conf``): which are refused, and why.

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
    texts = {key: str(value) for key, value in conf.items()}
    settings = {key: text.lower() if isinstance(conf[key], bool) else text for key, text in texts.items()}
    problems = []
    for key, value in settings.items():
        if _NAME.fullmatch(key) is None:
            said = "is no setting of Spark's; allowed: names that begin with spark., as spark.executor.memory"
        elif not value:
            said = "has no value; allowed: key=value, as in spark.executor.memory=2g"
        elif key in _ELSEWHERE:
            said = f"is not set here: {_ELSEWHERE[key]}"
        elif key in REQUIRED and value != REQUIRED[key][0]:
            needed, why = REQUIRED[key]
            said = f"{value!r} would break a sweep; allowed: {needed} ({why})"
        elif key in _COMMITTERS and value not in _COMMITTERS[key]:
            allowed = " or ".join(_COMMITTERS[key])
            said = f"of {value!r} nobody knows whether a task's rows could count twice; allowed: {allowed}"
        else:
            continue
        problems.append(Problem(of, None, key or "(nothing)", said))
    if problems:
        raise ScenarioError(problems)
    return settings


# How masters and Spark Connect servers are written, and whether somebody is there.

LOCAL = "local[*,4]"
"""Embedded Spark on all cores; it tries a task that lost its worker again, up to four times."""

CONNECT_S = 5.0
"""How long a cluster may take to answer."""

_HOST = r"(?:\[[\da-fA-F:.]+\]|[^\s/:,;\[\]]+)"
_MASTER = re.compile(
    r"local(\[([1-9]\d*|\*)(,\s*[1-9]\d*)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|yarn"
    rf"|k8s://[^\s/].*|spark://{_HOST}:\d{{1,5}}(,{_HOST}:\d{{1,5}})*"
)
_REMOTE = re.compile(rf"sc://({_HOST})(?::(\d{{1,5}}))?(?:/(?:;[^\s;=]+=[^\s;=]+)*)?")
_ADDRESS = re.compile(r"(?:spark|k8s)://(?:(https?)://)?(.+)")
_PORTS = {"http": 80, "https": 443}
_CONNECT_PORT = 15002

MASTERS = "local, local[2], local[*,4], local-cluster[2,1,1024], spark://host:port, yarn or k8s://host:port"
REMOTES = "sc://host:port, with what the server needs behind it, as in sc://host:443/;use_ssl=true;token=…"


class SparkNotStarted(RuntimeError):
    """Spark did not start, or its cluster could not be reached. The message says why."""


def is_embedded(master: str) -> bool:
    """Whether this master runs the tasks inside the driver's own process.

    >>> is_embedded("local[2,4]"), is_embedded("local-cluster[2,1,1024]")
    (True, False)
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def check_master(master: str, of: str) -> str:
    """The master as it was given; raises ScenarioError, which calls it ``of``, if Spark has none such."""
    if master.startswith("sc://"):
        said = "is a Spark Connect server, not a master; it goes with remote (--remote)"
    elif _MASTER.fullmatch(master) is None:
        said = f"is not one of Spark's masters; allowed: {MASTERS}"
    else:
        return master
    raise ScenarioError([Problem(of, None, repr(master), said)])


def check_remote(remote: str, of: str) -> str:
    """The server's address as it was given; raises ScenarioError, which calls it ``of``, if it is none."""
    if _REMOTE.fullmatch(remote) is None:
        said = f"is not the address of a Spark Connect server; allowed: {REMOTES}"
        raise ScenarioError([Problem(of, None, repr(shown(remote)), said)])
    return remote


def shown(remote: str) -> str:
    """A server's address without its parameters: a token is nobody else's business.

    >>> shown("sc://host:443/;token=secret")
    'sc://host:443'
    """
    return remote.split(";")[0].rstrip("/")


def reach(address: str) -> None:
    """See whether somebody listens at the address of a cluster or of a Spark Connect server; raises
    SparkNotStarted if nobody does.

    Spark itself tries for minutes, and then ends with an error of its own making. Of ``yarn`` the address is
    in the cluster's files, so that is left to Spark.
    """
    if (server := _REMOTE.fullmatch(address)) is not None:
        what = f"Connect server {shown(address)}"
        addresses = [(server[1], server[2] or str(_CONNECT_PORT))]
    elif (match := _ADDRESS.fullmatch(address)) is not None:
        scheme, rest = match.groups()
        parts = (one.rpartition(":") for one in rest.split("/")[0].split(","))
        default = str(_PORTS[scheme or "https"])
        what = f"cluster {address}"
        addresses = [(host, port) if colon else (port, default) for host, colon, port in parts]
    else:
        return
    reasons = []
    for host, port in addresses:
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        except (OSError, ValueError, OverflowError) as error:
            reasons.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise SparkNotStarted(f"the Spark {what} cannot be reached: {'; '.join(reasons)}")


# The columns of what Python hands to Spark, as a text.


def schema_text(schema: pa.Schema) -> str:
    """An Arrow schema as Spark writes one down: ``struct<`run`:string,`point`:bigint>``.

    Given as an object, a text column has a collation of its own over Spark Connect (``string collate
    UTF8_BINARY``, the same thing as ``string``), which Spark writes into the footer of a Parquet file; given
    as a text, it has none either way, and the files are the same.
    """
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import ArrayType, StructType

    def text(kind: Any) -> str:
        if isinstance(kind, StructType):
            fields = (f"`{field.name.replace('`', '``')}`:{text(field.dataType)}" for field in kind)
            return f"struct<{','.join(fields)}>"
        if isinstance(kind, ArrayType):
            return f"array<{text(kind.elementType)}>"
        return str(kind.simpleString())

    return text(from_arrow_schema(schema))


# Spark's own directory on this machine, and changes of the environment that end with a block.

LOG = "spark.log"


@functools.cache
def scratch() -> Path:
    """Spark's own directory. Spark's process remembers its name, and both go away with this process."""
    directory = tempfile.TemporaryDirectory(prefix="tideover-spark-", ignore_cleanup_errors=True)
    atexit.register(directory.cleanup)
    return Path(directory.name)


def last_words(size: int = 2000) -> str:
    """What Spark's process printed last, in words."""
    printed = (scratch() / LOG).read_bytes()[-size:].decode(errors="replace").strip()
    return f"It printed last:\n{printed or '(nothing)'}"


@contextmanager
def changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """``os.environ`` with these changes, for the length of the block; None takes a variable out."""

    def set_to(variables: Mapping[str, str | None]) -> None:
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    before = {name: os.environ.get(name) for name in changes}
    set_to(changes)
    try:
        yield
    finally:
        set_to(before)


# Who does the work: this process, embedded Spark, a cluster, a Spark Connect server.

ABSENT = 'Spark is not installed; pip install "tideover[spark]" brings it'
HERE = "runs are done in this process, one after another: " + ABSENT


def has_spark() -> bool:
    """Whether PySpark is installed: it is an extra."""
    return find_spec("pyspark") is not None


@dataclass(frozen=True)
class Place:
    """Where runs are done.

    ``master``: Spark's, None for this process, without Spark; or ``remote``, the address of a
    Spark Connect server.
    ``conf``: Spark's settings. ``archive``: packages for workers that lack them.
    """

    master: str | None = LOCAL
    remote: str | None = None
    conf: Mapping[str, Any] = field(default_factory=dict)
    archive: Path | None = None

    @property
    def elsewhere(self) -> str | None:
        """The cluster or server that has to be connected to, or None."""
        if self.remote is not None:
            return shown(self.remote)
        return None if self.master is None or is_embedded(self.master) else self.master

    @staticmethod
    def given(
        master: str | None,
        remote: str | None,
        conf: Mapping[str, Any] | None,
        archive: str | Path | None = None,
    ) -> Place:
        """What arguments of a function mean: where Spark is not installed, and nobody asks for more than the
        usual master, this process, with a warning. Raises SparkNotStarted if somebody does.
        """
        if master is not None and not has_spark():
            if (master, remote, archive) != (LOCAL, None, None) or conf:
                raise SparkNotStarted(ABSENT)
            warnings.warn(HERE, stacklevel=3)
            return Place(None)
        return Place(master, remote, conf or {}, None if archive is None else Path(archive))
