"""The commands together, and what becomes of errors.

Everything that takes long to import is imported by the command that needs it.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from tideover import __version__
from tideover.cli import calibrate, doctor, explore, questions, run, scenarios, sweeps
from tideover.cli.output import BadInput, Spark, SparkOrPackage, option
from tideover.scenarios.errors import ScenarioError

app = typer.Typer(
    name="tideover",
    help="Simulates how a stream processor survives failure: replay, state, replicas.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Plugins = Annotated[
    list[Path] | None,
    option(
        "Python file that registers a strategy of your own, or another part. Repeatable.",
        "--plugin",
        metavar="FILE",
    ),
]


def _with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for files that are run before it, and those of `Spark` in its place."""
    own = inspect.signature(command, eval_str=True).parameters

    @wraps(command)
    def call(plugin: list[Path] | None = None, **given: Any) -> None:
        if plugin:
            from tideover.scenarios import plugins

            for file in plugin:
                plugins.load_file(file)
        if "spark" in own:
            given["spark"] = Spark(**{name: given.pop(name) for name in Spark._fields if name in given})
        command(**given)

    every: list[Parameter] = []
    for one in own.values():
        every += _spark_options(one) if one.name == "spark" else [one]
    every.append(Parameter("plugin", Parameter.KEYWORD_ONLY, default=None, annotation=Plugins))
    call.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in every}
    return call


def _spark_options(one: Parameter) -> list[Parameter]:
    """The fields of `Spark` as parameters; ``package`` only where that is asked for."""
    return [
        Parameter(name, one.kind, default=Spark._field_defaults[name], annotation=annotation)
        for name, annotation in get_type_hints(Spark, include_extras=True).items()
        if name != "package" or one.annotation is SparkOrPackage
    ]


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
def _options(
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

    told = (JavaNotFound, OSError)
    failed = ("NoDataPlane", "RunFailed", "RunsFailed", "SweepFailed", "SparkNotStarted", "NothingToFit")
    if isinstance(error, told) or type(error).__name__ in failed:
        lines = [line for line in f"tideover: {error}".splitlines() if not _of_java(line)]
        return "\n".join(lines)
    said = " ".join(str(error).split())
    return (
        f"tideover: internal error: {type(error).__name__}: {said}\n"
        "This is a fault of Tideover. Set TIDEOVER_TRACEBACK=1 to see where it comes from."
    )


def _of_java(line: str) -> bool:
    """Whether a line is only of use to those who know Spark's source."""
    return line.lstrip().startswith(("at ", "Using Spark's default", "WARNING:")) or " WARN " in line


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Warnings of libraries in one line, and only those that are meant for users."""
    if issubclass(category, UserWarning | RuntimeWarning):
        print(f"Warning: {message}", file=sys.stderr)  # noqa: T201
