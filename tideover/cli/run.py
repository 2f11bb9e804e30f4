"""``tideover run`` and ``tideover compare``, with trace, diagram and saturation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tideover.cli import output
from tideover.cli.output import BadInput, Bar, Json, Out, Settings, Source, option

if TYPE_CHECKING:
    from tideover.models import config
    from tideover.models.accounts.trace import Stretch
    from tideover.models.results import Result
    from tideover.reports.html import Page
    from tideover.scenarios.loader import Scenario
    from tideover.scenarios.precedence import Settings as GivenSettings


# ``run --diagram``: the space-time diagram of a run.

Diagram = Annotated[
    Path | None,
    option(
        "Draw who sent what to whom: the run, if it is small, or the stretch around its first failure.",
        "--diagram",
        metavar="FILE.svg",
    ),
]
From = Annotated[str | None, option("Where the diagram begins, as 20s.", "--from", metavar="TIME")]
To = Annotated[str | None, option("Where the diagram ends, as 24s.", "--to", metavar="TIME")]
Components = Annotated[
    str | None,
    option("Components that the diagram shows; default: all.", "--components", metavar="A,B,…"),
]


class Asked(NamedTuple):
    """What to draw, and where to write it."""

    file: Path
    stretch: Stretch | None
    components: tuple[str, ...]


def asked_diagram(
    scenario: config.Scenario, file: Path | None, begin: str | None, end: str | None, components: str | None
) -> Asked | None:
    """What is asked for; None: no diagram. Raises BadInput before anything is run."""
    if file is None:
        for name, given in (("--from", begin), ("--to", end), ("--components", components)):
            if given is not None:
                raise BadInput(f"{name}: goes with --diagram FILE.svg")
        return None
    if file.suffix.lower() != ".svg":
        raise BadInput(f"--diagram: {file}: the picture is SVG, so the name has to end in .svg")
    ours = output.holds(b'aria-label="Space-time diagram')
    output.may_write(file, "--diagram", ours, "a diagram that tideover drew")
    names = tuple(name.strip() for name in (components or "").split(",") if name.strip())
    for name in names:
        if name not in scenario.topology:
            known = ", ".join(scenario.topology)
            raise BadInput(f"--components: {name!r} is no component of the scenario; it has {known}")
    return Asked(file, _stretch(scenario, begin, end), names)


def _stretch(scenario: config.Scenario, begin: str | None, end: str | None) -> Stretch | None:
    from tideover.models.accounts.trace import Stretch
    from tideover.sim.units import format_duration

    if begin is None and end is None:
        return None
    duration = scenario.run.duration
    first = 0 if begin is None else output.moment("--from", begin)
    last = duration if end is None else output.moment("--to", end)
    for name, moment in (("--from", first), ("--to", last)):
        if moment > duration:
            raise BadInput(
                f"{name}: {format_duration(moment)} is after the run's end, {format_duration(duration)}"
            )
    if first >= last:
        raise BadInput(f"--from: {format_duration(first)} is not before --to, {format_duration(last)}")
    return Stretch(first, last)


# ``--saturate``.

LONG_S = 10.0
"""Searches that take longer are announced."""


def announce(asked: Sequence[config.Scenario]) -> None:
    """Say on standard error how many rates will be tried, and how long that takes, if it takes long."""
    from tideover.scenarios.saturation import expected

    each = [expected(one) for one in asked]
    lasts = sum(seconds for _, seconds in each)
    if lasts >= LONG_S:
        tries = f"about {each[0][0]} rates are tried{' under each strategy' if len(each) > 1 else ''}"
        output.note([f"{tries}; that takes about {output.in_words(lasts)}, give or take a factor of three"])


def _find(asked: Sequence[config.Scenario], as_json: bool, out: Path | None, command: str) -> None:
    """How much the scenarios carry: one (of ``run``), or several (of ``compare``)."""
    from tideover.reports.rates import saturation_page
    from tideover.reports.terminal import saturation_view
    from tideover.scenarios.saturation import check, saturate

    for one in asked:
        check(one)  # before anything is written or run
    output.prepare(out, command)
    announce(asked)
    with Bar() as bar:
        found = [
            saturate(one, lambda done, rate: bar(f"trying {rate:,.0f} tuples/s", done, 0)) for one in asked
        ]
    records = [each.to_dict() for each in found]
    output.answer(
        records if command == "compare" else records[0],
        lambda: saturation_view(found),
        lambda: saturation_page(found),
        as_json=as_json,
        out=out,
    )


# ``tideover run`` and ``tideover compare``.

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
    diagram_file: Diagram = None,
    begin: From = None,
    end: To = None,
    components: Components = None,
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
        found, unused = output.loaded(scenario, settings)
        output.note(unused)
        _find([found], as_json, out, "run")
        return
    if find_warmup:
        _find_warmup(scenario, settings, as_json, trace or not (out is diagram_file is None))
        return
    from tideover import api

    found, unused = output.loaded(scenario, settings)
    drawn = asked_diagram(found, diagram_file, begin, end, components)
    output.note(unused)
    output.prepare(out, "run")
    said = output.announce([found])
    with Bar() as bar:
        result = api.run(found, trace=trace, report=bar.runs)
    record = result.to_dict()
    events: list[dict[str, Any]] = []
    if trace:
        from tideover.cli.trace import as_data

        events = [event for one in result.replications for event in as_data(one)]
    if trace and not as_json:
        _print_trace(result)

    def view() -> Any:
        from tideover.reports.terminal import run_view  # a tenth of a second that `--json` need not take

        return run_view(record, details)

    output.answer(
        record | ({"trace": events} if trace and as_json else {}),
        view,
        None,
        as_json=as_json,
        out=None,
        warnings=(text for text in result.warnings if text not in said),
    )
    if drawn is not None or out is not None:
        _write(result, record, drawn, out, as_json)


def _write(
    result: Result, record: dict[str, Any], drawn: Asked | None, out: Path | None, as_json: bool
) -> None:
    """The diagram, and the page with its tables, as far as they were asked for."""
    from tideover.reports import pages  # it draws, which takes a second to import

    if drawn is not None:
        svg = pages.of_result(result, drawn.stretch, drawn.components)
        with output.writing(drawn.file, option="--diagram"):
            drawn.file.write_text(svg, encoding="utf-8")
        output.stream(errors=as_json).write(f"Diagram: {drawn.file}\n")
    if out is not None:
        output.write(
            out,
            lambda: pages.run_page(result, pages.pictured(result)),
            record,
            errors=as_json,
            tables=lambda: _tables(result),
        )


def _find_warmup(source: str, settings: list[str] | None, as_json: bool, more: bool) -> None:
    """Say when the scenario has settled."""
    from tideover import api
    from tideover.scenarios.statistics.warm_up import settling

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
        option(
            "Strategies to compare, the reference first; all: all that there are; default: all that "
            "the scenario lists.",
            metavar="A,B,…",
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
    from tideover.reports.terminal import compare_view
    from tideover.scenarios.precedence import partly_used, read_settings
    from tideover.scenarios.runs import ALL, every_strategy

    kinds = None if strategies is None else [kind.strip() for kind in strategies.split(",") if kind.strip()]
    given = read_settings(settings or ())
    if kinds == [ALL]:
        every = every_strategy(scenario, given)
        kinds, given = list(every.kinds), [*every.settings, *given]
        output.note(every.notes)
    asked = _asked(scenario, kinds, given)  # before anything is written or run
    output.note(partly_used(list(asked), given))
    if saturate:
        _find(list(asked.values()), as_json, out, "compare")
        return
    output.prepare(out, "compare")
    said = output.announce(asked.values())
    with Bar() as bar:
        found = api.compare(scenario, kinds, given, report=bar.runs)
        bar("comparing", 0, 0)
        records, _ = found.to_list(), found.verdict

    def page() -> Page:
        from tideover.reports import pages

        return pages.compare_page(list(found.results.values()), found.verdict)

    output.answer(
        records,
        lambda: compare_view(records, found.verdict, details),
        page,
        as_json=as_json,
        out=out,
        warnings=(
            f"{one.strategy}: {text}"
            for one in found.results.values()
            for text in one.warnings
            if text not in said
        ),
        tables=lambda: _tables(found),
    )


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
    first, total = result.replications[0], len(result.replications)
    more = f" of {total}; --set run.seed=… shows another" if total > 1 else ""
    sys.stdout.write(f"Events of replication {first.number}{more}\n")
    from tideover.cli.trace import lines

    sys.stdout.writelines(f"{line}\n" for line in lines(first))
    sys.stdout.write("\n")
