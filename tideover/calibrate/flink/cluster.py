"""A Flink cluster on this machine, from the jars of PyPI alone: its processes, and what it tells by REST.

`supervisor` starts one for each session.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tideover.calibrate.real.processes import TAG, NotPossible, Registry
from tideover.scenarios.java import Java

ABSENT = 'Flink\'s jars are not installed. Mend it by: pip install "tideover[flink]"'

_JAVA = Path(__file__).parent / "java"
_JOBMANAGER = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
_TASKMANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"

# A compiler that does not optimise much, and one thread for garbage: a row costs as much in the tenth minute
# as in the first, and the cores are there for the tasks.
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.timezone=UTC")
# What Flink's own scripts (`env.java.opts.all` of its config.yaml) ask for from Java 17 on.
_EXPORTS = ("java.rmi/sun.rmi.registry",)
_OPENS = ("lang", "net", "io", "nio", "lang.reflect", "text", "time", "util", "util.concurrent")
_MODULES = (
    *(f"--add-exports={name}=ALL-UNNAMED" for name in _EXPORTS),
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENS),
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED",
)
_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
appender.file.name = file
appender.file.type = File
appender.file.fileName = ${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c %x - %m%n
"""
_BOUND = re.compile(r"Actor system started at pekko\.tcp://flink@127\.0\.0\.1:(\d+)")
_REST = re.compile(r"Rest endpoint listening at 127\.0\.0\.1:(\d+)")


def jars() -> str:
    """The class path of Flink's distribution; raises NotPossible if it is not installed."""
    found = find_spec("pyflink")
    for place in (found and found.submodule_search_locations) or ():
        if list(Path(place, "lib").glob("flink-dist-*.jar")):
            return str(Path(place, "lib", "*"))
    raise NotPossible(ABSENT)


def build_job(java: Java, out: Path) -> None:
    """Compile the job that is measured into a jar. Janino, a Java compiler in Java, is part of Flink's table
    runtime; so this needs no JDK. Raises NotPossible with what it printed.
    """
    builder = [str(java.home / "bin/java"), "-cp", jars(), "org.codehaus.janino.SimpleCompiler"]
    sources = [str(_JAVA / "Build.java"), "Build", str(_JAVA / "CountJob.java"), str(out)]
    done = subprocess.run([*builder, *sources], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode or not out.exists():
        raise NotPossible(
            f"the job for Flink cannot be compiled: {(done.stderr or done.stdout).strip()[-1500:]}"
        )


class Failed(RuntimeError):
    """A process of the cluster ended, or never was ready. The message says which; its log says why."""


class Cluster:
    """A JobManager and its TaskManagers, each in a process group of its own and with a tag.

    directory: where logs go. scratch: for what Flink itself writes.
    """

    def __init__(
        self,
        java: Java,
        job: Path,
        settings: Mapping[str, str],
        directory: Path,
        scratch: Path,
        registry: Registry,
    ) -> None:
        self.java, self.job, self.directory, self.registry = java, job, directory, registry
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.configuration = directory / "conf"
        self.configuration.mkdir(parents=True)
        self.scratch = scratch
        for part in ("tmp", "checkpoints"):
            (scratch / part).mkdir(parents=True)
        lines = (f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
        (self.configuration / "config.yaml").write_text("".join(lines))
        (self.configuration / "log4j.properties").write_text(_LOGGING)
        self.rest = 0
        self.rpc = 0

    def start_jobmanager(self, job_class: str, arguments: Sequence[str], limit_s: float) -> None:
        """Start the JobManager with its job, and wait until it says which ports it has."""
        self._start("jobmanager", "512m", _JOBMANAGER, "--job-classname", job_class, *arguments)
        begun = time.monotonic()
        log = self.log("jobmanager")
        while not (self.rpc and self.rest):
            told = log.read_text(errors="replace") if log.exists() else ""
            rpc, rest = _BOUND.search(told), _REST.search(told)
            if rpc and rest:
                self.rpc, self.rest = int(rpc[1]), int(rest[1])
            if time.monotonic() - begun > limit_s:
                raise Failed(f"the JobManager is not ready after {limit_s:.0f} s")
            self.look_after()
            time.sleep(0.05)

    def start_taskmanager(self, name: str) -> None:
        """Start a TaskManager, ``name``: its resource id."""
        self._start(
            name,
            "320m",
            _TASKMANAGER,
            "-D",
            f"taskmanager.resource-id={name}",
            "-D",
            f"jobmanager.rpc.port={self.rpc}",
        )

    def kill(self, name: str) -> float:
        """SIGKILL a process; returns when (unix time)."""
        process = self.processes.pop(name)
        at = time.time()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return at

    def end(self) -> None:
        """End all that is left."""
        for name in list(self.processes):
            with suppress(ProcessLookupError):
                self.kill(name)

    def look_after(self) -> None:
        """Raises Failed if a process has ended by itself."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise Failed(f"{name} ended by itself with code {process.returncode}")

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def ask(self, path: str) -> Any:
        """What the JobManager's REST answers; None: nothing yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/{path}", timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None

    def _start(self, name: str, heap: str, main: str, *arguments: str) -> None:
        tag = self.registry.new_tag()
        command = [str(self.java.home / "bin/java"), *_JVM, f"-Xms{heap}", f"-Xmx{heap}", *_MODULES]
        command += [f"-Dlog.file={self.log(name)}", f"-Djava.io.tmpdir={self.scratch / 'tmp'}"]
        command += [f"-Dlog4j.configurationFile={self.configuration / 'log4j.properties'}"]
        command += ["-cp", f"{self.job}:{jars()}", main, "--configDir", str(self.configuration), *arguments]
        with (self.directory / "printed.log").open("ab") as printed:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                cwd=self.scratch,
                env=os.environ | {TAG: tag},
                start_new_session=True,  # a process group of its own, which can be ended as a whole
            )
        self.processes[name] = process
        self.registry.note(tag, process.pid)
