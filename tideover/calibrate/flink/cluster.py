"""A Flink cluster on this machine, from the jars of PyPI alone: its commands, and what it tells by REST.

`supervisor` starts one for each session.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tideover.calibrate.real.processes import NotPossible
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
        said = (done.stderr or done.stdout).strip()[-1500:]
        raise NotPossible(f"the job for Flink cannot be compiled: {said}")


class Cluster:
    """Commands that start a JobManager and its TaskManagers, and what the JobManager tells.

    directory: where logs go. scratch: for what Flink itself writes.
    """

    def __init__(
        self, java: Java, job: Path, settings: Mapping[str, str], directory: Path, scratch: Path
    ) -> None:
        self.java, self.job, self.directory, self.scratch = java, job, directory, scratch
        self.configuration = directory / "conf"
        for path in (self.configuration, scratch / "tmp", scratch / "checkpoints"):
            path.mkdir(parents=True)
        lines = (f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
        (self.configuration / "config.yaml").write_text("".join(lines))
        (self.configuration / "log4j.properties").write_text(_LOGGING)
        self.rest = self.rpc = 0

    def jobmanager(self, job_class: str, arguments: Iterable[str]) -> list[str]:
        return self._command("jobmanager", "512m", _JOBMANAGER, "--job-classname", job_class, *arguments)

    def taskmanager(self, name: str) -> list[str]:
        """``name``: its resource id."""
        given = {"taskmanager.resource-id": name, "jobmanager.rpc.port": self.rpc}
        words = (word for key, value in given.items() for word in ("-D", f"{key}={value}"))
        return self._command(name, "320m", _TASKMANAGER, *words)

    def ready(self) -> bool:
        """Whether the JobManager has said which ports it has."""
        log = self._log("jobmanager")
        told = log.read_text(errors="replace") if log.exists() else ""
        rpc, rest = _BOUND.search(told), _REST.search(told)
        if rpc and rest:
            self.rpc, self.rest = int(rpc[1]), int(rest[1])
        return bool(rpc and rest)

    def ask(self, path: str) -> Any:
        """What the JobManager's REST answers; None: nothing yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/{path}", timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _command(self, name: str, heap: str, main: str, *arguments: str) -> list[str]:
        command = [str(self.java.home / "bin/java"), *_JVM, f"-Xms{heap}", f"-Xmx{heap}", *_MODULES]
        command += [f"-Dlog.file={self._log(name)}", f"-Djava.io.tmpdir={self.scratch / 'tmp'}"]
        command += [f"-Dlog4j.configurationFile={self.configuration / 'log4j.properties'}"]
        command += ["-cp", f"{self.job}:{jars()}", main, "--configDir", str(self.configuration)]
        return [*command, *arguments]
