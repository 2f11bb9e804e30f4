"""``tideover audit``."""

from __future__ import annotations

from functools import partial
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
            metavar="STRATEGY|SCENARIO|all",
            help="A strategy, which is audited in the scenario `audit`; or a scenario; several with commas "
            "between; `all` strategies.",
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

    Exits with 1 if one does not keep its word. For example: tideover audit rsm
    """
    from tideover.scenarios.audit import asked
    from tideover.scenarios.audit.audit import audit as audited
    from tideover.scenarios.sweeps.several import kept

    where = place(master, remote, conf, archive, no_spark)
    try:
        every = asked.targets(target, settings or ())
        tried = [
            asked.asked(
                scenario,
                kinds=None if kinds is None else kinds.split(","),
                begin=since,
                end=until,
                each=each,
                detection=detection,
                restart=restart,
                second=second,
            )
            for scenario, _ in every
        ]
    except asked.NotAsked as error:
        raise BadInput(str(error)) from None
    output.prepare(out, "audit")
    with Bar() as bar, kept(out, where, lambda what: bar(what, 0, 0)) as doer:
        found = [audited(*one, options, doer, bar) for one, options in zip(every, tried, strict=True)]
    _tell(found, as_json, out)
    if not all(one.holds for one in found):
        raise typer.Exit(1)


def _tell(found: list[Audit], as_json: bool, out: Path | None) -> None:
    records = [one.to_dict() for one in found]
    record = records[0] if len(found) == 1 else {"audits": records}
    if as_json:
        output.print_json(record)
    else:
        from tideover.reports.audits.view import audit_view, audits_view

        for shown in audit_view(found[0]) if len(found) == 1 else audits_view(found):
            output.show(shown, whole_lines=True)
    if out is not None:
        from tideover.reports.audits.page import audit_page, audits_page

        page = partial(audit_page, found[0]) if len(found) == 1 else partial(audits_page, found)
        output.write(out, {}, page, record, errors=as_json)
