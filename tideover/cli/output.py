"""What commands share: options, consoles, progress, JSON, the directory for results, Spark.

Every option that two commands have stands here once; what is printed and written goes through `Results`.
Imported with every command, so it imports nothing that takes long.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tideover.scenarios.spark import settings
from tideover.scenarios.spark.settings import ABSENT, LOCAL, Place, check_master, check_remote, has_spark

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

    from tideover.models.config import Scenario
    from tideover.reports.html import Page


APPEARS_AFTER_S = 2.0
"""When a bar appears."""
LINE_EVERY_S = 5.0
"""How often a line is written where there is no terminal for a bar."""


class Bar:
    """A bar on standard error, which appears after two seconds; if that is no terminal, a line there every
    five seconds. Call it with what is being done, how much is done, and of how much (0: that is not known).
    """

    def __init__(self, what: str = "simulating") -> None:
        self._state = (what, 0.0, 0)
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._ended = threading.Event()
        self._begun = time.monotonic()

    def __enter__(self) -> Bar:
        work = self._appear if sys.stderr.isatty() else self._tell
        threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended.set()
            if self._progress is not None:
                self._progress.stop()

    def __call__(self, what: str, done: float, total: int) -> None:
        with self._lock:
            self._state = (what, done, total)
            if self._progress is not None:
                task = self._progress.task_ids[0]
                self._progress.update(task, description=what, completed=int(done), total=total or None)

    def runs(self, done: int, total: int) -> None:
        """The same for simulated runs."""
        self("simulating", done, total)

    def _tell(self) -> None:
        """Lines as ``simulating: 12 of 2,000, 35 s``."""
        while not self._ended.wait(LINE_EVERY_S):
            with self._lock, suppress(OSError, ValueError):  # nobody reads it, or it is closed
                if self._ended.is_set():
                    return
                what, done, total = self._state
                of = f": {int(done):,} of {total:,}" if total else f": {int(done):,}" if done else ""
                minutes, seconds = divmod(int(time.monotonic() - self._begun), 60)
                sys.stderr.write(f"{what}{of}, {f'{minutes} min ' if minutes else ''}{seconds} s\n")
                sys.stderr.flush()

    def _appear(self) -> None:
        if self._ended.wait(APPEARS_AFTER_S):
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        text, console = TextColumn("{task.description}", markup=False), Console(stderr=True)
        columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), Elapsed())
        with self._lock:
            if not self._ended.is_set():
                self._progress = Progress(*columns, console=console, transient=True)
                what, done, total = self._state
                self._progress.add_task(what, total=total or None, completed=int(done))
                self._progress.start()


_HEAD = 10_000
"""Bytes of a file that say what it is."""
MAKING = "making the page"
PIPE_WIDTH = 100
"""Columns of a table that goes into a file or a pipe."""


class BadInput(Exception):
    """Something that was given on the command line cannot be used; the message names it."""


def show(*shown: RenderableType, whole_lines: bool = False) -> None:
    """Print on the terminal, or as plain text into a pipe; ``whole_lines`` are not folded, to be copied."""
    from rich.console import Console

    class Unread(Console):
        def on_broken_pipe(self) -> None:
            _unread()

    console = Unread(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    for item in shown:
        console.print(item, soft_wrap=whole_lines)


def _unread() -> None:
    """Whoever reads standard output has seen enough: files that are still to be written are."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_NOT_ASCII = re.compile(r"[^\x00-\x7e]+")


def json_text(value: Any) -> str:
    """A value as JSON, with a last line end; what is undefined is null."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def print_json(value: Any) -> None:
    try:
        print_text(json_text(value))
    except BrokenPipeError:
        _unread()


def print_json_list(values: Iterable[Any]) -> None:
    """A list of JSON values on standard output, each as soon as it is there."""
    begin = "["
    for value in values:
        print_text(f"{begin}\n{indent(json_text(value), '  ').rstrip()}")
        begin = ","
    print_text("[]\n" if begin == "[" else "\n]\n")


def print_text(text: str) -> None:
    """JSON on standard output; what is not printable ASCII is escaped, for any terminal."""
    sys.stdout.write(_NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], text))
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    """The value for JSON: no NaN, no infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def warn(texts: Iterable[str]) -> None:
    sys.stderr.writelines(f"Warning: {text}\n" for text in texts)


def note(texts: Iterable[str]) -> None:
    sys.stderr.writelines(f"Note: {text}\n" for text in texts)


LONG_S = 5.0
"""Runs that take longer are announced."""


def announce(scenarios: Iterable[Scenario]) -> set[str]:
    """Say on standard error what cannot keep up, and how long runs take, if long; returns the former."""
    from tideover.models.advice import in_short, overloads
    from tideover.models.effort import Effort, effort, slowness

    asked = list(scenarios)
    over = [text for one in asked for text in overloads(one)]
    note(in_short(dict.fromkeys(over)))
    done = sum((effort(one) * one.run.replications for one in asked), Effort())
    if done.seconds * slowness() >= LONG_S:
        from tideover.models.coarsening import counting
        from tideover.reports.formatting import in_words

        lasts = in_words(done.seconds * slowness())
        what = (
            f"{done.moved:.2g} tuples, and {done.actions:.2g} snapshots, ends of windows, triggers or faults"
        )
        batched = not any(any(counting(one.topology, one.strategy)) for one in asked)
        if done.parts["actions"] < done.seconds / 2 and batched:
            what += "; run.lump_rate lets one simulated tuple stand for several"
        note([f"this takes about {lasts} on one core, give or take a factor of two: {what}"])
    return set(over)


def may_write(path: Path, option: str, ours: bytes | Callable[[Path], bool], what: str) -> None:
    """Raises BadInput, before anything runs, if a file that an option names cannot be written, or is there
    and is not ``ours`` (bytes near its begin), but maybe an input. ``what``: what such a file would be.
    """
    with writing(path, option=option):
        if not os.path.isdir(path.absolute().parent):
            raise BadInput(f"{option}: {path}: there is no directory {path.parent}")
        if os.path.isdir(path):
            raise BadInput(f"{option}: {path}: is a directory; name a file")
        if not os.path.lexists(path):
            path.open("x").close()  # whether that is allowed
            path.unlink()
        elif os.path.isfile(path):
            with path.open("rb") as stream:
                known = ours in stream.read(_HEAD) if isinstance(ours, bytes) else ours(path)
            if not known:
                raise BadInput(
                    f"{option}: {path}: is there, and is not {what}; name another file, or remove it"
                )


def moment(option: str, text: str, least: int = 0) -> int:
    """A time of an option (ns); ``least``: 1 if it must be more than 0 s. Raises BadInput."""
    from tideover.sim.units import parse_duration

    try:
        found = parse_duration(text)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None
    if found < least:
        raise BadInput(f"{option}: {text!r}: more than 0 s is needed")
    return found


def loaded(source: str, settings: Iterable[str] | None, replications: int | None = None) -> Scenario:
    """A scenario with its settings; those that its strategy does not use are noted."""
    from tideover import api
    from tideover.scenarios.loader import unused
    from tideover.scenarios.precedence import read_settings
    from tideover.sim.registry import kind_of

    more = [] if replications is None else [f"run.replications={replications}"]
    given = read_settings([*(settings or ()), *more])
    found = api.loaded(source, given)
    note(unused(source, kind_of(found.strategy), given))
    return found


@contextmanager
def writing(path: Path, preposition: str = "", option: str = "--out") -> Iterator[None]:
    """Raises BadInput where the system refuses to write ``path``, or ``to`` it, which an option names."""
    try:
        yield
    except OSError as error:
        refused = f"cannot be written {preposition}".rstrip()
        raise BadInput(f"{option}: {path}: {refused}: {error.strerror or error}") from None


# Options that several commands have: those in `SHARED`, by the name of the parameter, and groups. A command
# with a parameter whose type is a group has each of its options in that place (`app`); of an annotated group
# without those that the annotation names.

Source = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a built-in scenario.")
]
Texts = list[str] | None
SHARED = {
    "settings": (
        *("--set", "KEY=VALUE"),
        "Set any key of the scenario, as in failures.0.at=80s, or a short parameter. Repeatable.",
    ),
    "mtbf": (
        *("--mtbf", "WHAT=TIME"),
        "Mean time between failures of each host, rack, worker or task, as host=30d, or of one of the "
        "scenario's failures, as failures.0=90d. Repeatable.",
    ),
    "plugin": (
        *("--plugin", "FILE"),
        "Python file that registers a strategy of your own, or another part. Repeatable.",
    ),
}
"""How an option is written, its metavar, and its help."""


class Results(NamedTuple):
    """Where results go. All texts on what was written go to where JSON does not.

    --json: Print JSON on standard output, and nothing else there.
    --out DIR: Write report.html, the result (JSON) and its tables (Parquet), if it has any, there.
    """

    json: bool = False
    out: Path | None = None

    def say(self, text: str) -> None:
        """A line on what was written: on standard output, or on standard error if the former holds JSON."""
        (sys.stderr if self.json else sys.stdout).write(f"{text}\n")

    def prepare(self, command: str) -> None:
        """Make the directory for results before anything runs; raises BadInput if it cannot be."""
        if self.out is None:
            return
        from tideover.reports import parquet

        try:
            with writing(self.out, "to"):
                parquet.prepare(self.out, command)
        except ValueError as error:
            raise BadInput(f"--out: {error}") from None

    def answer(
        self,
        record: Any,
        view: Callable[[], RenderableType | Sequence[RenderableType]],
        page: Callable[[], Page] | None = None,
        *,
        warnings: Iterable[str] = (),
        whole_lines: bool = False,
        **written: Any,
    ) -> None:
        """Print what a command found, as JSON or as its ``view``, and write it to ``out``. ``warnings``: what
        only the view says otherwise; ``written``: for `write`.
        """
        if self.json:
            warn(warnings)
            print_json(record)
        else:
            shown = view()
            show(*(shown if isinstance(shown, list | tuple) else (shown,)), whole_lines=whole_lines)
        if page is not None:
            self.write(record, page, **written)

    def write(
        self,
        record: Any,
        page: Callable[[], Page],
        *,
        tables: Callable[[], Mapping[str, Any]] = dict,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        """Write results to ``out``, if that is given, and say where the report is and what is beside it."""
        if self.out is None:
            return
        from tideover.reports.parquet import write_all

        with Bar(MAKING):
            made = page()
            with writing(self.out, "to"):
                text = json_text(record)
                first, *others = write_all(
                    self.out, tables=tables(), page=made, record=text, parameters=parameters
                )
        self.say(f"Report: {first}\nBeside it: {', '.join(path.name for path in others)}")


Printed = Annotated[Results, "out"]
PRINT = Results()


def _make_package(path: Path | None) -> None:
    """Make the archive, and end."""
    if path is None:
        return
    if not has_spark():  # the pandas here may be one that Spark cannot use
        raise BadInput(f"--package: {ABSENT}")
    from tideover.scenarios.spark.session import is_archive, write_archive

    may_write(path, "--package", is_archive, "an archive that tideover made")
    with writing(path, option="--package"):
        packages = write_archive(path)
    megabytes = path.stat().st_size / 1e6
    show(f"{path}: {megabytes:.0f} MB: Tideover, {', '.join(packages)}", whole_lines=True)
    raise typer.Exit()


class SparkOptions(NamedTuple):
    """Where runs are done, or that an archive is made; most commands have it as `Spark`.

    --master: Spark's master: local[*,4] is embedded; spark://…, yarn, k8s://… are clusters.
    --remote sc://HOST:PORT: A Spark Connect server, in place of a master.
    --conf KEY=VALUE: A setting of Spark, as in spark.executor.memory=2g. Repeatable.
    --archive FILE: Packages for workers that lack them; --package makes it.
    --package FILE: Make an archive (.tar.gz) of what workers need, for --archive, and end.
    --no-spark: Simulate in this process, one run after another.
    """

    master: Annotated[str | None, {"show_default": LOCAL}] = None
    remote: str | None = None
    conf: list[str] | None = None
    archive: Path | None = None
    package: Annotated[Path | None, {"is_eager": True, "callback": _make_package}] = None
    no_spark: bool = False

    def place(self) -> Place:
        """What the options mean together; raises BadInput and ScenarioError for what means nothing."""
        given: dict[str, Any] = {"--master": self.master, "--remote": self.remote}
        given |= {"--conf": self.conf or None, "--archive": self.archive}
        named = [option for option, value in given.items() if value is not None]
        if self.no_spark and named:
            raise BadInput(f"{named[0]}: does not go with --no-spark")
        if self.master is not None and self.remote is not None:
            raise BadInput("--remote: does not go with --master; a Spark Connect server has its own master")
        if self.no_spark:
            return Place(None)
        if not has_spark():
            if named:
                raise BadInput(f"{named[0]}: {ABSENT}")
            note([settings.HERE])
            return Place(None)
        if self.remote is not None:
            check_remote(self.remote, "--remote")
        archive = self.archive
        if archive is not None:
            from tideover.scenarios.spark.session import check_archive

            archive = check_archive(archive, "--archive")
        master = check_master(self.master or LOCAL, "--master")
        where = Place(master, self.remote, settings.parse(self.conf or ()), archive)
        if archive is not None and where.elsewhere is None:
            raise BadInput("--archive: goes with --remote, or the --master of a cluster")
        return where


Spark = Annotated[SparkOptions, "package"]
SPARK = SparkOptions()
