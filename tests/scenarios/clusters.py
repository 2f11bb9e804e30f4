"""Clusters on this machine: Spark's own with two workers, a Spark Connect server. They end with the block.

Each is a few processes that listen at 127.0.0.1 alone, at ports that are free.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark

from tideover.scenarios.java import find_java, java_environment

SPARK = Path(pyspark.__file__).parent
START_S = 300.0
_TOGETHER = '("$@" < /dev/null; kill -9 0) & cat > /dev/null; kill -9 0'
"""A shell's program: a command that ends when the shell's input does, with all of its process group."""
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "512m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def standalone(workers: int = 2, python: str = sys.executable, **variables: str) -> Iterator[str]:
    """Spark's own cluster, workers of one core each; gives the master's address.

    ``python``: what the workers run, if nobody says otherwise; ``variables``: of the workers' environment.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        ports = ["--port", "0", "--webui-port", "0"]
        master = stack.enter_context(
            _process(
                scratch / "master.log",
                ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", *ports],
                r"Starting Spark master at (spark://\S+)",
            )
        )
        for number in range(workers):
            directory = scratch / f"worker-{number}"
            # Spark runs no second attempt of a task on the host of the first one, so each has an address.
            host = f"127.0.0.{1 + number}"
            stack.enter_context(
                _process(
                    scratch / f"worker-{number}.log",
                    [
                        "org.apache.spark.deploy.worker.Worker",
                        *("--host", host, *ports),
                        *("--cores", "1", "--memory", "1g", "--work-dir", str(directory)),
                        master,
                    ],
                    r"Successfully registered with master (\S+)",
                    {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": host, **variables},
                )
            )
        yield master


@contextmanager
def connect_server(master: str = "local[2]", **conf: str) -> Iterator[str]:
    """A Spark Connect server with this master; gives its address. ``conf``: settings, __ for each dot."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "INFO",
        **{key.replace("__", "."): value for key, value in conf.items()},
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        command = [
            "org.apache.spark.deploy.SparkSubmit",
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", master),
            *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
            "spark-internal",
        ]
        pattern = r"Spark Connect server started at: (\S+)"
        with _process(Path(scratch) / "server.log", command, pattern) as address:
            yield f"sc://{address}"


@contextmanager
def _process(
    log: Path, command: list[str], ready: str, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A process of Spark; gives what the pattern finds in what it prints once it is ready.

    It leads a session of its own, and dies with all that it started when the pipe to it closes: at the end of
    the block, and also when this process is killed.
    """
    java = find_java()
    assert java is not None
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    environment |= {
        **java_environment(java),
        **_DAEMON,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **(variables or {}),
    }
    with log.open("wb") as printed:
        process = subprocess.Popen(
            ["sh", "-c", _TOGETHER, "sh", SPARK / "bin" / "spark-class", *command],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            cwd=log.parent,
            env=environment,
            start_new_session=True,
        )
    try:
        yield _found(ready, log, process)
    finally:
        process.communicate()
        while _session(process.pid):  # the workers' Pythons end when they find that their executor has
            time.sleep(0.05)


def _found(pattern: str, log: Path, process: "subprocess.Popen[bytes]") -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        if match := re.search(pattern, log.read_text(errors="replace")):
            return match[1]
        time.sleep(0.05)
    raise AssertionError(f"Spark's process is not ready:\n{log.read_text(errors='replace')[-3000:]}")


def _session(leader: int) -> list[int]:
    """The processes in a session of processes, those that are only remembered left out."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == leader and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except ProcessLookupError:
            continue
    return found
