"""``tideover explore``: reads options; `tideover.reports.explore` makes and serves the page.

`app` adds it to the program. Its options are in the docstring of the command.
"""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tideover.cli import output
from tideover.cli.output import BadInput, Bar

if TYPE_CHECKING:
    from tideover.reports.explore.answer import Value, World

PORT = 8642


def explore(
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="[SCENARIO]", help="A built-in name or a file; default: wordcount."),
    ] = None,
    port: Annotated[int, {"min": 0, "max": 65535}] = PORT,
    open_: bool = True,
    export: Path | None = None,
    grid: list[str] | None = None,
    strategies: str | None = None,
) -> None:
    """Open a page with sliders: move the failure, a rate or a timeout, and see what becomes of it.

    It is served to browsers on this machine only. For example: tideover explore stableford-phase2

    --port: Of the page's address; 0: any that is free.
    --open/--no-open: Open the page in a browser.
    --export FILE.html: Write a page with its runs inside, which works without Tideover, and end.
    --grid CONTROL=V,V,…: Positions of a control in an exported page, as in moment=62,70,80. Repeatable.
    --strategies KIND,KIND: Strategies of an exported page.
    """
    from tideover.reports.explore.answer import FIRST, World

    world = World.of(scenario or FIRST)
    if export is not None:
        _export(world, export, grid or [], strategies)
        return
    if grid or strategies:
        raise BadInput(f"{'--grid' if grid else '--strategies'}: goes with --export FILE.html")
    world.described()  # what cannot be explored is told here
    _serve(scenario, port, open_)


def _serve(scenario: str | None, port: int, browser: bool) -> None:
    from tideover.reports.explore.server import HOST, Server, Workers

    workers = Workers(scenario)
    try:
        server = Server(workers, port)
    except OSError as error:
        workers.close()
        raise BadInput(f"--port: {port} on {HOST}: {error.strerror}; give another, or 0 for any") from None
    output.show(f"{server.address}  (Ctrl-C ends it)", whole_lines=True)
    try:
        if browser:
            webbrowser.open(server.address)
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        workers.close()


def _export(world: World, file: Path, grid: list[str], strategies: str | None) -> None:
    from tideover.reports.explore import server

    output.may_write(file, "--export", server.MARK, "a page that tideover exported")
    about = world.described()
    kinds = [k.strip() for k in strategies.split(",")] if strategies else [about["first"], about["second"]]
    for kind in kinds:
        if kind not in world.every.kinds:
            raise BadInput(f"--strategies: {kind!r} does not go with it; {', '.join(world.every.kinds)} do")
    chosen = dict(_positions(world, each) for each in grid) or server.default_grid(world, kinds)
    try:
        with Bar() as bar:
            made = server.page(world, kinds, chosen, lambda done, total: bar("runs", done, total))
    except (server.TooLarge, ValueError) as error:
        raise BadInput(f"--grid: {error}") from None
    with output.writing(file, option="--export"):
        file.write_bytes(made)
    output.show(f"{file}: {len(made) / 1e6:.2f} MB", whole_lines=True)


def _positions(world: World, text: str) -> tuple[str, list[Value]]:
    name, equals, values = text.partition("=")
    if not equals or name not in world.controls:
        known = ", ".join(world.controls)
        raise BadInput(f"--grid: {text!r}: must be CONTROL=VALUE,VALUE,…; the controls are {known}")
    control, found = world.controls[name], []
    for value in values.split(","):
        number = None
        with suppress(ValueError):
            number = float(value)
        same = [one for one in control.values if str(one) == value or number == one]
        if not same:
            allowed = ", ".join(
                "null" if one is None else f"{one:g}" if isinstance(one, float) else str(one)
                for one in control.values
            )
            raise BadInput(f"--grid: {name}: {value!r} is no position; it has {allowed}")
        found.append(same[0])
    return name, found
