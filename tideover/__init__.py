"""Tideover simulates how a stream processor survives failure.

>>> import tideover
>>> result = tideover.run("wordcount", settings=["run.replications=1"])
>>> result.strategy
'source_replay'
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Imported when first asked for: the parts of the engine are many, and pandas alone takes half a second. Type
# checkers, which see nothing of that, find the names in __init__.pyi.
_WHERE = {
    "run": "tideover.api",
    "compare": "tideover.api",
    "sweep": "tideover.api",
    "plan": "tideover.api",
    "saturate": "tideover.api",
    "load": "tideover.api",
    "availability": "tideover.api",
    "check": "tideover.api",
    "detector": "tideover.api",
    "explore": "tideover.reports.explore.server",
    "hours": "tideover.api",
    "interval": "tideover.api",
    "audit": "tideover.api",
    "Audit": "tideover.scenarios.audit.audit",
    "BestInterval": "tideover.scenarios.lost_time.interval",
    "BestTimeout": "tideover.scenarios.lost_time.detector",
    "Check": "tideover.scenarios.objectives.check",
    "Comparison": "tideover.api",
    "Dependability": "tideover.scenarios.statistics.availability",
    "Hours": "tideover.scenarios.hours",
    "Result": "tideover.models.results",
    "RunFailed": "tideover.scenarios.runs",
    "Saturation": "tideover.scenarios.saturation",
    "Scenario": "tideover.scenarios.scenario",
    "ScenarioError": "tideover.scenarios.errors",
    "Sweep": "tideover.scenarios.sweeps.dataset",
}
_STRATEGIES = (
    "ActiveReplication",
    "AlignedSnapshots",
    "Amnesia",
    "MicroBatch",
    "SourceReplay",
    "StateManagement",
)
_FAILURES = (
    "Cascade",
    "CrashHost",
    "CrashRack",
    "CrashTask",
    "CrashWorker",
    "Events",
    "LoseState",
    "MachinesFail",
    "Partition",
    "Pause",
    "SlowHost",
    "SlowLink",
)
_WHERE |= dict.fromkeys(("Run", *_STRATEGIES, *_FAILURES), "tideover.parts")
_WHERE |= dict.fromkeys(
    ("seconds", "milliseconds", "per_second", "n_bytes", "bytes_per_second"), "tideover.scenarios.quantities"
)

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
