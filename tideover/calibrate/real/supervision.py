"""What supervisors of all engines do: start processes, look after them, and leave none.

`supervisor` of PySpark and that of Flink are each a `Supervision`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from tideover.calibrate.real.processes import PRINTED, EventLog, OtherWork, Registry, SessionFailed
from tideover.scenarios.java import Java

START_S = 180.0
"""What is not ready by then, on however slow a machine, will not be."""
DRAIN_S = 90.0
"""How long after the end of the input its last results may take."""


@dataclass(eq=False)
class Supervision:
    """Carries out one session in an empty directory of its own; what it leaves there is read by `tables`.

    A supervisor says what is done (``carry_out``), what runs (``running``: names and processes), and which
    files tell why it failed (``logs``). ``scratch`` is the engine's own, and goes at the end; ``progress`` is
    called with the seconds since ``t0`` (unix time).
    """

    TICK_S: ClassVar[float]
    plan: Any
    directory: Path
    registry: Registry
    java: Java
    progress: Callable[[float], None]

    def __post_init__(self) -> None:
        self.scratch = self.directory / "scratch"
        self.log = EventLog(self.directory / "supervisor.jsonl")
        self.others = OtherWork()
        self.t0 = 0

    def carry_out(self) -> None:
        """From the start to the end; raises SessionFailed."""
        raise NotImplementedError

    def running(self) -> Iterable[tuple[str, subprocess.Popen[bytes]]]:
        raise NotImplementedError

    def logs(self) -> Iterable[Path]:
        raise NotImplementedError

    def run(self) -> None:
        """Raises SessionFailed, with what was printed last. Whatever happens, no process is left."""
        try:
            self.carry_out()
        except SessionFailed as failed:
            logs = [path for path in (self.directory / "printed.log", *self.logs()) if path.exists()]
            words = "\n".join(path.read_text(errors="replace")[-1500:] for path in logs).strip()
            raise SessionFailed(f"session {self.plan.name}: {failed}.{PRINTED}\n{words}") from None
        finally:
            for _, process in self.running():
                if process.poll() is None:  # as long as it is not waited for, its number is nobody else's
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                if process.stdin is not None:
                    with suppress(BrokenPipeError):
                        process.stdin.close()
            self.registry.end_leftovers()
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.log.close()

    def start(self, tag: str, command: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
        """Start a process, which has the tag in its environment, in a group of its own: so it can be ended
        as a whole.
        """
        with (self.directory / "printed.log").open("ab") as printed:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                command, stdout=printed, stderr=printed, start_new_session=True, **more
            )
        self.registry.note(tag, process.pid)
        return process

    def begin(self, t0: int) -> None:
        """The input is about to begin: from now on the session has tables."""
        self.t0 = t0
        begun = {"t0": t0, "java": f"{self.java.version}", "plan": asdict(self.plan)}
        (self.directory / "session.json").write_text(json.dumps(begun, indent=1))

    def until(self, moment_s: float) -> None:
        """Look after what runs until a moment, s since t0."""
        while (left := self.t0 + moment_s - time.time()) > 0:
            self._look_after()
            cores = self.others.look([os.getpid(), *(process.pid for _, process in self.running())])
            if cores is not None:
                self.log.write("others", cores=cores)
            self.progress(moment_s - left)
            time.sleep(min(left, self.TICK_S))

    def wait(self, condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
        begun = time.monotonic()
        while not condition():
            self._look_after()
            if time.monotonic() - begun > limit_s:
                raise SessionFailed(f"{otherwise} after {limit_s:.0f} s")
            time.sleep(self.TICK_S)

    def _look_after(self) -> None:
        for name, process in self.running():
            if process.poll() is not None:
                raise SessionFailed(f"{name} ended by itself with code {process.returncode}")
