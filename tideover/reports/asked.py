"""What was asked: the scenario in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tideover.reports.words import number, plural, strategy_name

Record = Mapping[str, Any]


def scenario_name(result: Record) -> str:
    """The scenario's name, whether the record holds the whole scenario or the name only."""
    scenario = result["scenario"]
    return str(scenario.get("name", "")) if isinstance(scenario, Mapping) else str(scenario)


def configuration(result: Record) -> Mapping[str, Any]:
    """The whole scenario, wherever the record keeps it; empty if it does not."""
    found = result.get("configuration", result["scenario"])
    return found if isinstance(found, Mapping) else {}


def headline(result: Record) -> str:
    """Name, seed and replications in one line."""
    return f"{scenario_name(result)}: seed {result['seed']}, {plural(result['replications'], 'replication')}"


def asked(results: Sequence[Record]) -> list[tuple[str, str]]:
    """What was simulated, as pairs of a label and a text; what differs between the results is listed."""
    scenarios = [configuration(result) for result in results]
    pairs = [("Scenario", _each(scenario_name(r) for r in results))]
    described = [str(s["description"]) for s in scenarios if s.get("description")]
    if described:
        pairs.append(("Description", _each(described)))
    topologies = [
        " → ".join(map(str, s["topology"])) for s in scenarios if isinstance(s.get("topology"), Mapping)
    ]
    pairs.append(("Components", _each(topologies)))
    pairs.append(
        (
            "Strategies" if len(results) > 1 else "Strategy",
            _each(strategy_name(r["strategy"]) for r in results),
        )
    )
    pairs.append(("Failures", _failures(results)))
    durations = [_duration(s["run"].get("duration")) for s in scenarios if isinstance(s.get("run"), Mapping)]
    pairs.append(("Simulated time", _each(durations)))
    pairs.append(("Replications", _each(str(r["replications"]) for r in results)))
    pairs.append(("Seed", _each(str(r["seed"]) for r in results)))
    return [(label, text) for label, text in pairs if text]


def _failures(results: Sequence[Record], most: int = 6) -> str:
    found = list(
        dict.fromkeys(
            f"{r['kind']} of {r['component']} at {r['failed_at_s']:,.6g} s"
            for result in results
            for r in result["recoveries"]
        )
    )
    rest = f"; and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + rest if found else "none"


def _duration(value: Any) -> str:
    """A duration as the scenario has it, or from whole nanoseconds."""
    return f"{number(value / 1e9)} s" if isinstance(value, int) else str(value or "")


def _each(texts: Any) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))


def collected_warnings(results: Sequence[Record]) -> list[str]:
    """Every warning once; with the strategies that it holds for, if it does not hold for all."""
    found: dict[str, list[str]] = {}
    for result in results:
        for text in result["warnings"]:
            names = found.setdefault(str(text), [])
            name = strategy_name(result["strategy"])
            if name not in names:
                names.append(name)
    everyone = {strategy_name(result["strategy"]) for result in results}
    return [t if len(names) == len(everyone) else f"{', '.join(names)}: {t}" for t, names in found.items()]
