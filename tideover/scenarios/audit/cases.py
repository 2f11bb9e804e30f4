"""What an audit lets fail, at each step of a protocol, and which guarantee a run has kept.

`audit` puts it together; the command line and `tideover.api` read what is asked for (``target``, ``asked``).
A new kind of fault needs its victims (``victims``) and its name in ``KINDS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tideover.models import config
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World
from tideover.scenarios import library, loader, plugins
from tideover.scenarios.errors import suggest
from tideover.scenarios.loader import Scenario, Source, load
from tideover.scenarios.precedence import Settings, read_settings
from tideover.scenarios.runs import ALL, needed
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.rows import tidy
from tideover.scenarios.sweeps.sweep import Report, runs_of
from tideover.scenarios.sweeps.sweep_file import Made
from tideover.sim.faults import FAULTS, Fault
from tideover.sim.kernel import ORDER, Rank
from tideover.sim.units import S, format_duration, parse_duration


class Verdict(NamedTuple):
    """How many roots a run lost or counted twice, and how many windows were put out wrong, or not; ``error``:
    why it could not be simulated, else empty.
    """

    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    missing: int = 0
    error: str = ""

    @property
    def harm(self) -> str:
        """What is wrong, in words: losses, duplicates, both; without these, windows. Empty: nothing."""
        tuples = (("lost", self.lost), ("duplicated", self.duplicated))
        windows = (("wrong windows", self.wrong), ("missing windows", self.missing))
        found = [word for word, n in tuples if n] or [word for word, n in windows if n]
        return ", ".join(found)

    @property
    def size(self) -> int:
        return self.lost + self.duplicated + self.wrong + self.missing


def guarantee(verdicts: Iterable[Verdict]) -> str:
    """What some runs leave: each effect at least once (nothing lost), at most once (nothing duplicated), both
    and all windows right (exactly once), or none. Where effects are right, and windows are not, they are in
    other windows than without the failure: that is at least once, too.
    """
    every = list(verdicts)
    duplicated = any(verdict.duplicated for verdict in every)
    if any(verdict.lost for verdict in every):
        return "none" if duplicated else "at most once"
    shifted = any(verdict.wrong + verdict.missing for verdict in every)
    return "at least once" if duplicated or shifted else "exactly once"


def holds(claimed: str, observed: str) -> bool:
    """Whether what was observed is as good as what is claimed."""
    return claimed == "none" or observed in ("exactly once", claimed)


EMITTED, PROCESSED, WINDOW, COMPLETED = "root emitted", "tuple processed", "window put out", "root completed"
"""What tuples do, in words: steps of every topology."""


class Moment(NamedTuple):
    """A step (``what``, in the protocol's words) that a task or a role takes at an instant (ns); ``turn``:
    its place among the actions of the instant, as a scenario names it (``checkpoint of count.1``); None:
    tuples take it by themselves.
    """

    at: int
    who: str
    what: str
    turn: str | None = None

    @property
    def step(self) -> tuple[str, str]:
        """What all moments of the same step share: who takes it, without the number of the task, and what."""
        return self.who.partition(".")[0], self.what


class Strike(NamedTuple):
    """When a fault strikes, beside a moment.

    side  before, at, after, or meanwhile
    at    the instant (ns); turn: the place in it, as a scenario names it; None: behind all data, before all
          actions
    """

    moment: Moment
    side: str
    at: int
    turn: str | None

    @property
    def text(self) -> str:
        return f"{self.side} {self.moment.who}: {self.moment.what}"


def moments(world: World, begin: int, end: int) -> list[Moment]:
    """All steps of a traced run in [``begin``, ``end``), in their order."""
    trace = world.trace
    assert trace is not None
    names, by_name = [task.name for task in world.job.tasks], world.job.topology.by_name
    found: list[Moment] = []
    for step in trace.steps:
        rank, order = divmod(int(step.turn), ORDER)
        if rank in (Rank.FAULT, Rank.READY):
            continue  # what the supervisor does is no step of a protocol
        turn = None
        if step.turn >= 0:
            turn = f"{Rank(rank).name.lower()} of {names[order] if order < len(names) else order}"
        found.append(Moment(step.at, step.who, step.what, turn))
    found += [Moment(at, f"{name}.{task}", EMITTED) for name, task, _, _, at in trace.emitted]
    windows = [row[:3] + row[4:5] for row in trace.windows if by_name[row[0]].trigger != "tick"]
    processed = [row[:3] + row[-1:] for row in trace.processed]
    for what, rows in ((PROCESSED, processed), (WINDOW, windows)):
        for name, task, replica, at in rows:
            found.append(Moment(at, f"{name}.{task}" + (f"/{replica}" if replica else ""), what))
    found += [Moment(row[-1], "acker", COMPLETED) for row in trace.completed]
    return sorted((m for m in found if begin <= m.at < end), key=lambda moment: moment.at)


def chosen(found: Sequence[Moment], each: int) -> list[Moment]:
    """Of each step so many moments, spread evenly over those that there are."""
    by_step: dict[tuple[str, str], list[Moment]] = {}
    for moment in found:
        by_step.setdefault(moment.step, []).append(moment)
    picked: list[Moment] = []
    for of_step in by_step.values():
        count = min(each, len(of_step))
        places = [round((i + 0.5) * len(of_step) / count - 0.5) for i in range(count)]
        picked += [of_step[place] for place in places]
    return sorted(picked, key=lambda moment: moment.at)


def strikes(moment: Moment, found: Sequence[Moment]) -> list[Strike]:
    """Just before a step, at its instant, just after it, and half-way to what comes next of all ``found``."""
    later = min((other.at for other in found if other.at > moment.at), default=moment.at)
    at, turn = moment.at, moment.turn
    placed: list[tuple[str, int, str | None]] = [("before", at - 1, None), ("at", at, None)]
    if turn is None:
        placed.append(("after", at + 1, None))
    else:
        placed[0] = ("before", at, f"before {turn}")
        placed.append(("after", at, f"after {turn}"))
        if not any(other.at == at and other != moment and other.turn for other in found):
            placed.pop(0)  # nothing is between
    if later > at + 2:
        placed.append(("meanwhile", (at + later) // 2, None))
    return [Strike(moment, side, at, turn) for side, at, turn in placed if at > 0]


KINDS = (
    *("lose_state", "crash_task", "crash_worker", "crash_host", "crash_rack"),
    *("pause", "partition", "planned_restart"),
)
"""What is let happen if nothing else is asked for: what can lose, or delay, tuples and state."""


class Victim(NamedTuple):
    """What a fault hits: its kind, the keys that say where, and the same in words."""

    kind: str
    where: tuple[tuple[str, Any], ...]
    name: str

    @property
    def place(self) -> str:
        return self.name.partition(".")[0].partition(" ")[0]


JOB = Victim("planned_restart", (), "the job")


class Case(NamedTuple):
    """Faults of one run, and the steps beside which they strike."""

    faults: tuple[Fault, ...]
    strikes: tuple[Strike, ...]
    victims: tuple[Victim, ...]

    @property
    def kinds(self) -> str:
        return ", then ".join(victim.kind for victim in self.victims)

    def scenario(self, scenario: config.Scenario) -> config.Scenario:
        """The scenario with these faults, in one replication."""
        run = scenario.run.model_copy(update={"replications": 1})
        return scenario.model_copy(update={"failures": self.faults, "run": run})


def victims(world: World, kinds: Sequence[str], most: int) -> list[Victim]:
    """What each kind can hit: tasks (of each component the first ``most``, with their replicas), the roles of
    the strategy, and of workers, hosts and racks those that are more than one task. A planned stop takes the
    job, or the host of a bolt's first task; or the job, to go on with the tasks that were idle.
    """
    job, deployment = world.job, world.job.deployment
    tasks = [task for task in job.tasks if task.index < most]
    found: list[Victim] = []
    for task in tasks:
        where = {"component": task.component.name, "task": task.index}
        replica = getattr(task, "replica", 0)
        if replica:
            where["replica"] = replica
        for kind in ("lose_state", "crash_task", "pause"):
            if kind != "lose_state" or task.component.keeps_state:
                found.append(Victim(kind, tuple(where.items()), task.name))
    roles = sorted(world.scenario.strategy.roles)
    found += [Victim("crash_task", (("component", role),), role) for role in roles]
    hosts = sorted({task.host for task in tasks})
    shared = [host for host in hosts if sum(task.host == host for task in job.tasks) > 1]
    found += [Victim("crash_host", (("host", host),), f"host {host}") for host in shared]
    found += [
        Victim("crash_worker", (("host", host), ("worker", 0)), f"worker 0 of host {host}") for host in shared
    ]
    racks = {deployment.cluster.hosts[host].rack for host in hosts if host < len(deployment.cluster.hosts)}
    if len(racks) > 1:
        found += [Victim("crash_rack", (("rack", rack),), f"rack {rack}") for rack in sorted(racks)]
    if len(hosts) > 1:
        found += [Victim("partition", (("hosts", (host,)),), f"host {host}") for host in hosts]
        first = sorted({task.host for task in tasks if not task.index and not task.component.is_spout})
        found += [Victim("planned_restart", (("hosts", (host,)),), f"host {host}") for host in first]
    found.append(JOB)
    idle = {c.name: c.tasks for c in job.topology.components if c.tasks > c.config.parallelism}
    detector = world.scenario.detector
    if idle and (detector is None or detector.rescales):
        found.append(Victim("planned_restart", (("parallelism", idle),), "the job, to scale out"))
    return [victim for victim in found if victim.kind in kinds]


def different(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Of cases with the same faults the first: a place after one step can be that before the next."""
    found: dict[str, Case] = {}
    for case in cases:
        found.setdefault(repr(case.faults), case)  # a fault with a table among its keys has no hash
    return tuple(found.values())


def with_fault(first: Case, strikes: Iterable[Strike], hit: Sequence[Victim], asked: Asked) -> Iterator[Case]:
    for strike in strikes:
        for victim in hit:
            cls = FAULTS[victim.kind]
            lasts = cls.lasting(asked.detection, asked.restart)
            if asked.detector:
                lasts = {key: value for key, value in lasts.items() if key not in ("detection", "restart")}
            turn = {} if strike.turn is None else {"turn": strike.turn}
            fault = cls.model_validate({"at": strike.at} | turn | dict(victim.where) | lasts)
            yield Case((*first.faults, fault), (*first.strikes, strike), (*first.victims, victim))


SCENARIO = "audit"


@dataclass(frozen=True)
class Asked:
    """What an audit tries.

    kinds     kinds of faults
    begin     from when on steps are struck (ns); None: from the warm-up on, after some windows
    end       until when; None: for two windows, or periods of the strategy's cycle
    each      moments of each step that are struck
    tasks     tasks of each component that are hit
    detection, restart  how long it takes until a failure is noticed, and what failed restarted (ns)
    detector  whether the scenario's detector finds out, so that nothing is said of these
    second    whether a second fault strikes during recoveries
    """

    kinds: tuple[str, ...] = KINDS
    begin: int | None = None
    end: int | None = None
    each: int = 2
    tasks: int = 2
    detection: int = S
    restart: int = 3 * S
    detector: bool = False
    second: bool = True


class NotAsked(ValueError):
    """An option of an audit that cannot be used; the message names it."""


def target(name: Source, settings: Settings) -> tuple[config.Scenario, tuple[str, ...]]:
    """The scenario to be audited, and the beginning of a command that runs it: of a strategy's name the
    built-in scenario under it; of one made in Python ``FILE``, as ``to_yaml`` writes it. Raises
    ScenarioError, and NotAsked for what is neither.
    """
    plugins.load_installed()
    given = [*read_settings(settings)]
    if isinstance(name, str) and name in STRATEGIES:
        more = needed(loader.tree(SCENARIO), name, given)
        given = [*read_settings([f"strategy.kind={name}"]), *more, *given]
        name = SCENARIO
    elif isinstance(name, str) and not library.is_path(name) and name not in library.names():
        kinds = [kind for kind, _ in STRATEGIES.items()]
        raise NotAsked(f"{name}: neither a strategy, a file nor a built-in scenario; {suggest(name, kinds)}")
    command = ["tideover", "run", str(name) if isinstance(name, str | Path) else "FILE"]
    for one in given:
        command += ["--set", one.text or f"{one.key}={one.node.value}"]
    return load(name, given), tuple(command)


def targets(name: str, settings: Settings) -> list[tuple[config.Scenario, tuple[str, ...]]]:
    """The same of several: names with commas between them, or ``all`` registered strategies."""
    plugins.load_installed()
    if name == ALL:
        names = [kind for kind, _ in STRATEGIES.items()]
    else:
        names = [name] if library.is_path(name) else name.split(",")
    return [target(one.strip(), settings) for one in names]


def asked(
    scenario: config.Scenario,
    *,
    kinds: Sequence[str] | None = None,
    begin: str | None = None,
    end: str | None = None,
    each: int = 2,
    detection: str = "1 s",
    restart: str = "3 s",
    second: bool = True,
) -> Asked:
    """What the options of an audit say, as texts with units; raises NotAsked."""
    for kind in kinds or ():
        if kind not in KINDS:
            raise NotAsked(f"--kinds: {kind!r} is not audited; {suggest(kind, KINDS)}")
    first, last = _duration("--from", begin), _duration("--until", end)
    ends = scenario.run.duration
    for option, at in (("--from", first), ("--until", last)):
        if at is not None and at > ends:
            raise NotAsked(f"{option}: is not within the run, which ends at {format_duration(ends)}")
    if last is not None and first is not None and last <= first:
        raise NotAsked("--until: must be after --from")
    detected, restarted = _duration("--detection", detection) or 0, _duration("--restart", restart) or 0
    if not detected + restarted:
        raise NotAsked("--restart: with --detection it must be more than 0 s")
    finds_out = scenario.detector is not None and not scenario.detector.by_fault
    tried, down = tuple(kinds or KINDS), {"detection": detected, "restart": restarted}
    return Asked(tried, first, last, each, **down, detector=finds_out, second=second)


def _duration(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise NotAsked(f"{option}: {error}") from None


def _struck(scenario: config.Scenario, case: Case) -> Scenario:
    return Scenario.of(case.scenario(scenario))


def verdicts(
    scenario: config.Scenario, cases: tuple[Case, ...], doer: Engine, report: Report
) -> list[Verdict]:
    if not cases:
        return []
    points = Made("audit", cases, partial(_struck, scenario))
    found = runs_of(points, [(0, 1)] * len(cases), doer, report)
    rows = {row["point"]: row for row in tidy(found, "runs", {}).to_pylist()}
    counts = ("lost", "duplicated", "windows_wrong", "windows_missing")
    every = []
    for number in range(len(cases)):
        row = rows[number]
        told = [0] * len(counts) if row["error"] else [int(row[column]) for column in counts]
        lost, duplicated, wrong, missing = told
        every.append(Verdict(lost, duplicated, wrong, missing, row["error"] or ""))
    return every
