"""What an audit is asked to try."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tideover.models import config
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import library, loader, plugins
from tideover.scenarios.audit.cases import KINDS, Downtime
from tideover.scenarios.errors import suggest
from tideover.scenarios.every_strategy import ALL, needed
from tideover.scenarios.scenario import Source, load
from tideover.scenarios.settings import Settings, read_settings
from tideover.sim.units import S, format_duration, parse_duration

WORLD = "audit"
"""The built-in scenario in which strategies are audited."""
UNNAMED = "FILE"
"""What stands in a command for a scenario that is in no file."""
FOUR_SECONDS = Downtime(S, 3 * S)
"""What a failure takes if nothing else is said."""


@dataclass(frozen=True)
class Asked:
    """What an audit tries.

    kinds     kinds of faults
    begin     from when on steps are struck (ns); None: from the warm-up on, after some windows
    end       until when; None: for two windows, or periods of the strategy's cycle
    each      moments of each step that are struck
    tasks     tasks of each component that are hit
    downtime  of failures; second: whether a second fault strikes during recoveries
    """

    kinds: tuple[str, ...] = KINDS
    begin: int | None = None
    end: int | None = None
    each: int = 2
    tasks: int = 2
    downtime: Downtime = FOUR_SECONDS
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
        more = needed(loader.tree(WORLD), name, given)
        given = [*read_settings([f"strategy.kind={name}"]), *more, *given]
        name = WORLD
    elif isinstance(name, str) and not library.is_path(name) and name not in library.names():
        kinds = [kind for kind, _ in STRATEGIES.items()]
        raise NotAsked(f"{name}: neither a strategy, a file nor a built-in scenario; {suggest(name, kinds)}")
    command = ["tideover", "run", str(name) if isinstance(name, str | Path) else UNNAMED]
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
    down = Downtime(detected, restarted, scenario.detector is not None and not scenario.detector.by_fault)
    return Asked(tuple(kinds or KINDS), first, last, each, downtime=down, second=second)


def command_of(command: Sequence[str], failures: str) -> str:
    """A command that runs a scenario with these failures (YAML), for a shell."""
    return shlex.join([*command, "--set", f"failures={failures}", "--set", "run.replications=1", "--trace"])


def _duration(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise NotAsked(f"{option}: {error}") from None
