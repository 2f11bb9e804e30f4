"""The commands together, and what becomes of errors; `tideover.cli` calls it. New commands are named here.

Everything that takes long to import is imported by the command that needs it. What an option means stands in
the docstring of its command, or of its group in `output`: ``--from TIME: Strike steps from then on.``
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from tideover import __version__
from tideover.cli import calibrate, doctor, explore, questions, run, scenarios, sweeps
from tideover.cli.output import SHARED, BadInput, Results, SparkOptions
from tideover.scenarios.errors import ScenarioError

app = typer.Typer(
    name="tideover",
    help="Simulates how a stream processor survives failure: replay, state, replicas.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
GROUPS = (Results, SparkOptions)


def _described(owner: Any) -> tuple[str, dict[str, tuple[str, str | None, str]]]:
    """A docstring without its paragraphs on options, and what these say: how an option is written, its
    metavar, and its help, by the name of its parameter (``from_`` for ``--from``).
    """
    if owner.__doc__ is None:
        sys.exit("tideover: options are described in docstrings, which Python leaves out under -OO")
    paragraphs = inspect.cleandoc(owner.__doc__).split("\n\n")
    found = {}
    for paragraph in (each for each in paragraphs if each.startswith("--")):
        for one in paragraph.split("\n--"):
            head, meaning = " ".join(one.removeprefix("--").split()).split(": ", 1)
            written, _, metavar = head.partition(" ")
            found[written.split("/")[0].replace("-", "_")] = f"--{written}", metavar or None, meaning
    return "\n\n".join(one for one in paragraphs if not one.startswith("--")), found


def _options(owner: Any, parameters: Iterable[Parameter]) -> list[Parameter]:
    """The parameters, those that are plain as the options that the docstring of ``owner`` describes."""
    described, made = SHARED | _described(owner)[1], list[Parameter]()
    for one in parameters:
        of = one.annotation
        kind, *more = get_args(of) if get_origin(of) is Annotated else [of]
        if (name := one.name.rstrip("_")) in described:
            written, metavar, meaning = described[name]
            option = typer.Option(written, metavar=metavar, help=meaning, **(more[0] if more else {}))
            one = one.replace(annotation=Annotated[kind, option])
        made.append(one)
    return made


def _with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for files that are run before it, those of its docstring, and those of
    `output`'s groups in place of its parameters of these types (without what an annotated group names).
    """
    every: list[Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    own = inspect.signature(command, eval_str=True).parameters.values()
    about, described = _described(command)
    assert described.keys() <= {one.name.rstrip("_") for one in own}, command
    plugin = Parameter("plugin", Parameter.KEYWORD_ONLY, default=None, annotation=list[Path] | None)
    for one in _options(command, [*own, plugin]):
        group, *without = get_args(one.annotation) or [one.annotation]
        if group not in GROUPS:
            every.append(one)
            continue
        fields = {n: a for n, a in get_type_hints(group, include_extras=True).items() if n not in without}
        groups[one.name] = group, [*fields]
        defaults = group._field_defaults
        inner = [Parameter(n, one.kind, default=defaults[n], annotation=a) for n, a in fields.items()]
        every += _options(group, inner)

    @wraps(command)
    def call(plugin: list[Path] | None = None, **given: Any) -> None:
        if plugin:
            from tideover.scenarios import plugins

            for file in plugin:
                plugins.load_file(file)
        for name, (group, fields) in groups.items():
            given[name] = group(**{field: given.pop(field) for field in fields if field in given})
        command(**given)

    call.__doc__ = about
    call.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in every}
    return call


for command in (
    *(run.run, run.compare, questions.hours, sweeps.sweep, questions.availability, questions.interval),
    *(questions.detector, sweeps.plan, questions.audit, questions.check, explore.explore),
    *(questions.reproduce, calibrate.calibrate, doctor.doctor),
):
    app.command()(command)
app.add_typer(scenarios.app, name="scenarios")
for registered in (*app.registered_commands, *scenarios.app.registered_commands):
    assert registered.callback is not None
    registered.callback = _with_shared_options(registered.callback)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tideover {__version__}")
        raise typer.Exit()


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the program as a whole."""


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    warnings.showwarning = _warn
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        try:
            app(prog_name="tideover")
        finally:
            sys.stdout.flush()  # a full disk is to be told here, not while the interpreter ends
    except (ScenarioError, BadInput) as error:
        _end(str(error), 2)
    except KeyboardInterrupt:
        _end("", 130)
    except BrokenPipeError:
        _end("", 1)
    except Exception as error:
        if os.environ.get("TIDEOVER_TRACEBACK"):
            raise
        _end(_failure(error), 1)


def _end(message: str, code: int) -> None:
    """Say it on standard error, and end. Whoever has closed the other end of a pipe is not written to."""
    with contextlib.suppress(OSError):
        if message:
            print(message, file=sys.stderr, flush=True)  # noqa: T201
        sys.stdout.flush()
    if code in (1, 130):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _failure(error: Exception) -> str:
    """What to say of an error that is not the input's fault."""
    from tideover.scenarios.java import JavaNotFound

    known = ("NoDataPlane", "RunFailed", "RunsFailed", "SweepFailed", "SparkNotStarted", "NothingToFit")
    if isinstance(error, JavaNotFound | OSError) or type(error).__name__ in known:
        of_java = ("at ", "Using Spark's default", "WARNING:")  # of use only to those who know Spark's source
        lines = f"tideover: {error}".splitlines()
        return "\n".join(one for one in lines if not one.lstrip().startswith(of_java) and " WARN " not in one)
    said = " ".join(str(error).split())
    return (
        f"tideover: internal error: {type(error).__name__}: {said}\n"
        "This is a fault of Tideover. Set TIDEOVER_TRACEBACK=1 to see where it comes from."
    )


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Warnings of libraries in one line, and only those that are meant for users."""
    if issubclass(category, UserWarning | RuntimeWarning):
        print(f"Warning: {message}", file=sys.stderr)  # noqa: T201
