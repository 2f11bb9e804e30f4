"""What commands share: options, consoles, progress, JSON, the directory for results, Spark.

Every option that two commands have stands here once. What is printed and written goes through `answer`.
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
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from tideover.scenarios.spark import settings
from tideover.scenarios.spark.settings import (
    ABSENT,
    HERE,
    LOCAL,
    Place,
    check_master,
    check_remote,
    has_spark,
)

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
    """A bar on standard error, which appears after two seconds and goes away at the end; if that is no
    terminal, a line there every five seconds.

    Call it with what is being done, how much is done, and of how much (0: that is not known).
    """

    def __init__(self, what: str = "simulating") -> None:
        self._state = (what, 0.0, 0)
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._ended = threading.Event()
        self._begun = 0.0

    def __enter__(self) -> Bar:
        self._begun = time.monotonic()
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
            self._update()

    def runs(self, done: int, total: int) -> None:
        """The same for simulated runs."""
        self("simulating", done, total)

    def _tell(self) -> None:
        while not self._ended.wait(LINE_EVERY_S):
            with self._lock, suppress(OSError, ValueError):  # nobody reads it, or it is closed
                if not self._ended.is_set():
                    sys.stderr.write(f"{self._line()}\n")
                    sys.stderr.flush()

    def _line(self) -> str:
        """What is being done, as ``simulating: 12 of 2,000, 35 s``."""
        what, done, total = self._state
        of = f": {int(done):,} of {total:,}" if total else f": {int(done):,}" if done else ""
        seconds = int(time.monotonic() - self._begun)
        minutes = f"{seconds // 60} min " if seconds >= 60 else ""
        return f"{what}{of}, {minutes}{seconds % 60} s"

    def _appear(self) -> None:
        if self._ended.wait(APPEARS_AFTER_S):
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        with self._lock:
            if self._ended.is_set():
                return
            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                Elapsed(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.add_task("", total=None)
            self._update()
            self._progress.start()

    def _update(self) -> None:
        if self._progress is not None:
            what, done, total = self._state
            self._progress.update(
                self._progress.task_ids[0], description=what, completed=int(done), total=total or None
            )


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
    """One JSON value on standard output."""
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
    """Warnings on standard error."""
    for text in texts:
        sys.stderr.write(f"Warning: {text}\n")


def note(texts: Iterable[str]) -> None:
    """Remarks on what was asked, on standard error."""
    for text in texts:
        sys.stderr.write(f"Note: {text}\n")


LONG_S = 5.0
"""Runs that take longer are announced."""


def announce(scenarios: Iterable[Scenario]) -> set[str]:
    """Say on standard error, before anything runs, what cannot keep up, and how long and why it will take
    long, if it does; returns what was said of the former.
    """
    from tideover.models.advice import in_short, overloads
    from tideover.models.effort import Effort, effort, slowness

    asked = list(scenarios)
    over = [text for one in asked for text in overloads(one)]
    note(in_short(dict.fromkeys(over)))
    done = sum((effort(one) * one.run.replications for one in asked), Effort())
    if done.seconds * slowness() >= LONG_S:
        from tideover.models.coarsening import counting

        lasts = in_words(done.seconds * slowness())
        what = (
            f"{done.moved:.2g} tuples, and {done.actions:.2g} snapshots, ends of windows, triggers or faults"
        )
        batched = not any(any(counting(one.topology, one.strategy)) for one in asked)
        if done.parts["actions"] < done.seconds / 2 and batched:
            what += "; run.lump_rate lets one simulated tuple stand for several"
        note([f"this takes about {lasts} on one core, give or take a factor of two: {what}"])
    return set(over)


def in_words(seconds: float) -> str:
    """A time as a note has it.

    >>> in_words(0.234), in_words(66.0), in_words(120.0), in_words(7200.0)
    ('0.23 seconds', '66 seconds', '2 minutes', '2.0 hours')
    """
    if seconds < 9.5:
        return f"{seconds:.2g} seconds"
    if seconds < 119.5:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def may_write(path: Path, option: str, ours: Callable[[Path], bool], what: str) -> None:
    """Raises BadInput, before anything runs, if a file that an option names cannot be written, or is there
    and is not ``ours``: it may be somebody's work, or an input. ``what``: what such a file would be. A device
    or a pipe is written to.
    """
    with writing(path, option=option):
        if not os.path.isdir(path.absolute().parent):
            raise BadInput(f"{option}: {path}: there is no directory {path.parent}")
        if os.path.isdir(path):
            raise BadInput(f"{option}: {path}: is a directory; name a file")
        if not os.path.lexists(path):
            path.open("x").close()  # whether that is allowed
            path.unlink()
        elif os.path.isfile(path) and not ours(path):
            raise BadInput(f"{option}: {path}: is there, and is not {what}; name another file, or remove it")


def holds(mark: bytes) -> Callable[[Path], bool]:
    """Whether a file has these bytes near its begin."""

    def found(path: Path) -> bool:
        with path.open("rb") as stream:
            return mark in stream.read(_HEAD)

    return found


def moment(option: str, text: str) -> int:
    """A time of an option, 0 or more (ns); raises BadInput."""
    from tideover.sim.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None


def duration(option: str, text: str) -> int:
    """The same, more than 0; raises BadInput."""
    if (found := moment(option, text)) <= 0:
        raise BadInput(f"{option}: {text!r}: more than 0 s is needed")
    return found


def prepare(directory: Path | None, command: str) -> None:
    """Make the directory for a command's results before anything runs; raises BadInput if it cannot be
    written to, or holds the results of another command.
    """
    from tideover.reports import parquet

    if directory is None:
        return
    try:
        with writing(directory, "to"):
            parquet.prepare(directory, command)
    except ValueError as error:
        raise BadInput(f"--out: {error}") from None


def loaded(
    source: str, settings: Iterable[str] | None, replications: int | None = None
) -> tuple[Scenario, list[str]]:
    """A scenario with its settings, and notes on those that its strategy does not use."""
    from tideover import api
    from tideover.scenarios.loader import unused
    from tideover.scenarios.precedence import read_settings
    from tideover.sim.registry import kind_of

    more = [] if replications is None else [f"run.replications={replications}"]
    given = read_settings([*(settings or ()), *more])
    found = api.loaded(source, given)
    return found, unused(source, kind_of(found.strategy), given)


def answer(
    record: Any,
    view: Callable[[], RenderableType | Sequence[RenderableType]],
    page: Callable[[], Page] | None,
    *,
    as_json: bool,
    out: Path | None,
    warnings: Iterable[str] = (),
    whole_lines: bool = False,
    **written: Any,
) -> None:
    """Print what a command found, as JSON or as its ``view``, and write it to ``out``. ``warnings``: what
    only the view says otherwise; ``written``: for `write`.
    """
    if as_json:
        warn(warnings)
        print_json(record)
    else:
        shown = view()
        show(*(shown if isinstance(shown, list | tuple) else (shown,)), whole_lines=whole_lines)
    if out is not None and page is not None:
        write(out, page, record, errors=as_json, **written)


def write(
    directory: Path,
    page: Callable[[], Page],
    record: Any,
    *,
    errors: bool,
    tables: Callable[[], Mapping[str, Any]] = dict,
    parameters: Mapping[str, str] | None = None,
) -> None:
    """Write results to ``--out``, and say where the report is and what is beside it."""
    from tideover.reports.parquet import write_all

    with Bar(MAKING):
        made = page()
        with writing(directory, "to"):
            first, *others = write_all(
                directory, tables=tables(), page=made, record=json_text(record), parameters=parameters
            )
    beside = ", ".join(path.name for path in others)
    stream(errors=errors).write(f"Report: {first}\nBeside it: {beside}\n")


def write_page(directory: Path, make: Callable[[], Page], inputs: str) -> Path:
    """Write a sweep's page to ``--out``, unless it is there as it was made from the same inputs."""
    from tideover.reports.parquet import REPORT, write_all
    from tideover.reports.sweeps.page import finished, stamp, unstamp

    page = directory / REPORT
    if not finished(directory, inputs, page):
        with Bar(MAKING), writing(directory, "to"):
            unstamp(directory)
            write_all(directory, tables={}, page=make())
            stamp(directory, inputs, page)
    return page


def stream(*, errors: bool) -> TextIO:
    """Where to say what was written: standard output, or standard error if the former holds JSON."""
    return sys.stderr if errors else sys.stdout


@contextmanager
def writing(path: Path, preposition: str = "", option: str = "--out") -> Iterator[None]:
    """Raises BadInput where the system refuses to write ``path``, a file, or ``to`` it, a directory, that an
    option names.
    """
    try:
        yield
    except OSError as error:
        refused = f"cannot be written {preposition}".rstrip()
        raise BadInput(f"{option}: {path}: {refused}: {error.strerror or error}") from None


# Options that several commands have.


def option(help: str, *names: str, metavar: str | None = None, **more: Any) -> Any:
    """An option of which no default is shown."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=False, **more)


Source = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a built-in scenario.")
]
Settings = Annotated[
    list[str] | None,
    option(
        "Set any key of the scenario, as in failures.0.at=80s, or a short parameter. Repeatable.",
        "--set",
        metavar="KEY=VALUE",
    ),
]
Out = Annotated[
    Path | None,
    option(
        "Write report.html, the result (JSON) and its tables (Parquet), if it has any, there.",
        "--out",
        metavar="DIR",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else there.")]


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


class Spark(NamedTuple):
    """Where runs are done. A command with a parameter of this type has each of these options in its place;
    ``package`` only as `SparkOrPackage`.
    """

    master: Annotated[
        str | None,
        typer.Option(
            help="Spark's master: local[*,4] is embedded; spark://…, yarn, k8s://… are clusters.",
            show_default=LOCAL,
        ),
    ] = None
    remote: Annotated[
        str | None, option("A Spark Connect server, in place of a master.", metavar="sc://HOST:PORT")
    ] = None
    conf: Annotated[
        list[str] | None,
        option(
            "A setting of Spark, as in spark.executor.memory=2g. Repeatable.", "--conf", metavar="KEY=VALUE"
        ),
    ] = None
    archive: Annotated[
        Path | None, option("Packages for workers that lack them; --package makes it.", metavar="FILE")
    ] = None
    package: Annotated[
        Path | None,
        option(
            "Make an archive (.tar.gz) of what workers need, for --archive, and end.",
            "--package",
            metavar="FILE",
            is_eager=True,
            callback=_make_package,
        ),
    ] = None
    no_spark: Annotated[
        bool, typer.Option("--no-spark", help="Simulate in this process, one run after another.")
    ] = False

    def place(self) -> Place:
        """What the options mean together; raises BadInput and ScenarioError for what means nothing."""
        return place(self.master, self.remote, self.conf, self.archive, self.no_spark)


SparkOrPackage = Annotated[Spark, "package"]
USUAL = Spark()


def place(
    master: str | None,
    remote: str | None,
    conf: Sequence[str] | None,
    archive: Path | None,
    no_spark: bool,
) -> Place:
    """What the options mean together; raises BadInput and ScenarioError for what means nothing to Spark."""
    given = {"--master": master, "--remote": remote, "--conf": conf or None, "--archive": archive}
    named = [option for option, value in given.items() if value is not None]
    if no_spark and named:
        raise BadInput(f"{named[0]}: does not go with --no-spark")
    if master is not None and remote is not None:
        raise BadInput("--remote: does not go with --master; a Spark Connect server has its own master")
    if no_spark:
        return Place(None)
    if not has_spark():
        if named:
            raise BadInput(f"{named[0]}: {ABSENT}")
        note([HERE])
        return Place(None)
    if remote is not None:
        check_remote(remote, "--remote")
    if archive is not None:
        from tideover.scenarios.spark.session import check_archive

        archive = check_archive(archive, "--archive")
    where = Place(
        check_master(master or LOCAL, "--master"),
        remote,
        settings.parse(conf or ()),
        archive,
    )
    if archive is not None and where.elsewhere is None:
        raise BadInput("--archive: goes with --remote, or the --master of a cluster")
    return where
