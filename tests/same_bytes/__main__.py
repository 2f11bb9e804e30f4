"""Whether a change has changed any result: what the command line says and writes, compared byte by byte.

    python tests/same_bytes record DIR          # before the change
    python tests/same_bytes compare DIR         # after it; exit code 1 if anything differs
    python tests/same_bytes compare DIR --fast  # a third of the worlds, by result or trace, and help

A job is one command in a new folder, with the files that it names: what it prints, its exit code, and each
file that it writes. The jobs are random worlds (`worlds`), all built-in scenarios and examples,
and each other command. DIR holds the jobs, their files and a text for each, so the tool needs nothing of the
package but its command line, and what is compared does not depend on this file's list.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

import worlds

EXAMPLES = Path(__file__).parents[2] / "examples"
SURROUNDINGS = {"COLUMNS": "150", "LINES": "50", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
IN_PROCESS = "from tideover.cli import main; main()"
MASKS = (
    (re.compile(r"\b([a-z_]+)-[0-9a-f]{24}\b"), r"\1-<hash>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<run>"),
    (re.compile(r" at 0x[0-9a-f]+>"), " at <address>>"),
)
"""What is true of a moment or of the package's own text, and no result."""
PROGRESS = re.compile(r"^[a-z].*, (?:[0-9]+ min )?[0-9]+ s\n", re.MULTILINE)
"""What is said every few seconds, on standard error, of a command that takes long."""
OF_CODE = ("manifest.json", ".finished")
"""Files of a dataset with hashes of the package's text, and of files that have such a hash in them."""
SWEEP = {
    "scenario": "wordcount",
    "set": {"run.duration": "100 s", "run.warmup": "30 s"},
    "grid": {"strategy.kind": ["none", "rsm", "micro_batch"], "failures.0.at": ["40 s", "50 s"]},
    "replications": 2,
}
BUILT_IN = {
    "audit": "",
    "cluster": "--set run.replications=1 --set run.duration=40s",
    "demeter-ads": "",
    "demeter-cars": "",
    "estorm-recovery": "--set run.replications=1 --set run.duration=120s",
    "estorm-synthetic": "--set run.replications=1",
    "flink-recovery": "",
    "kafka-streams-handover": "--set run.replications=2",
    "kill-host": "",
    "ksafety-throughput": "",
    "micro-batch": "",
    "running-count": "",
    "stableford-phase1": "--set run.replications=1",
    "stableford-phase2": "--set run.replications=2",
    "wordcount": "--set run.replications=2",
}
"""Built-in scenarios, and what makes them short."""
SCENARIOS = {
    "day": "--set run.duration=35s --set run.lump=20",
    "direct-sink": "",
    "event-windows": "",
    "hybrid": "",
    "passive-standby": "",
    "shop": "",
    "small-word-count": "",
    "storm-restart": "--set run.replications=2",
    "storm-word-count": "",
    "transactions": "",
    "word-count-slo": "--set run.replications=3",
}
PLUGINS = {
    "approximate-word-count": "approximate_backup.py",
    "standby-word-count": "warm_standby.py",
    "visitors": "running_distinct.py",
}
SWEEPS = ("headroom", "local-recovery", "message-timeout", "pending-cap", "standby-replicas", "unaligned")
COMMANDS = (
    "run compare hours sweep availability interval detector plan audit check explore reproduce calibrate "
    "doctor scenarios|scenarios list|scenarios show|scenarios copy|scenarios schema|scenarios reference|"
)
OTHERS = {
    "list": "scenarios list",
    "schema": "scenarios schema",
    "reference": "scenarios reference",
    "copy": "scenarios copy wordcount",
    "compare-wordcount": "compare wordcount --json --set run.replications=2 --set run.duration=100s",
    "compare-all": "compare wordcount --strategies all --details --set run.replications=2"
    " --set run.duration=100s",
    "compare-kill-host": "compare kill-host --json --set run.replications=2",
    "compare-hybrid": "compare hybrid.yaml --json",
    "compare-out": "compare wordcount --out out --set run.replications=2 --set run.duration=100s",
    "out-wordcount": "run wordcount --out out --set run.replications=2",
    "out-micro-batch": "run micro-batch --out out",
    "out-snapshots": "run transactions.yaml --out out",
    "out-hybrid": "run hybrid.yaml --out out",
    "details": "run wordcount --details --set run.replications=2",
    "saturate": "run shop.yaml --saturate --json",
    "find-warmup": "run wordcount --find-warmup --json --set run.replications=2",
    "diagram-small": "run small-word-count.yaml --diagram drawn.svg --from 0.9s --to 2.3s",
    "diagram-hybrid": "run hybrid.yaml --diagram drawn.svg",
    "diagram-transactions": "run transactions.yaml --diagram drawn.svg --components split,count",
    "diagram-audit": "run audit --diagram drawn.svg",
    "sweep-out": "sweep sweep.yaml --no-spark --out out",
    "plan": "plan small-plan.yaml --no-spark --json",
    "plan-out": "plan small-plan.yaml --no-spark --out out",
    "audit-rsm": "audit rsm --no-spark --json --each 1 --no-second --kinds crash_task",
    "audit-source-replay": "audit source_replay --no-spark --out out --each 1 --no-second --kinds lose_state",
    "audit-scenario": "audit direct-sink.yaml --no-spark --each 1 --no-second --kinds crash_task",
    "check": "check word-count-slo.yaml --json --replications 5",
    "check-junit": "check word-count-slo.yaml --junit found.xml --replications 5",
    "availability": "availability wordcount --json --mtbf failures.0=30d --slo 99.95%"
    " --set run.replications=3",
    "hours": "hours shop.yaml --json --every 6h --replications 1",
    "interval": "interval wordcount --set strategy.kind=rsm --mtbf failures.0=1d --intervals 5s,20s"
    " --replications 2 --json",
    "detector": "detector demeter-ads --pauses 12s --every 1h --mtbf failures.0=7d --timeouts 50s,30s"
    " --replications 2 --json",
    "explore": "explore small-word-count.yaml --export page.html --strategies rsm,source_replay",
    "reproduce-phase2": "reproduce stableford-phase2 --no-spark --json --set run.replications=2",
    "reproduce-phase1": "reproduce stableford-phase1 --no-spark --set run.replications=1"
    " --set run.duration=120s",
    "reproduce-ksafety": "reproduce ksafety --no-spark --out out",
    "calibrate": "calibrate --from recoveries.csv --out out",
    "wrong-file": "run nowhere.yaml",
    "wrong-key": "run wordcount --set strategy.kin=rsm",
    "wrong-value": "run wordcount --set run.duration=soon",
}


@dataclass
class Job:
    """A command in words, without the program's name; ``fast``: part of a quick comparison."""

    name: str
    command: list[str]
    fast: bool = True


def jobs(names: Iterable[str]) -> Iterator[Job]:
    """All of them; ``names``: of scenario files."""
    for number, world in enumerate(names):
        run = ["run", f"{world}.yaml"]
        yield Job(world, [*run, "--json"], number % 6 == 0)
        yield Job(f"{world}-trace", [*run, "--trace"], number % 6 == 3)
    files = {f"{name}.yaml": short for name, short in SCENARIOS.items()}
    for source, short in (BUILT_IN | files).items():
        name = source.removesuffix(".yaml")
        yield Job(f"of-{name}", ["run", source, "--json", *short.split()], fast=False)
        yield Job(f"show-{name}", ["scenarios", "show", source, "--resolved"])
        if source in BUILT_IN:
            yield Job(f"file-{name}", ["scenarios", "show", source])
    for name, plugin in PLUGINS.items():
        yield Job(f"of-{name}", ["run", f"{name}.yaml", "--json", "--plugin", plugin], fast=False)
    for name in SWEEPS:
        short = ["--set", "run.replications=1"]
        yield Job(f"sweep-{name}", ["sweep", f"{name}.yaml", "--no-spark", "--json", *short], fast=False)
    first, *rest = COMMANDS.split("|")
    for command in (*first.split(), *rest):
        yield Job(f"help-{command.replace(' ', '-') or 'all'}", [*command.split(), "--help"])
    for name, line in OTHERS.items():
        yield Job(name, line.split(), fast=name in ("list", "schema", "reference"))


def run(job: Job, files: Path) -> tuple[str, str, float]:
    """Name and text of a job, and how long it took."""
    started, before = time.process_time(), os.getcwd()
    with TemporaryDirectory() as folder:
        for file in files.iterdir():
            if file.suffix == ".csv" or file.name in job.command:
                shutil.copy(file, folder)
        given = set(os.listdir(folder))
        os.chdir(folder)
        try:
            code, out, err = _apart(job) if "--plugin" in job.command else _here(job)
        finally:
            os.chdir(before)
        err = PROGRESS.sub("", err)
        text = f"$ tideover {' '.join(job.command)}\n{out}\n--- errors\n{err}\n--- exit code {code}\n"
        found = [file.relative_to(folder) for file in Path(folder).rglob("*") if file.is_file()]
        parts = [f"=== {file}\n{_read(folder / file)}\n" for file in found if file.parts[0] not in given]
        whole = "".join((_masked(text, folder), *sorted(_masked(part, folder) for part in parts)))
    return job.name, whole, time.process_time() - started


def _masked(text: str, folder: str) -> str:
    text = text.replace(os.path.realpath(folder), "<folder>").replace(folder, "<folder>")
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def _here(job: Job) -> tuple[int, str, str]:
    from tideover.cli import main

    out, err = StringIO(), StringIO()
    argv, code = sys.argv, 0
    sys.argv = ["tideover", *job.command]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    finally:
        sys.argv = argv
    return code, out.getvalue(), err.getvalue()


def _apart(job: Job) -> tuple[int, str, str]:
    """A plugin stays in the process that has read it: in one of its own."""
    told = subprocess.run(
        [sys.executable, "-c", IN_PROCESS, *job.command], capture_output=True, text=True, check=False
    )
    return told.returncode, told.stdout, told.stderr


def _read(file: Path) -> str:
    """A file as text; a table with its schema, and all of its rows."""
    if file.name in OF_CODE:
        return re.sub(r"\b[0-9a-f]{24,64}\b", "<hash>", file.read_text())
    if file.suffix != ".parquet":
        return file.read_bytes().decode("utf-8", "backslashreplace")
    from pyarrow import parquet

    table = parquet.ParquetFile(file).read()
    told = [f"{name}: {value!r}" for name, value in (table.schema.metadata or {}).items()]
    told += [f"{field.name}: {field} {field.nullable} {field.metadata}" for field in table.schema]
    return "\n".join((*told, *(json.dumps(row, default=repr) for row in table.to_pylist())))


def _run(given: tuple[Job, Path]) -> tuple[str, str, float]:
    return run(*given)


def everything(wanted: list[Job], files: Path, processes: int) -> Iterator[tuple[str, str, float]]:
    """What `run` says of each, in order."""
    os.environ.update(SURROUNDINGS)
    given = [(job, files.resolve()) for job in wanted]
    if processes == 1:
        yield from map(_run, given)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_run, given, chunksize=4)


def record(folder: Path, processes: int, only: str) -> int:
    """Write the jobs, their files and what each says; with a pattern only what some say now."""
    files, said = folder / "files", folder / "said"
    if not only:
        _prepare(folder, files, said)
    spent, refused = 0.0, 0
    wanted = [job for job in _recorded(folder) if re.search(only, job.name)]
    for name, text, seconds in everything(wanted, files, processes):
        (said / f"{name}.txt").write_text(text)
        spent += seconds
        refused += "\n--- exit code 2\n" in text
    print(f"{len(wanted)} jobs recorded in {folder}; {refused} refused; {spent:.0f} s of CPU time")
    return 0


def _prepare(folder: Path, files: Path, said: Path) -> None:
    for part in (files, said):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    names = worlds.write(files)
    (files / "sweep.yaml").write_text(json.dumps(SWEEP))
    for file in EXAMPLES.iterdir():
        if file.is_file():
            shutil.copy(file, files)
    (folder / "jobs.json").write_text(json.dumps([asdict(job) for job in jobs(names)], indent=1))


def _recorded(folder: Path) -> list[Job]:
    return [Job(**job) for job in json.loads((folder / "jobs.json").read_text())]


def compare(folder: Path, processes: int, only: str, fast: bool) -> int:
    """Do the recorded jobs again; say which differ, and where."""
    wanted = [job for job in _recorded(folder) if re.search(only, job.name) and (job.fast or not fast)]
    differ, spent = 0, 0.0
    for name, text, seconds in everything(wanted, folder / "files", processes):
        spent += seconds
        before = (folder / "said" / f"{name}.txt").read_text()
        if text != before:
            differ += 1
            lines = difflib.unified_diff(
                before.splitlines(), text.splitlines(), name, "now", n=0, lineterm=""
            )
            print("\n".join(line[:300] for line in list(lines)[:14]))
    print(f"{len(wanted) - differ} of {len(wanted)} jobs say the same; {spent:.0f} s of CPU time")
    return 1 if differ or not wanted else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare the results of two versions byte by byte.")
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="the jobs in whose name this pattern is found")
    parser.add_argument(
        "--fast", action="store_true", help="compare a third of the worlds, and what is quick"
    )
    chosen = parser.parse_args()
    if chosen.what == "record":
        return record(chosen.folder, chosen.processes, chosen.only)
    return compare(chosen.folder, chosen.processes, chosen.only, chosen.fast)


if __name__ == "__main__":
    sys.exit(main())
