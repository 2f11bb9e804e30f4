"""What commands share: options, consoles, JSON, the directory for results."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from tideover.cli.progress import Bar

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tideover.models.config import Scenario
    from tideover.models.effort import Effort
    from tideover.reports.html import Page

_HEAD = 10_000
"""Bytes of a file that say what it is."""
MAKING = "making the page"
PIPE_WIDTH = 100
"""Columns of a table that goes into a file or a pipe."""

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any key of the scenario, as in failures.0.at=80s, or a short parameter. Repeatable.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Write report.html, the result (JSON) and its tables (Parquet), if it has any, there.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else there.")]


class BadInput(Exception):
    """Something that was given on the command line cannot be used; the message names it."""


def show(*shown: RenderableType, whole_lines: bool = False) -> None:
    """Print on the terminal, or as plain text into a pipe; ``whole_lines`` are not folded (commands in
    them can be copied).
    """
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
    """JSON that is a text already on standard output; what is not printable ASCII is escaped, for any
    terminal.
    """
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
    """Say on standard error, before anything runs, what cannot keep up, and how long it will take if that is
    long, and why; returns what was said of the former.
    """
    from tideover.models.advice import in_short, overloads
    from tideover.models.effort import Effort, effort, slowness

    asked = list(scenarios)
    over = [text for one in asked for text in overloads(one)]
    note(in_short(dict.fromkeys(over)))
    done = sum((effort(one) * one.run.replications for one in asked), Effort())
    if done.seconds * slowness() >= LONG_S:
        lasts = in_words(done.seconds * slowness())
        note([f"this takes about {lasts} on one core, give or take a factor of two: {_mostly(done, asked)}"])
    return set(over)


def _mostly(done: Effort, asked: Sequence[Scenario]) -> str:
    """What there is to do, and what would make it less."""
    from tideover.models.coarsening import counting

    what = f"{done.moved:.2g} tuples, and {done.actions:.2g} snapshots, ends of windows, triggers or faults"
    lumps = not any(any(counting(one.topology, one.strategy)) for one in asked)
    if done.parts["actions"] < done.seconds / 2 and lumps:
        what += "; run.lump_rate lets one simulated tuple stand for several"
    return what


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


def write(
    directory: Path,
    tables: Mapping[str, Any],
    page: Callable[[], Page],
    record: Any,
    *,
    parameters: Mapping[str, str] | None = None,
    errors: bool = False,
) -> list[Path]:
    """Write results to ``--out`` and say where the report is (on standard error with ``errors``); returns the
    paths, the page first. ``page``: makes it.
    """
    from tideover.reports.output import write_all

    with Bar(MAKING):
        made = page()
        with writing(directory, "to"):
            paths = write_all(
                directory, tables=tables, page=made, record=json_text(record), parameters=parameters
            )
    tell(paths, errors=errors)
    return paths


def write_page(directory: Path, make: Callable[[], Page], inputs: str) -> Path:
    """Write a sweep's page to ``--out``, unless it is there as it was made from the same inputs."""
    from tideover.reports.output import REPORT, write_all
    from tideover.reports.sweeps.finished import finished, stamp, unstamp

    page = directory / REPORT
    if not finished(directory, inputs, page):
        with Bar(MAKING), writing(directory, "to"):
            unstamp(directory)
            write_all(directory, tables={}, page=make())
            stamp(directory, inputs, page)
    return page


def tell(paths: Sequence[Path], *, errors: bool) -> None:
    """Say where the report is, and what is beside it."""
    stream(errors=errors).write(
        f"Report: {paths[0]}\nBeside it: {', '.join(path.name for path in paths[1:])}\n"
    )


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
