"""``tideover audit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tideover.cli import output
from tideover.cli.output import BadInput, Json, Out, Settings
from tideover.cli.progress import Bar
from tideover.cli.spark import Archive, Conf, Master, NoSpark, Remote, place

if TYPE_CHECKING:
    from tideover.scenarios.audit.audit import Audit


def audit(
    target: Annotated[
        str,
        typer.Argument(
            metavar="STRATEGY|SCENARIO",
            help="A strategy, which is audited in the scenario `audit`; or a scenario.",
        ),
    ],
    settings: Settings = None,
    kinds: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Kinds of faults; default: all that take something."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Strike steps from then on.", show_default=False),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Strike steps before then.", show_default=False),
    ] = None,
    each: Annotated[int, typer.Option(metavar="N", min=1, help="Moments of each step that are struck.")] = 2,
    detection: Annotated[
        str, typer.Option(metavar="TIME", help="How long it takes until a failure is noticed.")
    ] = "1 s",
    restart: Annotated[str, typer.Option(metavar="TIME", help="And to restart what failed.")] = "3 s",
    second: Annotated[
        bool, typer.Option("--second/--no-second", help="Let a second fault strike during recoveries.")
    ] = True,
    as_json: Json = False,
    out: Out = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    archive: Archive = None,
    no_spark: NoSpark = False,
) -> None:
    """Find out what a strategy guarantees, by failing at each step of its protocol.

    Exits with 1 if it does not keep its word. For example: tideover audit rsm
    """
    from tideover.scenarios.audit import asked
    from tideover.scenarios.audit.audit import audit as audited
    from tideover.scenarios.sweeps.several import kept

    where = place(master, remote, conf, archive, no_spark)
    try:
        scenario, command = asked.target(target, settings or ())
        tried = asked.asked(
            scenario,
            kinds=None if kinds is None else kinds.split(","),
            begin=since,
            end=until,
            each=each,
            detection=detection,
            restart=restart,
            second=second,
        )
    except asked.NotAsked as error:
        raise BadInput(str(error)) from None
    output.prepare(out, "audit")
    with Bar() as bar, kept(out, where, lambda what: bar(what, 0, 0)) as doer:
        found = audited(scenario, command, tried, doer, bar)
    _tell(found, as_json, out)
    if not found.holds:
        raise typer.Exit(1)


def _tell(found: Audit, as_json: bool, out: Path | None) -> None:
    if as_json:
        output.print_json(found.to_dict())
    else:
        from tideover.reports.audits.view import audit_view

        for shown in audit_view(found):
            output.show(shown, whole_lines=True)
    if out is not None:
        from tideover.reports.audits.page import audit_page

        output.write(out, {}, audit_page(found), found.to_dict(), errors=as_json)
