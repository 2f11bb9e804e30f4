"""One Spark session: embedded in this process by default, on a cluster, or at a Spark Connect server."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.scenarios import plugins
from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.spark.conf import check
from tideover.scenarios.spark.connect import connected
from tideover.scenarios.spark.masters import LOCAL, SparkNotStarted, check_master, check_remote, is_embedded
from tideover.scenarios.spark.package import check_archive
from tideover.scenarios.spark.process import started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(
    master: str = LOCAL,
    app_name: str = "tideover",
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
    settings = check(conf or {})
    _send_plugins()
    packages = None if archive is None else check_archive(archive, "archive")
    if remote is not None:
        return connected(check_remote(remote, "remote"), settings, packages)
    if packages is not None and is_embedded(check_master(master, "master")):
        said = (
            "goes with a cluster or a Spark Connect server; an embedded Spark has the packages of this Python"
        )
        raise ScenarioError([Problem("archive", None, str(archive), said)])
    return _running_or_started(check_master(master, "master"), app_name, settings, packages)


def _send_plugins() -> None:
    """Classes of plugins that are files go to workers as they are, which have no such module to import."""
    from pyspark import cloudpickle

    for module in plugins.of_files():
        cloudpickle.register_pickle_by_value(module)


@contextmanager
def _running_or_started(
    master: str, app_name: str, conf: Mapping[str, str], archive: Path | None
) -> Iterator[SparkSession]:
    running = _running()
    if running is None:
        with started(master, app_name, conf, archive) as session:
            yield session
        return
    for key, value in conf.items():
        if (found := running.conf.get(key, None)) != value:
            raise SparkNotStarted(
                f"this process has a Spark session already, which is used as it is, and there {key} is "
                f"{'not set' if found is None else repr(found)}, not {value!r}: end it, or leave conf out"
            )
    if archive is not None:
        raise SparkNotStarted(
            "this process has a Spark session already, which is used as it is, without archive"
        )
    yield running


def _running() -> Any | None:
    """The session that this process has, if it has one."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        from pyspark.sql import SparkSession

        return SparkSession.builder.getOrCreate()
    connect = sys.modules.get("pyspark.sql.connect.session")  # whoever has a session there has imported it
    return connect.SparkSession.getActiveSession() if connect else None
