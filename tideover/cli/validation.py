"""What ``tideover reproduce --all`` runs: a function a published table, which yields its figures.

`reproduce` calls ``studies``; `tideover.reports.validation` shows them. A new published table needs a
function here, which names the simplest law that could give its figures, and its words in
``reports/findings.toml``.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tideover import api
from tideover.calibrate import capacities, recoveries
from tideover.calibrate.recoveries import catch_up as catching_up
from tideover.cli.reproduce import CAPACITY, FITTED, LATENCY, OUTAGE, RATE, RECOVERY, WINDOW_S
from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.reports import published
from tideover.reports.calibration import recoveries as shown
from tideover.reports.formatting import UNDEFINED, strategy_name
from tideover.reports.published import group
from tideover.reports.validation import FAILED, PREDICTED, Figure, LeftOut, Study
from tideover.reports.validation import FITTED as CHOSEN
from tideover.scenarios.loader import load

TOLERANCE = 0.15
"""A simulated figure that is further off than this part of the published one has failed."""


def phase_two() -> Iterator[Figure]:
    """Source replay against its two timeouts, R+SM against one constant times the rate."""
    table = group("stableford", "recovery")
    found = api.sweep(published.papers()["stableford-phase2"]["sweep"], master=None)
    cells = published.with_cells(found.recoveries, rate=RATE, window_s=WINDOW_S)
    pairs = published.pair_recoveries(cells, table).head(len(table.rows))
    rsm = pairs[pairs["strategy"] == "rsm"]
    rate, measured = rsm["tuples_per_s"], rsm["published_s"]
    constant = float((rate * measured).sum() / (rate**2).sum())
    for row in pairs.to_dict("records"):
        replay = row["strategy"] == "source_replay"
        law = (
            ("two timeouts", 60.0)
            if replay
            else ("a constant times the rate", constant * row["tuples_per_s"])
        )
        yield Figure(
            (strategy_name(row["strategy"]), f"{row['tuples_per_s']:g}", f"{row['fail_at_s']:g} s"),
            table.unit,
            row["published_s"],
            row["logged_s" if replay else "simulated_s"],
            FAILED if not row["within"] else PREDICTED if replay else CHOSEN,
            *law,
        )


_REPLAY_COST_S = 0.0031
"""As fitted on phase 2."""


def phase_one() -> Iterator[Figure]:
    """Against the timeout of a heartbeat and that of a root, one after the other."""
    done = set()
    for paper in ("stableford-phase1", "stableford-phase1-queues"):
        sweep = api.sweep(published.papers()[paper]["sweep"], master=None)
        for row in published.phase_one_rows(sweep.recoveries, sweep.runs, sweep.timeline):
            of = (
                strategy_name(row["strategy"]),
                str(row["free_workers"]),
                f"{row['nimbus_s']:g} s",
                f"{1000 * row['replay_cost_s']:g} ms" if row["strategy"] == "rsm" else UNDEFINED,
                "no end" if row["queue_length"] is None else f"{row['queue_length']:,}",
            )
            until = np.nan if row["replayed_until_s"] is None else row["replayed_until_s"]
            usual = row["strategy"] == "source_replay" or row["replay_cost_s"] == _REPLAY_COST_S
            if usual and of not in done:  # what a replay costs is of no account under source replay
                done.add(of)
                yield judged(of, "s", row["published_s"], until, "two timeouts", 60.0)


_LOG_MS = 1.0
"""Latencies were logged in whole milliseconds."""
_SERVICES_MS = 0.3
"""Of both bolts together."""
_HOPS = {1: "0.42 ms", 2: "0.84 ms"}
"""How long a tuple is on each of its two ways, fitted on the means of R+SM."""
_SPOUTS = {1: {"pause": "10 ms", "emit_cost": "0.53 ms"}, 2: {"rate": "10/s"}}


_ACKS = {"timeout_phase": "0 s", "ack_time": "178.3 ms", "ack_cost": "31.5 us"}
"""Fitted on the standard deviations under source replay (``examples/fit_ack_cost.py``)."""


def normal_latency() -> Iterator[Figure]:
    """Against the services alone. A median or a percentile is met within the resolution of the log."""
    table = group("stableford", "normal_latency")
    for phase, strategy, rate, *measured in table.rows:
        replay = strategy == "source_replay"
        more = _ACKS if replay else {"checkpoint_interval": "5 s", "serialise_time": "1 ms"}
        found = simulate(_undisturbed(_SPOUTS[phase], {"kind": strategy, **more}, _HOPS[phase]))
        shown = found.latency.summary(1e6)
        for name, value in zip(("median", "mean", "std", "p95"), measured, strict=True):
            simulated = float(shown[name] or 0)
            law = "the services alone", 0.0 if name == "std" else _SERVICES_MS  # they do not vary
            of = strategy_name(strategy), f"{rate}", name
            chosen = name == ("std" if replay else "mean")
            figure = judged(of, table.unit, value, simulated, *law, chosen=chosen)
            logged = name in ("median", "p95") and abs(simulated - value) < _LOG_MS
            yield replace(figure, verdict=PREDICTED) if logged else figure


def _undisturbed(spout: dict[str, str], strategy: dict[str, str], hop: str) -> Scenario:
    """The pipeline of both phases without failures, the first minute not measured."""
    count = {"bolt": "windowed_count", "from": {"split": {"fields": ["word"]}}, "window": "30 s"}
    return load(
        {
            "name": "word count without failures",
            "topology": {
                "sentences": {"spout": "sentences", **spout},
                "split": {"bolt": "split_words", "from": {"sentences": "shuffle"}, "service": "0.2 ms"},
                "count": {**count, "service": "0.1 ms"},
            },
            "links": {"latency": hop},
            "strategy": strategy,
            "run": {"duration": "360 s", "warmup": "60 s"},
        }
    )


def throughput() -> Iterator[Figure]:
    """Against half of the throughput for twice the work, and twice of that for twice the machines."""
    found = api.sweep(published.papers()["ksafety"]["sweep"], master=None)
    points = [found.result(point).scenario for point in found.points["point"]]
    rows = [row for row in published.ksafety_rows(points, list(found.records())) if row["published_per_s"]]
    alone = rows[0]["published_per_s"]
    laws = ((UNDEFINED, np.nan), ("half of it, for two replicas", alone / 2), ("twice that half", alone))
    for row, law in zip(rows, laws, strict=True):
        of, chosen = (row["system"], row["machines"]), row["verdict"].startswith(CHOSEN)
        yield judged(of, "/s", row["published_per_s"], row["simulated_per_s"], *law, chosen=chosen)


_ACCESSES, _PENDING = 4, 10_000
"""What the figures of more accesses are in percent of; most roots that the spout has pending."""


def bare() -> Iterator[Figure]:
    """Each against what the other says if as many roots are in flight as may be pending (J. Little, *A proof
    for the queuing formula*, 1961).
    """
    ((tasks, rate, latency),) = group("estorm", "bare").rows
    result = api.run(published.OVERHEAD)
    law = f"{_PENDING:,} roots in flight"
    for metric, unit, value, other in (
        ("throughput", "/s", rate, latency),
        ("complete_latency", "ms", latency, rate),
    ):
        of, simulated = (str(tasks), metric.replace("_", " ")), published.measured(result, metric)
        yield judged(of, unit, value, simulated, law, 1000 * _PENDING / other, chosen=True)


def overhead() -> Iterator[Figure]:
    """Throughputs against no effect, and where fewer accesses than they have cost less, against their number;
    latencies against a fixed number of roots in flight.
    """
    throughputs: dict[tuple[str, str], float] = {}
    for row in published.overhead():
        of = (
            strategy_name(row["method"]),
            row["parameter"].replace("_", " "),
            row["value"] or UNDEFINED,
            row["metric"].replace("_", " "),
            row["relative_to"],
        )
        setting = row["method"], row["parameter"]
        if row["metric"] == "throughput":
            throughputs[setting] = row["published"]
            fewer = _ACCESSES / float(row["value"]) if row["parameter"] == "state_accesses" else 1.0
            law = "in inverse proportion to accesses" if fewer < 1 else "no effect", 100 * fewer
        else:
            law = "as many roots in flight at the published throughput", 1e4 / throughputs[setting]
        yield judged(of, "%", row["published"], row["simulated"], *law, chosen=True)


def stages() -> Iterator[Figure]:
    """Stages against a line through both published figures; totals against a pause until a timeout of 30 s
    finds the state back, and 60 s.
    """
    table = group("estorm", "recovery")
    sums = {tasks: sum(seconds) for tasks, *seconds, _ in table.rows}
    for row in published.recovery():
        tasks, name = row["stateful_tasks_affected"], row["stage"]
        if name == "total_s":
            law = (
                "timeouts of 30 s until the state is back, and 60 s",
                30.0 * math.ceil(sums[tasks] / 30) + 60,
            )
        else:
            law = "a line through both", row["published"]
        of = str(tasks), name.removesuffix("_s").replace("_", " ")
        yield judged(of, table.unit, row["published"], row["simulated"], *law, chosen=True)


def detection() -> Iterator[Figure]:
    """Against the timeout, less half an interval in the mean."""
    for row in shown.detection_rows():
        interval, timeout = row["interval_s"], row["timeout_s"]
        part = {"mean": 0.5, "least": 1, "greatest": 0}[row["figure"]]
        yield Figure(
            (f"every {interval} s, timeout {timeout} s", row["figure"]),
            "s",
            row["published_s"],
            row["simulated_s"],
            row["verdict"],
            f"the timeout less {part:g} intervals" if part else "the timeout",
            timeout - part * interval,
        )


def handover() -> Iterator[Figure]:
    """Against the session timeout."""
    table = group("kafka-streams", "handover")
    for process, restart, *measured in table.rows:
        changes = {"run.replications": 40, "run.duration": "180 s", "detector.restart": restart or None}
        rows = api.run("kafka-streams-handover", changes).rows("recoveries")
        simulated = float(np.mean([row["ready_at_s"] - row["failed_at_s"] for row in rows]))
        for value in measured:
            yield judged((process,), table.unit, value, simulated, "the session timeout", 45.0)


def judged(
    of: tuple[str, ...],
    unit: str,
    measured: float,
    simulated: float,
    law: str = UNDEFINED,
    says: float = np.nan,
    *,
    chosen: bool = False,
) -> Figure:
    """A figure that has failed if it is off by more than ``TOLERANCE``; ``chosen``: a constant was fitted on
    it.
    """
    near = abs(simulated / measured - 1) <= TOLERANCE
    verdict = FAILED if not near else CHOSEN if chosen else PREDICTED
    return Figure(of, unit, measured, simulated, verdict, law, says)


# Measurements that are not part of the package: each is left out in turn, and predicted.


def demeter(file: Path) -> Iterator[LeftOut]:
    heartbeats = tuple(group("demeter", "detection").rows[0][:2])
    errors = recoveries.fit(recoveries.read(file, heartbeats=heartbeats)).frames["errors"]
    return left_out("demeter", errors, {"outage_end": OUTAGE, "leave_one_out": LATENCY})


def khaos(file: Path) -> Iterator[LeftOut]:
    errors = recoveries.fit(recoveries.read(file)).frames["errors"]
    kinds = {
        "leave_one_out": RECOVERY,
        "leave_interval_out": f"{RECOVERY}, intervals left out",
        "leave_top_rate_out": f"{RECOVERY}, highest rates left out",
    }
    return left_out("khaos", errors, kinds)


def capacity(file: Path) -> Iterator[LeftOut]:
    """Against a capacity in proportion to the cores, its constant from the other runs, too."""
    measured = capacities.read(file)
    errors, laws = capacities.frames(measured)["errors"], []
    for name, runs in measured.workloads.items():
        per_core = (runs["rate_per_s"] / runs["cores"])[runs["saturated"]].to_numpy()
        others = np.array([np.median(np.delete(per_core, place)) for place in range(len(per_core))])
        off = float(np.abs(others / per_core - 1).mean())
        laws.append({"workload": name, "model": FLUID, "kind": "leave_one_out", "mean_error": off})
    both = pd.concat([errors, pd.DataFrame(laws)], ignore_index=True)
    return left_out("demeter", both, {"leave_one_out": CAPACITY}, "in proportion to the cores")


def catch_up(file: Path) -> Iterator[LeftOut]:
    measured = capacities.read(file)
    errors = catching_up.added(capacities.frames(measured), catching_up.fit(measured))["errors"]
    law = "plain fluid law with the profiled capacity"
    return left_out("demeter", errors, {"leave_third_out": RECOVERY}, law)


FLUID = "fluid"


def left_out(
    study: str, errors: pd.DataFrame, quantities: Mapping[str, str], law: str = "plain fluid law"
) -> Iterator[LeftOut]:
    kinds = {quantity: kind for kind, quantity in quantities.items()}
    plain = errors[errors["model"] == FLUID].set_index(["workload", "kind"])["mean_error"]
    for row in shown.left_out_rows(errors, quantities, FITTED[study].aims):
        workload, quantity = row["workload"], row["quantity"]
        yield LeftOut(
            (workload, quantity),
            row["points"],
            row["mean_error"],
            row["mean_error_s"],
            row["worst_error"],
            row["coverage"] * row["points"],
            row["mean_width"],
            row["aim"],
            row["verdict"],
            law,
            float(plain.get((workload, kinds[quantity]), np.nan)),
        )


class Source(NamedTuple):
    """Where the figures of a study come from: the published table (its citation is shown), what yields them,
    and the file that it needs, if it is not part of the package.
    """

    table: str
    figures: Callable[..., Iterator[Figure | LeftOut]]
    file: str = ""


STUDIES = {
    "phase_two": Source("stableford.recovery", phase_two),
    "phase_one": Source("stableford.real_restart", phase_one),
    "normal_latency": Source("stableford.normal_latency", normal_latency),
    "detection": Source("demeter.detection", detection),
    "demeter": Source("demeter.detection", demeter, "demeter_flink_failures.csv"),
    "capacity": Source("demeter.detection", capacity, "demeter_profile_recoveries.csv"),
    "catch_up": Source("demeter.detection", catch_up, "demeter_profile_recoveries.csv"),
    "khaos": Source("", khaos, "khaos_flink_recovery_calibration.csv"),
    "throughput": Source("ksafety.throughput", throughput),
    "bare": Source("estorm.bare", bare),
    "overhead": Source("estorm.overhead", overhead),
    "stages": Source("estorm.recovery", stages),
    "handover": Source("kafka-streams.handover", handover),
}
"""By their names in ``findings.toml``."""


def studies(given: Sequence[Path], report: Callable[[int, int], None]) -> list[Study]:
    """All studies, one after the other; those whose file is not ``given``, by its name, have no figures."""
    found: list[Study] = []
    for name, source in STUDIES.items():
        report(len(found), len(STUDIES))
        found.append(study(name, next((path for path in given if path.name == source.file), None)))
    return found


def study(name: str, file: Path | None) -> Study:
    source, words = STUDIES[name], _words()[name]
    lacks = ""
    if source.file and file is None:
        lacks = f"Its measurements are not part of Tideover: --from {source.file}."
    figures = () if lacks else tuple(source.figures(*([file] if file else [])))
    cited = group(*source.table.split(".")).source if source.table else FITTED[name].source
    return Study(words["title"], cited, tuple(words["columns"]), figures, words["findings"], lacks)


@cache
def _words() -> dict[str, dict[str, Any]]:
    text = files("tideover.reports").joinpath("findings.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
