"""Tideover simulates how a stream processor survives failure.

>>> import tideover
>>> result = tideover.run("wordcount", settings=["run.replications=1"])
>>> result.strategy
'source_replay'
"""

import pkgutil
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tideover.api import Comparison as Comparison
    from tideover.api import audit as audit
    from tideover.api import availability as availability
    from tideover.api import check as check
    from tideover.api import compare as compare
    from tideover.api import detector as detector
    from tideover.api import hours as hours
    from tideover.api import interval as interval
    from tideover.api import load as load
    from tideover.api import plan as plan
    from tideover.api import run as run
    from tideover.api import saturate as saturate
    from tideover.api import sweep as sweep
    from tideover.models.results import Result as Result
    from tideover.parts import ActiveReplication as ActiveReplication
    from tideover.parts import AlignedSnapshots as AlignedSnapshots
    from tideover.parts import Amnesia as Amnesia
    from tideover.parts import Cascade as Cascade
    from tideover.parts import CrashHost as CrashHost
    from tideover.parts import CrashRack as CrashRack
    from tideover.parts import CrashTask as CrashTask
    from tideover.parts import CrashWorker as CrashWorker
    from tideover.parts import Events as Events
    from tideover.parts import LoseState as LoseState
    from tideover.parts import MachinesFail as MachinesFail
    from tideover.parts import MicroBatch as MicroBatch
    from tideover.parts import Partition as Partition
    from tideover.parts import Pause as Pause
    from tideover.parts import Run as Run
    from tideover.parts import SlowHost as SlowHost
    from tideover.parts import SlowLink as SlowLink
    from tideover.parts import SourceReplay as SourceReplay
    from tideover.parts import StateManagement as StateManagement
    from tideover.reports.explore.server import explore as explore
    from tideover.scenarios.audit.audit import Audit as Audit
    from tideover.scenarios.errors import ScenarioError as ScenarioError
    from tideover.scenarios.hours import Hours as Hours
    from tideover.scenarios.loader import Scenario as Scenario
    from tideover.scenarios.lost_time.detector import BestTimeout as BestTimeout
    from tideover.scenarios.lost_time.interval import BestInterval as BestInterval
    from tideover.scenarios.objectives.check import Check as Check
    from tideover.scenarios.quantities import bytes_per_second as bytes_per_second
    from tideover.scenarios.quantities import milliseconds as milliseconds
    from tideover.scenarios.quantities import n_bytes as n_bytes
    from tideover.scenarios.quantities import per_second as per_second
    from tideover.scenarios.quantities import seconds as seconds
    from tideover.scenarios.runs import RunFailed as RunFailed
    from tideover.scenarios.saturation import Saturation as Saturation
    from tideover.scenarios.statistics.availability import Dependability as Dependability
    from tideover.scenarios.sweeps.dataset import Sweep as Sweep
else:
    # Imported when first asked for: the parts of the engine are many, and pandas alone takes half a second.
    # Where each name is, the imports above say, which are for type checkers; this file is read for them.
    _OWN = (pkgutil.get_data(__name__, "__init__.py") or b"").decode()
    _WHERE = {name: where for where, name in re.findall(r"^    from (\S+) import (\w+)", _OWN, re.MULTILINE)}

    __all__ = ["__version__", *_WHERE]

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_WHERE[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_WHERE})
