"""``tideover scenarios``: the built-in scenarios and sweeps; schema and reference of scenario files.

`app` adds it to the program. What is printed is made elsewhere: `library`, `resolved`, `reference`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tideover.cli.output import PRINT, BadInput, Printed, Texts, print_json, show

app = typer.Typer(help="Built-in scenarios: list, show or copy them; the schema of scenario files.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a built-in scenario or sweep.")]


@app.callback(invoke_without_command=True, no_args_is_help=False)
def _default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_scenarios()


@app.command("list")
def list_scenarios(results: Printed = PRINT) -> None:
    """List the built-in scenarios and sweeps."""
    from tideover.scenarios import library

    found = library.catalogue()
    if results.json:
        print_json(found)
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table("name", "", "what it is about", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for entry in found:
        short = ", ".join(f"{name}=…" for name in entry["parameters"])
        about = Text(entry["description"]).append(f"\n--set {short}" if short else "", "dim")
        table.add_row(Text(entry["name"], no_wrap=True), "sweep" if entry["sort"] == "sweep" else "", about)
    show(table, Text("\nTry: tideover run wordcount, or tideover scenarios copy wordcount", style="dim"))


@app.command("show")
def show_scenario(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of a built-in scenario or sweep; with --resolved, a file too."
        ),
    ],
    resolved: bool = False,
    settings: Texts = None,
    point: Annotated[int, {"min": 0}] = 0,
) -> None:
    """Print the file of a built-in scenario, and what its short parameters mean; with --resolved all of any
    scenario, and who runs where on its hosts.

    For example: tideover scenarios show wordcount --resolved --set strategy.kind=rsm

    --resolved: Print the whole scenario, where each value comes from, and who runs where.
    --point N: With --resolved: this point of a sweep.
    """
    if resolved:
        from tideover.scenarios import resolved as resolving

        if point and not resolving.is_sweep(name):
            raise BadInput(f"--point: {name} is no sweep; only a sweep has points")
        found = resolving.resolve(name, settings or (), point)
        sys.stdout.write(resolving.to_yaml(found) + resolving.where_tasks_run(found.scenario))
        return
    if settings or point:
        raise BadInput(f"{'--set' if settings else '--point'}: goes with --resolved")
    from tideover.scenarios import library, precedence, yaml_source

    text = library.text(name, "either")
    sys.stdout.write(text)
    rows = []
    for each in precedence.declared(yaml_source.parse(text, library.file_name(name))).values():
        default = None if each.default is None else each.default.plain()
        meaning = each.description or f"sets {', '.join(each.sets)}"
        rows.append((each.name, "" if default is None else str(default), meaning))
    if rows:  # as comments, so that what is printed is still a scenario
        sys.stdout.write(
            "\n# Short parameters: --set NAME=VALUE; else what a profile says, else the default.\n"
        )
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    for short, value, meaning in rows:
        sys.stdout.write(f"#   {short:{widths[0]}}  {value:{widths[1]}}  {meaning}\n")


@app.command("copy")
def copy_scenario(
    name: Name,
    target: Annotated[Path, typer.Argument(help="A file, or a directory.", show_default="here")] = Path("."),
) -> None:
    """Copy a built-in scenario to a file of yours, to be changed."""
    from tideover.scenarios import library

    try:
        path = library.copy(name, target)
    except FileExistsError as error:
        raise BadInput(f"{error.filename}: is there already; name another file, or remove it") from None
    except OSError as error:
        raise BadInput(f"{error.filename or target}: cannot be written: {error.strerror}") from None
    verb = "sweep" if name in library.sweeps() else "run"
    sys.stdout.write(f"{path}\nTry: tideover {verb} {path}\n")


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of scenario files: every key with its unit, default and meaning."""
    from tideover.scenarios.reference import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=True) + "\n")


@app.command("reference")
def reference() -> None:
    """Print the reference of keys as Markdown: scenario files, sweep files and profiles, a table a part."""
    from tideover.scenarios.reference import markdown

    sys.stdout.write(markdown())
