"""One Spark session: embedded in this process by default, on a cluster, or at a Spark Connect server; what
its workers get from here, and what runs its jobs.

`sweep.engine` and the commands start it with `spark_session`; `OnSpark` runs jobs on its `cluster`. How Spark
is set up is in `settings`.
"""

from __future__ import annotations

import functools
import gzip
import importlib.metadata
import io
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from tideover.scenarios import plugins
from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.java import JavaNotFound, find_java, java_environment
from tideover.scenarios.spark import settings as setup
from tideover.scenarios.spark.settings import LOCAL, PACKAGE, SparkNotStarted, is_embedded, scratch, shown
from tideover.sim.plane.library import make_ready
from tideover.sim.text_files import Unreadable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(
    master: str = LOCAL,
    *,
    remote: str | None = None,
    conf: Mapping[str, Any] | None = None,
    archive: Path | None = None,
) -> AbstractContextManager[SparkSession]:
    """A Spark session, started where its ``with`` block begins, stopped at its end.

    ``remote``: the address of a Spark Connect server (``sc://host:port``), which then takes the place of a
    ``master``. ``conf``: settings of Spark beside our own, or instead of them.
    ``archive``: packages for workers that lack them, as ``write_archive`` has made it.

    If this process has a session already (a notebook on a cluster has), that one is used as it is and left
    running; but a ``remote`` that is asked for is always connected to.

    Raises:
        ScenarioError: at once: a setting that no sweep could work with, or an address that is none
        JavaNotFound: there is no Java that Spark can run on
        SparkNotStarted: Spark's process ended at once, or the cluster cannot be reached or does not want us
    """
    settings = setup.check(conf or {})
    _send_plugins()
    packages = None if archive is None else check_archive(archive, "archive")
    if remote is not None:
        return connected(setup.check_remote(remote, "remote"), settings, packages)
    if packages is not None and is_embedded(setup.check_master(master, "master")):
        said = "goes with a cluster or a Connect server; an embedded Spark has the packages of this Python"
        raise ScenarioError([Problem("archive", None, str(archive), said)])
    return _running_or_started(setup.check_master(master, "master"), settings, packages)


def _send_plugins() -> None:
    """Classes of plugins that are files go to workers as they are, which have no such module to import."""
    from pyspark import cloudpickle

    for module in plugins.of_files():
        cloudpickle.register_pickle_by_value(module)


@contextmanager
def _running_or_started(master: str, conf: Mapping[str, str], archive: Path | None) -> Iterator[SparkSession]:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        from pyspark.sql import SparkSession

        running: Any = SparkSession.builder.getOrCreate()
    else:  # whoever has a session at a server has imported this
        connect = sys.modules.get("pyspark.sql.connect.session")
        running = connect.SparkSession.getActiveSession() if connect else None
    if running is None:
        with started(master, conf, archive) as session:
            yield session
        return
    already = "this process has a Spark session already, which is used as it is"
    for key, value in conf.items():
        if (found := running.conf.get(key, None)) != value:
            is_now = "not set" if found is None else repr(found)
            said = f"{already}, and there {key} is {is_now}, not {value!r}: end it, or leave conf out"
            raise SparkNotStarted(said)
    if archive is not None:
        raise SparkNotStarted(f"{already}, without archive")
    yield running


# A session at a Spark Connect server: only questions and answers go over the wire, and no Java runs here.

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
    setup.reach(remote)
    try:
        channel = DefaultChannelBuilder(remote).toChannel()
    except PySparkException as error:
        raise SparkNotStarted(f"{shown(remote)}: {_first_line(error)}") from error
    with channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=setup.CONNECT_S)
        except grpc.FutureTimeoutError:
            raise SparkNotStarted(
                f"{shown(remote)} answers, but not as a Spark Connect server does within "
                f"{setup.CONNECT_S:g} s (is it the right port? does it want use_ssl=true, or not?)"
            ) from None
    session: Any = SparkSession.builder.remote(remote).create()
    session.client.set_retry_policies([DefaultPolicy(**_PATIENCE)])
    try:
        _set_up(session, f"the server {shown(remote)}", conf, archive)
        with setup.changed_environment({_MODE: "1"}):
            yield session
    finally:
        session.stop()


def _set_up(session: Any, server: str, conf: Mapping[str, str], archive: Path | None) -> None:
    from pyspark.errors import PySparkException

    try:
        session.version  # noqa: B018  the first question to the server
        session.addArtifacts(str(zipped()), pyfile=True)
        if archive is not None:
            session.addArtifacts(f"{archive}#{NAME}", archive=True)
    except PySparkException as error:
        raise SparkNotStarted(f"{server} refuses us: {_first_line(error)}") from error
    needed = {key: value for key, (value, _) in setup.REQUIRED.items()}
    if session.conf.get(_COORDINATED, needed[_COORDINATED]) != needed[_COORDINATED]:
        raise SparkNotStarted(f"{server} has {_COORDINATED} off: a row could count twice")
    asked = {key: value for key, value in needed.items() if key not in _OF_SERVER}
    if archive is not None:
        asked[_WORKERS_PYTHON] = PYTHON
    for key, value in (asked | {**conf}).items():
        try:
            # What is meant for Hadoop goes there from a session under its own name alone.
            session.conf.set(key.removeprefix("spark.hadoop."), value)
        except PySparkException as error:
            raise SparkNotStarted(
                f"{server} does not let a session set {key}: {_first_line(error)} "
                "(memory, cores and the like are set where the server is started)"
            ) from error


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


# Spark's own process, which this one starts and talks to: a session that is embedded or drives a cluster.

END_S = 10.0
"""How long Spark's process may take to end."""


@contextmanager
def started(master: str, conf: Mapping[str, str], archive: Path | None) -> Iterator[SparkSession]:
    """A session with this master, stopped at the end of the block; ``archive``: packages for its workers. Its
    process is the one of the session before, if that one was started in the same way.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    interrupt = signal.getsignal(signal.SIGINT)
    setup.reach(master)
    java = find_java()
    if java is None:
        raise JavaNotFound()
    asked = setup.settings(master, "tideover", scratch()) | dict(conf)
    variables = setup.environment(master, java_environment(java))
    if archive is not None:
        asked["spark.archives"] = f"{archive}#{NAME}"
        if own := os.environ.get("PYSPARK_PYTHON"):
            asked["spark.executorEnv.TIDEOVER_PYTHON"] = own
        variables["PYSPARK_PYTHON"] = f"./{PYTHON}"
    with setup.changed_environment(variables):
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
            raise SparkNotStarted(f"Spark gave up on {master}. {setup.last_words()}") from error
    session = SparkSession(context)
    try:
        yield session
    except Exception as error:
        if _has_ended(gateway):
            error.add_note(f"Spark's process has ended. {setup.last_words()}")
        raise
    finally:
        if _has_ended(gateway):
            # There is nobody left to stop, and the next session must not take this one for alive.
            SparkContext._active_spark_context = SparkSession._instantiatedSession = None
            SparkContext._gateway = SparkContext._jvm = None
        else:
            session.stop()
        # PySpark puts its own handler in, and leaves it there.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


_launched: tuple[bool, dict[str, str], Path | None] | None = None
"""What Spark's process was started with: embedded or not, and what else a user says."""


def _gateway(asked: Mapping[str, str], launch: tuple[bool, dict[str, str], Path | None]) -> Any:
    """Spark's process, with no context in it; one with other settings, which it would keep, is ended."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    global _launched
    if SparkContext._gateway is not None and launch == _launched:
        return SparkContext._gateway
    if SparkContext._gateway is not None:
        process = getattr(SparkContext._gateway, "proc", None)
        SparkContext._gateway.shutdown()
        if process is not None:
            process.stdin.close()  # it ends with its input
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        SparkContext._gateway = SparkContext._jvm = None
    # What it prints goes to a file: our standard output may be one JSON object, and nothing else.
    with (scratch() / setup.LOG).open("ab") as log:
        try:
            gateway = launch_gateway(
                SparkConf(loadDefaults=False).setAll(list(asked.items())), {"stdout": log, "stderr": log}
            )
        except PySparkRuntimeError as error:
            raise SparkNotStarted(f"Spark did not start. {setup.last_words()}") from error
    _launched = launch
    return gateway


def _has_ended(gateway: Any) -> bool:
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None


# What workers elsewhere get from here: Tideover, and, if they lack them, the packages that it needs.

FOR_RUNS = ("cffi", "numpy", "pandas", "pyarrow", "pydantic", "ruamel.yaml", "scipy", "simpy")
"""What a run needs of what Tideover depends on; the rest draws, prints, or is Spark's."""

NAME = "tideover-packages"
"""What the archive is called where workers unpack it, in their own directory."""

PYTHON = f"{NAME}/bin/python"
"""The Python that workers run then: their own, with the archive's packages."""

_MADE_FOR = "made-for"
_LAUNCHER = """\
#!/bin/sh
# The worker's own Python, with the packages beside this file.
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$here/packages${PYTHONPATH:+:$PYTHONPATH}" exec "${TIDEOVER_PYTHON:-%s}" "$@"
"""
_LONGEST = 1000
"""Of what says for whom an archive was made, in bytes."""
_LEFT_OUT = {"__pycache__", "tests", "include"}


@functools.cache
def zipped() -> Path:
    """Tideover as a zip that Python imports from, with the compiled data plane in it."""
    make_ready()
    return Path(shutil.make_archive(str(scratch() / "tideover"), "zip", PACKAGE.parent, PACKAGE.name))


def write_archive(path: Path) -> list[str]:
    """Pack Tideover and what its runs need, as installed here; returns the packages, each with its version.

    The archive (``.tar.gz``) holds the same bytes each time. It is good for workers with the same version of
    Python, system and processor as here; it holds no Python.
    """
    make_ready()
    distributions = _needed(FOR_RUNS)
    files = {str(file.relative_to(PACKAGE.parent)): file for file in PACKAGE.rglob("*")}
    files = {name: file for name, file in files.items() if "__pycache__" not in file.parts}
    for distribution in distributions:
        for own in distribution.files or ():
            if ".." not in own.parts and not _LEFT_OUT & set(own.parts):
                files[str(own)] = Path(str(distribution.locate_file(own)))
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):

        def add(name: str, content: bytes, mode: int = 0o644) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))

        add(_MADE_FOR, _here().encode())
        add("bin/python", (_LAUNCHER % _python()).encode(), 0o755)
        for name, file in sorted(files.items()):
            if file.is_file():
                add(f"packages/{name}", file.read_bytes(), file.stat().st_mode & 0o755)
    return [f"{found.name} {found.version}" for found in distributions]


def check_archive(path: Path, of: str) -> Path:
    """The archive's whole path; raises ScenarioError, which calls it ``of``, if it is not for our workers."""
    try:
        made_for = _made_for_of(path)
    except (OSError, tarfile.TarError, Unreadable) as error:
        said = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    else:
        if made_for == _here():
            return path.resolve()
        other = f"was made for {made_for}, and this is {_here()}"
        said = "is another archive" if made_for is None else other
    said += "; allowed: an archive that tideover sweep --package has made here"
    raise ScenarioError([Problem(of, None, str(path), said)])


def is_archive(path: Path) -> bool:
    """Whether a file is an archive that was made here, for whomever."""
    try:
        return _made_for_of(path) is not None
    except (OSError, tarfile.TarError, Unreadable):
        return False


def _made_for_of(path: Path) -> str | None:
    """For which workers an archive was made; None: for none. Raises OSError, TarError, Unreadable."""
    if path.exists() and not path.is_file():
        raise Unreadable("is not a regular file")
    with tarfile.open(path) as archive:
        first = archive.next()
        content = archive.extractfile(first) if first is not None and first.name == _MADE_FOR else None
        return None if content is None else content.read(_LONGEST).decode(errors="replace")


def _python() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _here() -> str:
    """What packages with compiled parts depend on, as a worker's Python has to have it as well."""
    return f"{_python()}, {platform.system()} {platform.machine()}"


def _needed(names: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """These packages and what they need, as they are installed here, by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # needed elsewhere: on another system, with an older Python
        needs = [need for need in found[name].requires or () if "extra ==" not in need]
        waiting += [match[0] for need in needs if (match := re.match(r"[\w.-]+", need))]
    return [found[name] for name in sorted(found)]


# What runs Spark's jobs: how many tasks at a time, how far a job is, how to stop one.

_MANY = 1 << 16
"""More rows than a cluster has cores."""


@contextmanager
def cluster(session: Any) -> Iterator[Cluster]:
    if not type(session).__module__.startswith("pyspark.sql.connect."):
        yield Cluster(session)
        return
    found = _Connect(session)
    session.registerProgressHandler(found.hear)
    try:
        yield found
    finally:
        session.removeProgressHandler(found.hear)


class Cluster:
    """The cores and jobs of a session that drives its executors itself.

    A job is known by a tag. Whatever a thread asks of Spark inside ``tagged`` belongs to that tag: a job
    group, as Spark tells of jobs by these.
    """

    def __init__(self, session: Any) -> None:
        self.session = session

    @cached_property
    def cores(self) -> int:
        """How many tasks run at a time, by Spark's own account when it is first asked."""
        return int(self.session.sparkContext.defaultParallelism)

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """What this thread asks of Spark in the block is one job, known by the tag."""
        context = self.session.sparkContext
        context.setJobGroup(tag, tag)
        try:
            yield
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
            context.setLocalProperty("spark.job.description", None)

    def interrupt(self, tag: str) -> None:
        """Stop the job with this tag, if it is under way; who waits for it gets Spark's exception."""
        self.session.sparkContext.cancelJobGroup(tag)

    def fraction(self, tag: str) -> float:
        """How much of a job under way is done: tasks done by tasks known, 0 to 1."""
        tracker = self.session.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(tag)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return _share((stage.numCompletedTasks, stage.numTasks) for stage in stages if stage)


class _Connect(Cluster):
    """The same at a Spark Connect server, which reports of each operation every other second."""

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
    every = list(tasks)
    known = sum(known for _, known in every)
    return sum(done for done, _ in every) / known if known else 0.0
