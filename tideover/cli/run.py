"""``tideover run`` and ``tideover compare``, with trace, diagram and saturation.

`app` adds them to the program; `tideover.api` makes runs. What draws is imported only where it is needed.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.cli import output
from tideover.cli.output import PRINT, BadInput, Bar, Results, Source, Texts

if TYPE_CHECKING:
    from tideover.models import config
    from tideover.models.accounts.trace import Stretch
    from tideover.models.results import Result
    from tideover.models.simulation import Replication
    from tideover.reports.html import Page

LONG_S = 10.0
"""Searches of saturation that take longer are announced."""


def checked_diagram(
    scenario: config.Scenario, file: Path | None, begin: str | None, end: str | None, components: str | None
) -> tuple[Stretch | None, tuple[str, ...]] | None:
    """What to draw: the stretch, and which components; None: nothing. Raises BadInput before a run."""
    from tideover.models.accounts.trace import Stretch
    from tideover.sim.units import format_duration

    if file is None:
        for name, given in (("--from", begin), ("--to", end), ("--components", components)):
            if given is not None:
                raise BadInput(f"{name}: goes with --diagram FILE.svg")
        return None
    if file.suffix.lower() != ".svg":
        raise BadInput(f"--diagram: {file}: the picture is SVG, so the name has to end in .svg")
    ours = b'aria-label="Space-time diagram'
    output.may_write(file, "--diagram", ours, "a diagram that tideover drew")
    names = tuple(name.strip() for name in (components or "").split(",") if name.strip())
    for name in names:
        if name not in scenario.topology:
            known = ", ".join(scenario.topology)
            raise BadInput(f"--components: {name!r} is no component of the scenario; it has {known}")
    if begin is None and end is None:
        return None, names
    duration = scenario.run.duration
    first = 0 if begin is None else output.moment("--from", begin)
    last = duration if end is None else output.moment("--to", end)
    for name, moment in (("--from", first), ("--to", last)):
        if moment > duration:
            after = f"{format_duration(moment)} is after the run's end, {format_duration(duration)}"
            raise BadInput(f"{name}: {after}")
    if first >= last:
        raise BadInput(f"--from: {format_duration(first)} is not before --to, {format_duration(last)}")
    return Stretch(first, last), names


def announce(asked: Sequence[config.Scenario]) -> None:
    """Say on standard error how many rates will be tried, and how long that takes, if it takes long."""
    from tideover.reports.formatting import in_words
    from tideover.scenarios.saturation import expected

    each = [expected(one) for one in asked]
    lasts = sum(seconds for _, seconds in each)
    if lasts >= LONG_S:
        tries = f"about {each[0][0]} rates are tried{' under each strategy' if len(each) > 1 else ''}"
        output.note([f"{tries}; that takes about {in_words(lasts)}, give or take a factor of three"])


def _saturate(asked: Sequence[config.Scenario], results: Results, command: str) -> None:
    """How much the scenarios carry: one (of ``run``), or several (of ``compare``)."""
    from tideover.reports.rates import saturation_page
    from tideover.reports.terminal import saturation_view
    from tideover.scenarios.saturation import check, saturate

    for one in asked:
        check(one)  # before anything is written or run
    results.prepare(command)
    announce(asked)
    with Bar() as bar:
        found = [
            saturate(one, lambda done, rate: bar(f"trying {rate:,.0f} tuples/s", done, 0)) for one in asked
        ]
    records = [each.to_dict() for each in found]
    shown = records if command == "compare" else records[0]
    results.answer(shown, lambda: saturation_view(found), lambda: saturation_page(found))


def run(
    scenario: Source,
    settings: Texts = None,
    results: Results = PRINT,
    trace: bool = False,
    diagram: Path | None = None,
    from_: str | None = None,
    to: str | None = None,
    components: str | None = None,
    saturate: bool = False,
    find_warmup: bool = False,
    details: bool = False,
) -> None:
    """Simulate one scenario.

    For example: tideover run wordcount --set strategy.kind=rsm --set failures.0.at=80s

    --trace: Print what the protocol did, in order. For small runs.
    --diagram FILE.svg: Draw who sent what to whom: the run, if it is small, or the stretch around its first
        failure.
    --from TIME: Where the diagram begins, as 20s.
    --to TIME: Where the diagram ends, as 24s.
    --components A,B,…: Components that the diagram shows; default: all.
    --saturate: Find the greatest rate that is carried on and on, without failures, and what it is short of.
    --find-warmup: Find where the warm-up ends, on runs in which nothing fails.
    --details: Print all figures.
    """
    if saturate:
        for name, asked in (("--trace", trace), ("--diagram", diagram)):
            if asked:
                raise BadInput(f"{name}: goes with a run, not with --saturate, which makes many")
        found = output.loaded(scenario, settings)
        _saturate([found], results, "run")
        return
    if find_warmup:
        if trace or diagram is not None or results.out is not None:
            raise BadInput("--find-warmup: goes with --set and --json alone")
        _find_warmup(scenario, settings, results.json)
        return
    from tideover import api

    found = output.loaded(scenario, settings)
    drawn = checked_diagram(found, diagram, from_, to, components)
    results.prepare("run")
    said = output.announce([found])
    with Bar() as bar:
        result = api.run(found, trace=trace, report=bar.runs)
    record = result.to_dict()
    more = _trace(result, results.json) if trace else {}

    def view() -> Any:
        from tideover.reports.terminal import run_view  # a tenth of a second that `--json` need not take

        return run_view(record, details)

    results.answer(record | more, view, warnings=(text for text in result.warnings if text not in said))
    if diagram is not None or results.out is not None:
        from tideover.reports import pages  # it draws, which takes a second to import

        if diagram is not None and drawn is not None:
            svg = pages.of_result(result, *drawn)
            with output.writing(diagram, option="--diagram"):
                diagram.write_text(svg, encoding="utf-8")
            results.say(f"Diagram: {diagram}")
        results.write(
            record, lambda: pages.run_page(result, pages.pictured(result)), tables=lambda: _tables(result)
        )


def _trace(result: Result, as_json: bool) -> dict[str, Any]:
    """Print what the protocol did in the first replication; for JSON what it did in all."""
    from tideover.sim.units import S

    if as_json:
        found = ((one.number, event) for one in result.replications for event in _events(one))
        return {"trace": [{"replication": n, "at_s": at / S, "event": text} for n, (at, text) in found]}
    first, total = result.replications[0], len(result.replications)
    more = f" of {total}; --set run.seed=… shows another" if total > 1 else ""
    sys.stdout.write(f"Events of replication {first.number}{more}\n")
    sys.stdout.writelines(f"{line}\n" for line in trace_lines(first))
    sys.stdout.write("\n")
    return {}


def trace_lines(replication: Replication) -> Iterator[str]:
    """The events of a traced replication, one a line, and a line of counts for each stretch between them."""
    from tideover.models.accounts.trace import moment_text

    trace = replication.trace
    if trace is None:
        return
    moved = {  # moments at which tuples moved, by what they did
        "roots emitted": [row[-1] for row in trace.emitted if row[3] == 0],
        "sent again": [row[-1] for row in trace.emitted if row[3] > 0],
        "tuples processed": [row[-1] for row in trace.processed],
        "roots complete": [row[-1] for row in trace.completed],
        "tuples destroyed": [row[-1] for row in trace.destroyed],
    }
    flows = {what: sorted(times) for what, times in moved.items()}
    before = -1
    for at, text in [*_events(replication), (1 << 62, "")]:
        counts = {w: bisect_right(times, at) - bisect_right(times, before) for w, times in flows.items()}
        if any(counts.values()):
            said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
            yield f"{'':>14}   … {said}"
        if text:
            yield f"{moment_text(at):>16}  {text}"
        before = max(before, at)


def _events(replication: Replication) -> list[tuple[int, str]]:
    """Moments (ns) of a traced replication, and what happened then."""
    from tideover.models.accounts.trace import DETECTED, READY, struck_text, window_text
    from tideover.sim.units import S

    found: list[tuple[int, str]] = []
    if (trace := replication.trace) is None:
        return found
    for row in replication.recoveries:
        what, failed = row["component"], row["failed_at_s"]
        found.append((round(failed * S), struck_text(what, row["kind"])))
        for name, said in (("detected_at_s", DETECTED), ("ready_at_s", READY)):
            if row[name] is not None and row[name] > failed:
                found.append((round(row[name] * S), f"{what}: {said}"))
    found += [(step.at, step.text) for step in trace.steps]
    for component, task, replica, number, at, sums in trace.windows:
        copy = f"/{replica}" if replica else ""
        count = sum(sums.values())
        found.append((at, f"{component}.{task}{copy}: {window_text(number, count, len(sums))}"))
    return sorted(found, key=lambda event: event[0])


def _find_warmup(source: str, settings: list[str] | None, as_json: bool) -> None:
    from tideover import api
    from tideover.scenarios.statistics.warm_up import settling

    with Bar() as bar:
        found = settling(api.loaded(source, settings or ()), bar.runs)
    if as_json:
        output.print_json(found.to_dict())
    else:
        from rich.text import Text

        output.show(Text(f"{found.sentence[:1].upper()}{found.sentence[1:]}."))


def compare(
    scenario: Source,
    strategies: str | None = None,
    settings: Texts = None,
    results: Results = PRINT,
    saturate: bool = False,
    details: bool = False,
) -> None:
    """Simulate the same scenario, failures and luck under several strategies, side by side.

    For example: tideover compare wordcount --strategies source_replay,rsm

    --strategies A,B,…: Strategies to compare, the reference first; all: all that there are; default: all that
        the scenario lists.
    --saturate: Find the greatest rate that is carried on and on, without failures, and what it is short of.
    --details: Print all figures of each strategy, and paired differences.
    """
    from tideover import api
    from tideover.reports.terminal import compare_view
    from tideover.scenarios.errors import ScenarioError
    from tideover.scenarios.precedence import partly_used, read_settings
    from tideover.scenarios.runs import ALL, every_strategy

    kinds = None if strategies is None else [kind.strip() for kind in strategies.split(",") if kind.strip()]
    given = read_settings(settings or ())
    if kinds == [ALL]:
        every = every_strategy(scenario, given)
        kinds, given = list(every.kinds), [*every.settings, *given]
        output.note(every.notes)
    try:  # before anything is written or run
        asked = api.compared(scenario, kinds, given)
    except ScenarioError as error:
        raise ScenarioError(
            replace(p, file="--strategies") if kinds and p.key == "strategy.kind" and p.line is None else p
            for p in error.problems
        ) from None
    except ValueError as error:
        raise BadInput(f"--strategies: {error}") from None
    output.note(partly_used(list(asked), given))
    if saturate:
        _saturate(list(asked.values()), results, "compare")
        return
    results.prepare("compare")
    said = output.announce(asked.values())
    with Bar() as bar:
        found = api.compare(scenario, kinds, given, report=bar.runs)
        bar("comparing", 0, 0)
        records, verdict = found.to_list(), found.verdict

    def page() -> Page:
        from tideover.reports import pages

        return pages.compare_page(list(found.results.values()), verdict)

    warnings = ((one.strategy, text) for one in found.results.values() for text in one.warnings)
    results.answer(
        records,
        lambda: compare_view(records, verdict, details),
        page,
        warnings=(f"{strategy}: {text}" for strategy, text in warnings if text not in said),
        tables=lambda: _tables(found),
    )


def _tables(found: Any) -> dict[str, Any]:
    tables = {name: getattr(found, name) for name in ("recoveries", "runs", "timeline", "tasks", "usage")}
    return {name: table for name, table in tables.items() if name != "usage" or len(table)}
