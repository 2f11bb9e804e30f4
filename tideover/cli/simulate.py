"""``tideover run`` and ``tideover compare``."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import diagram, output, saturation
from tideover.cli.output import BadInput, Json, Out, Settings
from tideover.cli.progress import Bar

if TYPE_CHECKING:
    from tideover.models.results.result import Result
    from tideover.scenarios.scenario import Scenario
    from tideover.scenarios.settings import Settings as GivenSettings

Source = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a built-in scenario.")
]
Saturate = Annotated[
    bool,
    typer.Option(
        "--saturate",
        help="Find the greatest rate that is carried on and on, without failures, and what it is short of.",
    ),
]


def run(
    scenario: Source,
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print what the protocol did, in order. For small runs.")
    ] = False,
    diagram_file: diagram.File = None,
    begin: diagram.From = None,
    end: diagram.To = None,
    components: diagram.Components = None,
    saturate: Saturate = False,
    find_warmup: Annotated[
        bool,
        typer.Option("--find-warmup", help="Find where the warm-up ends, on runs in which nothing fails."),
    ] = False,
    details: Annotated[bool, typer.Option("--details", help="Print all figures.")] = False,
) -> None:
    """Simulate one scenario.

    For example: tideover run wordcount --set strategy.kind=rsm --set failures.0.at=80s
    """
    if saturate:
        for name, asked in (("--trace", trace), ("--diagram", diagram_file)):
            if asked:
                raise BadInput(f"{name}: goes with a run, not with --saturate, which makes many")
        saturation.run(scenario, settings, as_json, out)
        return
    if find_warmup:
        _find_warmup(scenario, settings, as_json, trace or not (out is diagram_file is None))
        return
    from tideover import api
    from tideover.scenarios.loader import unused
    from tideover.scenarios.settings import read_settings
    from tideover.sim.registry import kind_of

    given = read_settings(settings or ())
    found = api.loaded(scenario, given)
    drawn = diagram.asked(found, diagram_file, begin, end, components)
    output.note(unused(scenario, kind_of(found.strategy), given))
    output.prepare(out, "run")
    said = output.announce([found])
    with Bar() as bar:
        result = api.run(found, trace=trace, report=bar.runs)
    record = result.to_dict()
    if as_json:
        output.warn(text for text in result.warnings if text not in said)
        output.print_json(record | ({"trace": _events(result)} if trace else {}))
    else:
        from tideover.reports.terminal import run_view

        if trace:
            _print_trace(result)
        output.show(run_view(record, details))
    if drawn is not None:
        diagram.write(drawn, result, errors=as_json)
    if out is not None:
        from tideover.reports import diagrams, pages

        output.write(
            out,
            _tables(result),
            lambda: pages.run_page(result, diagrams.pictured(result)),
            record,
            errors=as_json,
        )


def _find_warmup(source: str, settings: list[str] | None, as_json: bool, more: bool) -> None:
    """Say when the scenario has settled."""
    from tideover import api
    from tideover.scenarios.statistics.settling import settling

    if more:
        raise BadInput("--find-warmup: goes with --set and --json alone")
    with Bar() as bar:
        found = settling(api.loaded(source, settings or ()), bar.runs)
    if as_json:
        output.print_json(found.to_dict())
    else:
        from rich.text import Text

        output.show(Text(f"{found.sentence[:1].upper()}{found.sentence[1:]}."))


def compare(
    scenario: Source,
    strategies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Strategies to compare, the reference first; all: all that there are; default: all that "
            "the scenario lists.",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
    saturate: Saturate = False,
    details: Annotated[
        bool, typer.Option("--details", help="Print all figures of each strategy, and paired differences.")
    ] = False,
) -> None:
    """Simulate the same scenario, failures and luck under several strategies, side by side.

    For example: tideover compare wordcount --strategies source_replay,rsm
    """
    from tideover import api
    from tideover.scenarios.every_strategy import ALL, every_strategy
    from tideover.scenarios.settings import partly_used, read_settings

    kinds = None if strategies is None else [kind.strip() for kind in strategies.split(",") if kind.strip()]
    given = read_settings(settings or ())
    if kinds == [ALL]:
        every = every_strategy(scenario, given)
        kinds, given = list(every.kinds), [*every.settings, *given]
        output.note(every.notes)
    asked = _asked(scenario, kinds, given)  # before anything is written or run
    output.note(partly_used(list(asked), given))
    if saturate:
        saturation.compare(list(asked.values()), as_json, out)
        return
    output.prepare(out, "compare")
    said = output.announce(asked.values())
    with Bar() as bar:
        found = api.compare(scenario, kinds, given, report=bar.runs)
        bar("comparing", 0, 0)
        records, _ = found.to_list(), found.verdict
    if as_json:
        for result in found.results.values():
            output.warn(f"{result.strategy}: {text}" for text in result.warnings if text not in said)
        output.print_json(records)
    else:
        from tideover.reports.terminal import compare_view

        output.show(compare_view(records, found.verdict, details))
    if out is not None:
        from tideover.reports import pages

        page = partial(pages.compare_page, list(found.results.values()), found.verdict)
        output.write(out, _tables(found), page, records, errors=as_json)


def _asked(scenario: str, kinds: list[str] | None, given: GivenSettings) -> dict[str, Scenario]:
    """The scenario under each strategy."""
    from tideover import api
    from tideover.scenarios.errors import ScenarioError

    try:
        return api.compared(scenario, kinds, given)
    except ScenarioError as error:
        raise ScenarioError(
            replace(p, file="--strategies") if kinds and p.key == "strategy.kind" and p.line is None else p
            for p in error.problems
        ) from None
    except ValueError as error:
        raise BadInput(f"--strategies: {error}") from None


def _tables(found: Any) -> dict[str, Any]:
    tables = {name: getattr(found, name) for name in ("recoveries", "runs", "timeline", "tasks", "usage")}
    return {name: table for name, table in tables.items() if name != "usage" or len(table)}


def _print_trace(result: Result) -> None:
    from tideover.cli.trace import lines

    first, total = result.replications[0], len(result.replications)
    more = f" of {total}; --set run.seed=… shows another" if total > 1 else ""
    sys.stdout.write(f"Events of replication {first.number}{more}\n")
    sys.stdout.writelines(f"{line}\n" for line in lines(first))
    sys.stdout.write("\n")


def _events(result: Result) -> list[dict[str, Any]]:
    from tideover.cli.trace import as_data

    return [event for replication in result.replications for event in as_data(replication)]
