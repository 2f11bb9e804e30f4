"""The published figures of E-Storm beside simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tideover.models.results.result import Result
from tideover.reports.published import group
from tideover.scenarios import runs
from tideover.scenarios.scenario import load
from tideover.sim.histogram import merged
from tideover.sim.units import MS

Settings = Sequence[str]
OVERHEAD, RECOVERY = "estorm-synthetic", "estorm-recovery"
DEFAULT = "default"
LOWEST = {"state_entries": 1024, "state_accesses": 4}
"""What the published figures of these parameters are in percent of."""
STAGES = ("worker_restart_s", "task_prepare_s", "write_state_s", "read_state_s", "total_s")


def overhead(settings: Settings = ()) -> Iterator[dict[str, Any]]:
    """The rows of the published table of overheads, each with what is simulated; a run at a time."""
    done: dict[tuple[str, ...], Result] = {}

    def run(method: str, parameter: str, value: str) -> Result:
        more = () if parameter == DEFAULT else (f"{parameter}={value}",)
        asked = (f"strategy.kind={method}", *more)
        if asked not in done:
            done[asked] = runs.run(load(OVERHEAD, [*settings, *asked]))
        return done[asked]

    table = group("estorm", "overhead")
    for method, parameter, value, metric, relative_to, published in table.rows:
        other = "none" if relative_to == "no state management" else method
        than = str(LOWEST[parameter]) if other == method else value
        mine, reference = (
            measured(run(*each), metric) for each in ((method, parameter, value), (other, parameter, than))
        )
        simulated = 100 * mine / reference
        yield {
            "method": method,
            "parameter": parameter,
            "value": value,
            "metric": metric,
            "relative_to": relative_to,
            "published": published,
            "simulated": simulated,
            "error": simulated / published - 1,
        }


def measured(result: Result, metric: str) -> float:
    """Throughput (tuples/s) or complete latency (ms) of a run, means; the latter as lumps have it, which are
    part of the fit.
    """
    if metric == "throughput":
        return float(result.to_dict()["throughput_per_s"]["mean"])
    latency = merged(one.complete for one in result.replications if one.complete is not None).mean
    assert latency is not None
    return latency / MS


def recovery(settings: Settings = ()) -> Iterator[dict[str, Any]]:
    """The published stages of recovery, by the number of tasks with state that were hit."""
    for affected, *published in group("estorm", "recovery").rows:
        found = stages(runs.run(load(RECOVERY, [*settings, f"tasks_affected={affected}"])))
        for name, known in zip(STAGES, published, strict=True):
            simulated = found[name]
            yield {
                "stateful_tasks_affected": affected,
                "stage": name,
                "published": known,
                "simulated": simulated,
                "error": simulated / known - 1,
            }


def stages(result: Result) -> dict[str, float]:
    """The stages of a run's first recovery (s), means over its replications."""
    rows = result.rows("recoveries")

    def mean(name: str) -> float:
        return sum(float(row[name]) for row in rows) / len(rows)

    return {
        "worker_restart_s": mean("detect_s"),
        "task_prepare_s": mean("restart_s"),
        "write_state_s": mean("write_s"),
        "read_state_s": mean("restore_s"),
        "total_s": mean("catch_up_s"),
    }
