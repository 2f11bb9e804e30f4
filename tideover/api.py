"""The verbs of the command line as functions, with tables inside: what `import tideover` offers.

`tideover/__init__.py` hands them out, `cli` calls them. A new verb is a function here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from tideover.models import config, results
from tideover.models.schema import frame
from tideover.models.strategies.base import Strategy
from tideover.scenarios import library, runs
from tideover.scenarios.loader import Scenario, Source, load_for_strategies, tree
from tideover.scenarios.loader import load as load_scenario
from tideover.scenarios.lost_time import detector as by_timeout
from tideover.scenarios.lost_time import interval as by_interval
from tideover.scenarios.lost_time.curve import Report
from tideover.scenarios.lost_time.detector import BestTimeout
from tideover.scenarios.lost_time.interval import BestInterval
from tideover.scenarios.precedence import Settings, read_settings
from tideover.scenarios.runs import ALL, every_strategy
from tideover.sim.registry import kind_of
from tideover.sim.units import S, parse_duration

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results import Result
    from tideover.reports.conclusions import Verdict
    from tideover.scenarios.audit.audit import Audit
    from tideover.scenarios.hours import Hours
    from tideover.scenarios.objectives.check import Check
    from tideover.scenarios.planning.plan import Plan
    from tideover.scenarios.planning.search import Evaluator, Search, Session
    from tideover.scenarios.planning.spec import Spec
    from tideover.scenarios.saturation import Saturation
    from tideover.scenarios.statistics.availability import Dependability
    from tideover.scenarios.sweeps.dataset import Sweep


def run(
    scenario: Source,
    settings: Settings = (),
    *,
    trace: bool = False,
    report: Callable[[int, int], None] | None = None,
) -> Result:
    """Simulate all replications of a scenario; ``scenario`` and ``settings`` as for ``tideover.load``.

    ``trace``: keep every tuple, for small runs. ``report``: called with the number of replications that are
    done, and of all. Raises like ``tideover.load``, and RunFailed if a replication fails.
    """
    return runs.run(loaded(scenario, settings), trace=trace, report=report)


def compare(
    scenario: Source,
    strategies: Sequence[str | Strategy] | None = None,
    settings: Settings = (),
    *,
    report: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Simulate the same scenario, failures and luck under several strategies; the first is the reference.

    ``strategies``: typed objects, or kinds, each with the parameters that the scenario's block ``strategies``
    has for it; None for all that the block names; ``"all"`` for all that there are and that go with the
    scenario, where keys that one needs and nobody gave have its usual values. ``settings`` and ``report`` as
    for ``run``. Raises like ``run``, and ValueError if there are not two strategies, or two of one kind.
    """
    found = compared(scenario, strategies, settings)
    return Comparison(runs.each(found, report and (lambda _, done, total: report(done, total))))


class _Sweeping(TypedDict, total=False):
    """How a sweep is done: the options of ``sweep``."""

    master: str | None
    remote: str | None
    conf: Mapping[str, Any] | None
    archive: str | Path | None
    out: str | Path | None
    data: str | Path | None
    fail_fast: bool
    retry_failed: bool
    report: Callable[[str, float, int], None] | None


@overload
def sweep(
    scenario: config.Scenario, grid: Mapping[str, Iterable[Any]], /, **options: Unpack[_Sweeping]
) -> Sweep: ...
@overload
def sweep(
    spec: str | Path | Mapping[str, Any], settings: Settings = (), **options: Unpack[_Sweeping]
) -> Sweep: ...
def sweep(
    spec: str | Path | Mapping[str, Any] | config.Scenario,
    settings: Any = (),
    *,
    master: str | None = "local[*,4]",
    remote: str | None = None,
    conf: Mapping[str, Any] | None = None,
    archive: str | Path | None = None,
    out: str | Path | None = None,
    data: str | Path | None = None,
    fail_fast: bool = False,
    retry_failed: bool = False,
    report: Callable[[str, float, int], None] | None = None,
) -> Sweep:
    """Simulate every point of a grid: a scenario and the values that some of its keys take, or a sweep file,
    the name of a built-in sweep, or a mapping as such a file would hold it.

    Values may be typed objects: ``sweep(scenario, {"strategy": [SourceReplay(), Amnesia()]})``. ``settings``:
    as for ``run``; a list of values for a key of the grid takes the place of the grid's.
    ``master``: Spark's; None does without Spark, in this process, as the usual master does where Spark is not
    installed, with a warning. ``remote``: a Spark Connect server, ``sc://host:port``, in place of a master.
    ``conf``: Spark's settings, ``{"spark.executor.memory": "2g"}``. ``archive``: packages for workers that
    lack them (``tideover sweep --package``). ``out``: a directory in which the dataset is kept; what is there
    already is not done again. ``data``: instead of it, where the dataset itself lies, a path or a URL that
    Spark knows. ``fail_fast``: end with the first run that fails; ``retry_failed``: do those again that
    failed. ``report``: called with what is being done, how many runs are done, and of how many.

    Raises ScenarioError; JavaNotFound, SparkNotStarted and SweepFailed if Spark does not work; RunsFailed
    with ``fail_fast``; ValueError and OSError for ``out`` and ``data``.
    """
    if isinstance(spec, config.Scenario):
        spec, settings = {"scenario": spec, "grid": settings}, ()
    from tideover.reports.parquet import prepare
    from tideover.scenarios.spark.settings import Place
    from tideover.scenarios.sweeps import sweep as sweeps
    from tideover.scenarios.sweeps import sweep_file
    from tideover.scenarios.sweeps.dataset import FOLDER

    recipe = sweep_file.read(spec, settings)
    return sweeps.sweep(
        recipe,
        data if out is None else prepare(out) / FOLDER,
        where=Place.given(master, remote, conf, archive),
        fail_fast=fail_fast,
        retry_failed=retry_failed,
        report=report or (lambda *_: None),
    )


def load(source: Source, settings: Settings = ()) -> Scenario:
    """The scenario of a built-in name, a path, a mapping as a file would hold it, or of another scenario; of
    a directory what a sweep has left there (for type checkers: ``Sweep.open``).

    ``settings``: texts ``key=value`` as given to ``--set``, or a mapping: ``{"run.seed": 3}``.

    Raises ScenarioError for a scenario that cannot be used, TypeError for settings that are neither a list of
    texts nor a mapping, NoDataset (a ValueError) for a directory without the dataset of a whole sweep.
    """
    if isinstance(source, str | Path) and Path(source).is_dir() and str(source) not in library.names():
        from tideover.scenarios.sweeps.dataset import Sweep

        found: Any = Sweep.open(source)  # what nearly all calls return keeps its type
        return found
    return load_scenario(source, settings)


def plan(
    spec: str | Path | Mapping[str, Any],
    settings: Settings = (),
    *,
    master: str | None = "local[*,4]",
    remote: str | None = None,
    conf: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    evaluator: Evaluator | None = None,
    search: Callable[[Spec, Session], Search] | None = None,
    report: Callable[[str, int, int], None] | None = None,
) -> Plan:
    """Find the cheapest configuration that meets objectives: of a plan's file, or a mapping as such a file
    would hold it, of which the scenario may also be a ``Scenario``.

    ``settings``: as for ``run``; ``master``, ``remote``, ``conf``, ``report``: as for ``sweep``. ``out``: a
    directory in which runs are kept; what is there already is not done again. ``evaluator``: who does the
    runs instead (`tideover.scenarios.planning.search.Evaluator`). ``search``: makes what decides which runs
    to do (`tideover.scenarios.planning.search.Search`); None: the planner's own. Raises like ``sweep``.
    """
    from tideover.scenarios.planning import plan as planning
    from tideover.scenarios.planning import spec as specs
    from tideover.scenarios.spark.settings import Place

    asked = specs.read(Path(spec) if isinstance(spec, str) else spec, settings)
    tell = report or (lambda what, done, most: None)
    if evaluator is not None:
        return planning.plan(asked, evaluator, search, tell)
    most = asked.space.total * asked.effort.most
    where = Place.given(master, remote, conf)
    with planning.kept(asked.space, out, where, lambda what, done: tell(what, int(done), most)) as engine:
        return planning.plan(asked, engine, search, tell)


def saturate(
    scenario: Source, settings: Settings = (), *, report: Callable[[int, float], None] | None = None
) -> Saturation:
    """Find the greatest rate that a scenario carries on and on without failures, and what it is short of; the
    rates of all spouts are scaled together.

    ``report``: called with the number of rates that were tried, and the next one (tuples/s). Raises like
    ``tideover.load``, and ScenarioError if the spouts have no rate to scale.
    """
    from tideover.scenarios import saturation

    return saturation.saturate(loaded(scenario, settings), report)


def availability(
    scenario: Source,
    mtbf: Mapping[str, str] = {},
    settings: Settings = (),
    *,
    slo: float | None = None,
    over: str | None = None,
    report: Callable[[int, int], None] | None = None,
) -> Dependability:
    """Find the availability of a scenario whose failures are too rare to wait for.

    Each cause of failures strikes once in each of ``run.replications`` runs, at a drawn moment; from how long
    it then takes to recover, and how often failures come, follow the availability, the minutes in a year that
    are down, and how much of an error budget that burns.

    ``mtbf``: mean time between failures of each host, rack, worker or task, or of one of the scenario's
    failures: ``{"host": "30 d", "failures.1": "90 d"}``. ``slo``: the availability that is demanded, as
    0.9995; ``over``: the period of its budget, as ``"30 d"``; by default a year. The rest as for ``run``.
    Raises like ``run``, ScenarioError for ``mtbf`` too, ValueError for ``slo`` and ``over``.
    """
    from tideover.scenarios.statistics import availability as conditioning

    over_s = conditioning.YEAR_S if over is None else parse_duration(over) / S
    found = loaded(scenario, settings)
    return conditioning.find(found, mtbf, objective=slo, over_s=over_s, report=report)


def check(
    scenario: Source,
    objectives: Iterable[str] | None = None,
    settings: Settings = (),
    *,
    strict: bool = False,
    report: Callable[[int, int], None] | None = None,
) -> Check:
    """Simulate a scenario and hold it against objectives, such as ``recovery_p95 <= 20 s``.

    ``objectives``: None for those of the scenario's block ``slo``. ``strict``: one whose interval has the
    limit in it counts as broken. The rest as for ``run``. Raises like ``run``, and ScenarioError if there are
    no objectives, or for a text that is none.

    >>> import tideover
    >>> found = tideover.check("wordcount", ["lost = 0", "recovery_mean <= 20 s"])
    >>> [one.verdict for one in found.judgements], found.ok
    (['met', 'broken'], False)
    """
    from tideover.scenarios.objectives import check as checks

    if isinstance(objectives, str):
        raise TypeError(f"objectives is the text {objectives!r}; give a list, {[objectives]}")
    found = loaded(scenario, settings)
    return checks.check(
        found, checks.asked(found, objectives, "objectives", found.name), strict=strict, report=report
    )


def audit(
    target: Source,
    settings: Settings = (),
    *,
    kinds: Sequence[str] | None = None,
    begin: str | None = None,
    end: str | None = None,
    each: int = 2,
    second: bool = True,
    master: str | None = "local[*,4]",
    remote: str | None = None,
    conf: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    report: Callable[[str, float, int], None] | None = None,
) -> Audit:
    """Find out what a strategy guarantees: fail before, at, after and between the steps of its protocol.

    ``target``: the name of a strategy, which is audited in the built-in scenario ``audit``, or a scenario.
    ``kinds``: of faults; None: all that take something. ``begin`` and ``end``: between which times
    (``"60 s"``) steps are struck; None: for two windows after the warm-up. ``each``: moments of each step.
    ``second``: let a second fault strike during recoveries, too. ``master``, ``remote``, ``conf``,
    ``report``: as for ``sweep``; ``out``: a directory in which runs are kept.
    Raises like ``sweep``, and ValueError for options that cannot be used.

    >>> import tideover
    >>> found = tideover.audit("none", kinds=["lose_state"], end="22 s", each=1, second=False, master=None)
    >>> found.claimed, found.observed
    ('at most once', 'at most once')
    """
    from tideover.scenarios.audit import cases
    from tideover.scenarios.audit.audit import audit as audited
    from tideover.scenarios.spark.settings import Place
    from tideover.scenarios.sweeps.sweep import kept

    scenario, command = cases.target(target, settings)
    tried = cases.asked(scenario, kinds=kinds, begin=begin, end=end, each=each, second=second)
    tell = report or (lambda what, done, total: None)
    with kept(out, Place.given(master, remote, conf), lambda what: tell(what, 0, 0)) as doer:
        return audited(scenario, command, tried, doer, tell)


def hours(
    scenario: Source,
    times: Sequence[str] | None = None,
    settings: Settings = (),
    *,
    report: Callable[[str, int, int], None] | None = None,
) -> Hours:
    """Let a scenario's first failure strike at each of these times of day (``["4:00", "18:00"]``; None: every
    two hours), where load follows the time of day: what it costs hour by hour, and over the day.

    ``report`` as for ``sweep``. Raises like ``run``, and ValueError for what is no time of day.
    """
    from tideover.scenarios import hours as by_hour

    return by_hour.hours(loaded(scenario, settings), times, report)


def loaded(scenario: Source, settings: Settings = ()) -> config.Scenario:
    """The scenario of a source, with the settings applied; raises ScenarioError."""
    if isinstance(scenario, config.Scenario) and not len(settings):
        return scenario
    return load_scenario(scenario, settings)


def compared(
    scenario: Source, strategies: Sequence[str | Strategy] | None = None, settings: Settings = ()
) -> dict[str, Scenario]:
    """The scenario under each strategy, by kind; raises like ``compare``."""
    if strategies == ALL or strategies == [ALL]:
        every = every_strategy(tree(scenario), settings)
        strategies, settings = every.kinds, [*every.settings, *read_settings(settings)]
    if isinstance(strategies, str):
        raise TypeError(f"strategies is the text {strategies!r}; give a list, {[strategies]}")
    kinds = None if strategies is None else [s if isinstance(s, str) else kind_of(s) for s in strategies]
    if kinds is not None and len(set(kinds)) < len(kinds):
        raise ValueError(f"a strategy is named twice in {', '.join(kinds)}; name each once")
    typed = {f"strategies.{kind_of(s)}": s for s in strategies or () if isinstance(s, Strategy)}
    given = [*read_settings(typed), *read_settings(settings)]
    found = load_for_strategies(tree(scenario), kinds, given)
    if len(found) < 2:
        only = f", not only {', '.join(found)}" if found else ""
        raise ValueError(f"a comparison needs at least two strategies{only}")
    return {kind: Scenario.of(one) for kind, one in found.items()}


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` found: ``results`` by strategy, the reference first.

    recoveries, runs, timeline, tasks, usage    tidy tables of all strategies together
    differences                          paired differences: each strategy minus the reference, by replication
    verdict                              the figures in a few sentences, and the best strategy
    """

    results: dict[str, Result]

    def __repr__(self) -> str:
        rows = [result.headline() for result in self.results.values()]
        shown = [f"{row['strategy']}: {results.sentence(row)}" for row in rows]
        return "\n  ".join([f"<Comparison {rows[0]['scenario']!r}", *shown]) + ">"

    def _repr_html_(self) -> str:
        return results.html([result.headline() for result in self.results.values()])

    @property
    def recoveries(self) -> pd.DataFrame:
        """One row a failure."""
        return self._joined("recoveries")

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run."""
        return self._joined("runs")

    @property
    def timeline(self) -> pd.DataFrame:
        """One row a simulated second."""
        return self._joined("timeline")

    @property
    def tasks(self) -> pd.DataFrame:
        """One row a task and run: how busy it was."""
        return self._joined("tasks")

    @property
    def usage(self) -> pd.DataFrame:
        """One row a resource, stretch of the run, and run."""
        return self._joined("usage")

    @cached_property
    def verdict(self) -> Verdict:
        """``text``, ``reference``, ``best``, and ``pairs`` for every compared column."""
        from tideover.reports.conclusions import verdict

        return verdict(self.recoveries, self.runs)

    @property
    def differences(self) -> pd.DataFrame:
        """One row a strategy and column: mean of the paired differences, with two 95 % intervals."""
        import pandas as pd

        return pd.DataFrame([row for rows in self._differences().values() for row in rows])

    def to_list(self) -> list[dict[str, Any]]:
        """For each strategy what ``run --json`` prints, and ``differences``, ``reference``, ``verdict``."""
        found = self.verdict
        rows = self._differences()
        more = {"reference": found.reference, "best": found.best, "verdict": found.text}
        return [
            result.to_dict() | {"differences": rows.get(kind, [])} | more
            for kind, result in self.results.items()
        ]

    def _joined(self, name: str) -> pd.DataFrame:
        return frame(name, [row for result in self.results.values() for row in result.rows(name)])

    def _differences(self) -> dict[str, list[dict[str, Any]]]:
        rows: dict[str, list[dict[str, Any]]] = {}
        for pair in self.verdict.pairs:
            found, row = (
                pair.difference,
                {"strategy": pair.first, "minus": pair.second, "column": pair.column},
            )
            row["mean"] = found.mean
            row["t_low"], row["t_high"] = found.t or (None, None)
            row["bootstrap_low"], row["bootstrap_high"] = found.bootstrap or (None, None)
            rows.setdefault(pair.first, []).append(row | {"pairs": found.n, "undefined": found.undefined})
        return rows


def interval(
    scenario: Source,
    mtbf: Mapping[str, str] = {},
    settings: Settings = (),
    *,
    intervals: Sequence[str] | None = None,
    replications: int | None = None,
    report: Report | None = None,
) -> BestInterval:
    """Find the checkpoint interval at which the least time is lost: to checkpoints, which keep tasks from
    work, and to failures, after which what came since the last one is done again.

    ``mtbf`` as for ``availability``. ``intervals``: those that are tried, as ``["30 s", "2 min"]``; None:
    around the optimum of a formula. ``replications``: runs for each interval and cause; None: those of the
    scenario, at least 10. ``report`` as for ``sweep``. Raises like ``availability``, and ScenarioError for a
    strategy without checkpoints, or with free ones.
    """
    values = None if intervals is None else [parse_duration(text) for text in intervals]
    return by_interval.find(by_interval.ask(loaded(scenario, settings), mtbf, values, replications), report)


def detector(
    scenario: Source,
    pauses: str | Mapping[str, Any],
    every: str,
    mtbf: Mapping[str, str] = {},
    settings: Settings = (),
    *,
    timeouts: Sequence[str] | None = None,
    replications: int | None = None,
    report: Report | None = None,
) -> BestTimeout:
    """Find the timeout of a detector of kind ``heartbeats`` at which the least time is lost: to failures that
    are noticed late, and to processes that only paused, and are restarted all the same.

    ``pauses``: how long a bolt task's process stops, again and again, as a scenario says it: ``"12 s"`` or
    ``{"kind": "exponential", "mean": "3 s"}``; ``every``: from one pause of a process to its next on average,
    as ``"1 h"``. ``timeouts``: those that are tried, as ``["50 s", "20 s"]``. The rest as for ``interval``.

    Raises like ``interval``, and ScenarioError for a scenario without such a detector.
    """
    values = None if timeouts is None else [parse_duration(text) for text in timeouts]
    given = by_timeout.pauses_of(pauses), parse_duration(every)
    asked = by_timeout.ask(loaded(scenario, settings), *given, mtbf, values, replications)
    return by_timeout.find(asked, report)
