"""The timeout of a detector at which the least time is lost: to failures that are noticed late, and to
processes that only stopped for a while, and are restarted all the same.

``tideover detector`` and `tideover.api.detector` call ``ask``, then ``find``. What a user may not ask is
refused in ``ask``, before anything is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.models.config import Scenario, deployment_of
from tideover.models.detectors.heartbeats import Heartbeats, process_name
from tideover.models.job.cluster import Deployment
from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.lost_time import curve
from tideover.scenarios.part_builder import PartBuilder, from_plain
from tideover.scenarios.statistics.availability import causes, of_each
from tideover.scenarios.yaml_source import Origin, parse_value
from tideover.sim.distributions import Distribution
from tideover.sim.draws import Draws
from tideover.sim.fault_kinds import Pause
from tideover.sim.registry import kind_of
from tideover.sim.units import DAY, MS, S, format_duration

KEY = "detector.timeout"
FALSE = "false restarts"
RARE_PER_DAY = 1 / 365.25
"""False restarts are as good as none if they come less often than once in a year."""
_STEPS = 6
"""So many timeouts are tried, if none are named: from the interval of heartbeats to twice the timeout."""
_CELLS = 1 << 13
_OCTAVES, _EACH = 40, 32

Floats = npt.NDArray[np.float64]


def pauses_of(given: str | Mapping[str, Any]) -> Distribution:
    """Lengths of pauses, as a scenario says a distribution; raises ScenarioError."""
    option = "--pauses"
    try:
        value = parse_value(given, option).plain() if isinstance(given, str) else given
    except ScenarioError as error:
        raise ScenarioError([replace(one, file=option, key="(option)") for one in error.problems]) from None
    builder = PartBuilder(Path())
    found = builder.named(Distribution, from_plain(value, Origin(option)), "(option)")
    if found is None or builder.problems:
        like = "as 12 s, or {kind: exponential, mean: 12 s}"
        raise ScenarioError([replace(one, message=f"{one.message}; {like}") for one in builder.problems])
    return found


class Pauses:
    """Lengths of pauses of a distribution: ``lengths`` (ns) and the ``weights`` of each, which add up to 1.

    The words that a length is drawn from are cut into cells, ever finer towards both ends, so that the rare
    long ones are there.
    """

    def __init__(self, distribution: Distribution) -> None:
        ends = [2.0 ** -(13 + i / _EACH) for i in range(_OCTAVES * _EACH)]
        middle = np.arange(1, _CELLS) / _CELLS
        edges = np.unique(np.concatenate([[0.0, 1.0], ends, middle]))
        half = edges[edges <= 0.5]
        low, width = (half[:-1] + half[1:]) / 2, np.diff(half)
        bits = np.rint(low * 2.0**64).astype(np.uint64)
        words = np.concatenate([bits, ~bits])
        self.lengths: npt.NDArray[np.int64] = distribution.sample(words)
        self.weights: Floats = np.concatenate([width, width])

    def missed(self, detector: Heartbeats) -> float:
        """Probability that a pause counts as a death."""
        return float(detector.missed(self.lengths) @ self.weights)

    def one_missed(self, detector: Heartbeats, length: float, age: float) -> tuple[int, int]:
        """A pause that counts as a death: its length, and the age that the last heartbeat has when it begins
        (ns); ``length`` and ``age``: from 0 to 1, how long and how old among those that do.
        """
        rising = np.argsort(self.lengths, kind="stable")
        weights = np.cumsum(self.weights[rising] * detector.missed(self.lengths[rising]))
        place = int(np.searchsorted(weights, length * weights[-1], "right"))
        lasts = int(self.lengths[rising][min(place, len(weights) - 1)])
        youngest = max(0, detector.timeout - lasts)
        return lasts, min(detector.interval - 1, youngest + 1 + int(age * (detector.interval - youngest - 1)))


@dataclass(frozen=True)
class AtTimeout(curve.Point):
    """What is lost with one timeout; its last part is false restarts. ``missed``: probability that a pause
    counts as a death; ``noticed``: from a failure until it is noticed, on average (s).
    """

    missed: float = 0.0
    noticed: float | None = None

    @property
    def false(self) -> curve.Part:
        """False restarts: how often, and what each costs on top of its pause."""
        return self.parts[-1]

    @property
    def false_per_day(self) -> float:
        return self.false.rate_per_s * DAY / S

    def to_dict(self) -> dict[str, Any]:
        more = {"missed": self.missed, "false_restarts_per_day": self.false_per_day}
        return super().to_dict() | more | {"noticed_s": self.noticed}


@dataclass(frozen=True)
class Asked(curve.Tries):
    """Timeouts that are to be tried. ``pauses``: of a process; ``every``: mean time from one to the next (s);
    ``victims``: a pause of each process that can pause.
    """

    detector: Heartbeats
    pauses: Distribution
    every: float
    victims: tuple[Pause, ...]
    deployment: Deployment

    @property
    def pauses_per_s(self) -> float:
        return len(self.victims) / self.every

    @property
    def runs(self) -> list[Scenario]:
        run = {"replications": self.replications * (len(self.causes) + 2) * len(self.values)}
        return [self.scenario.model_copy(update={"run": self.scenario.run.model_copy(update=run)})]


@dataclass(frozen=True, kw_only=True)
class BestTimeout(curve.Answer[AtTimeout]):
    """What ``tideover detector`` says.

    pauses, every    of a process, and the mean time from one to the next (s)
    processes        that pause
    enough           the shortest timeout (ns) with fewer than `RARE_PER_DAY` false restarts; with heartbeats
                     at the scenario's interval
    """

    pauses: Distribution
    every: float
    processes: int
    enough: int

    @property
    def best(self) -> AtTimeout | None:
        return curve.best_of(self.points)

    @property
    def as_good(self) -> list[AtTimeout]:
        """Others that cannot be told from the best."""
        return [point for point in curve.as_good(self.points) if point is not self.best]

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints. Undefined is None."""
        more = {
            "processes": self.processes,
            "pauses_per_day": self.processes / self.every * DAY / S,
            "best_s": None if self.best is None else self.best.value / S,
            "as_good_s": [point.value / S for point in self.as_good],
            "hardly_any_false_from_s": self.enough / S,
        }
        return self.record(more, "timeouts")


def ask(
    scenario: Scenario,
    pauses: Distribution,
    every: int,
    mtbf: Mapping[str, str],
    timeouts: Sequence[int] | None = None,
    replications: int | None = None,
) -> Asked:
    """Decide what is to be tried. ``pauses``: how long each bolt task's process stops, again and again;
    ``every``: from one pause to the next, on average (ns); ``mtbf``: how often something fails, as for
    `causes`; ``timeouts``: (ns); None: from the interval of heartbeats to twice the scenario's timeout.

    Raises ScenarioError for a scenario without a detector that listens to heartbeats.
    """
    detector = scenario.detector
    if not isinstance(detector, Heartbeats):
        has = "there is none" if detector is None else f"{kind_of(detector)} takes no pause for a death"
        what = f"{has}; needed is a detector of kind heartbeats"
        raise ScenarioError([Problem(scenario.name, None, "detector", what)])
    found, remarks = causes(scenario, mtbf)
    deployment = deployment_of(scenario)
    first = next(c.name for c in deployment.topology.components if not c.is_spout)
    victims = tuple(
        one
        for one in of_each("task", Pause(at=0, duration=1, component=first), deployment)
        if isinstance(one, Pause) and not deployment.topology.by_name[one.component].is_spout
    )
    asked = Asked(
        scenario,
        KEY,
        detector.timeout,
        tuple(found),
        tuple(remarks),
        tuple(sorted(set(timeouts or ()))),
        curve.even(replications, scenario),
        detector,
        pauses,
        every / S,
        victims,
        deployment,
    )
    if timeouts is None:  # from the interval of heartbeats on, and the shortest with hardly a false restart
        beat, own = detector.interval, detector.timeout
        most, enough = max(2 * own, 4 * beat), _enough(asked, Pauses(pauses))
        steps = [max(beat, int(float(f"{step:.1e}"))) for step in np.geomspace(beat, most, _STEPS)]
        values = sorted({*steps, own, *([enough] if enough <= most else [])})
        asked = replace(asked, values=tuple(values))
    for timeout in asked.values:
        asked.at(timeout)  # refused before anything is run
    return asked


def find(asked: Asked, report: curve.Report | None = None) -> BestTimeout:
    """Try all timeouts. Raises RunFailed."""
    pauses = Pauses(asked.pauses)
    patient = asked.at(int(pauses.lengths.max()) + 2 * asked.detector.interval)
    points, n = list[AtTimeout](), asked.replications
    for place, timeout in enumerate(asked.values):

        def tell(done: int, place: int = place, timeout: int = timeout) -> None:
            if report is not None:
                what = f"a timeout of {format_duration(timeout)}"
                report(what, place * n + done, len(asked.values) * n)

        impatient = asked.at(timeout)
        assert isinstance(impatient.detector, Heartbeats)
        missed = pauses.missed(impatient.detector)
        parts, noticed, _ = curve.strike(impatient, asked.causes, n, tell)
        extra: list[tuple[float | None, str]] = [(None, "")] * n
        if missed:
            extra = [_extra(asked, impatient, patient, pauses, replication) for replication in range(n)]
        seconds, ended = zip(*extra, strict=True)
        false = curve.Part(FALSE, asked.pauses_per_s * missed, seconds, ended if missed else ())
        points.append(AtTimeout(timeout, (*parts, false), missed=missed, noticed=noticed))
    return BestTimeout(
        **asked.answered(points),
        pauses=asked.pauses,
        every=asked.every,
        processes=len(asked.victims),
        enough=_enough(asked, pauses),
    )


def _extra(
    asked: Asked, impatient: Scenario, patient: Scenario, pauses: Pauses, replication: int
) -> tuple[float | None, str]:
    """For how much longer (s) a pause is felt that counts as a death than the same one where nobody minds,
    and how the recovery ended.

    The moment is that in a stretch at which the process's last heartbeat has the age that was drawn.
    """
    detector = impatient.detector
    assert isinstance(detector, Heartbeats)
    moment, length, age = curve.spread(asked.scenario.run.seed, FALSE, replication, 3)
    lasts, old = pauses.one_missed(detector, length, age)
    victim = asked.victims[replication // 2 % len(asked.victims)]
    worker = asked.deployment.cluster.worker_of[victim.component, victim.task, victim.replica]
    phase = detector.phase(Draws(asked.scenario.run.seed, replication), process_name(worker))
    beats = max(0, curve.Stretch.of(impatient).moment(moment) - phase) // detector.interval
    strikes = phase + beats * detector.interval + old
    tail = asked.scenario.run.duration - max(c.strikes[0].latest or 0 for c in asked.causes) + lasts
    # how long a process pauses once it is replaced is of no interest, but would be felt
    to_be_missed = detector.timeout - old + 1
    restarted, waited = (
        curve.struck(one, victim.model_copy(update={"duration": d}), strikes, tail, replication)
        for one, d in ((impatient, to_be_missed), (patient, lasts))
    )
    if restarted.seconds is None or waited.seconds is None:
        return None, restarted.ended
    return restarted.seconds - waited.seconds, restarted.ended


def _enough(asked: Asked, pauses: Pauses) -> int:
    """The shortest timeout (ns, a multiple of 0.1 s) at which there are hardly any false restarts."""
    step, most = 100 * MS, RARE_PER_DAY * S / DAY / asked.pauses_per_s
    low, high = 0, (int(pauses.lengths.max()) + asked.detector.interval) // step + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = pauses.missed(asked.detector.model_copy(update={"timeout": middle * step})) <= most
        low, high = (low, middle) if fits else (middle, high)
    return max(high * step, asked.detector.interval)
