from tideover.api import Comparison as Comparison
from tideover.api import compare as compare
from tideover.api import run as run
from tideover.api import sweep as sweep
from tideover.models.results.result import Result as Result
from tideover.parts import ActiveReplication as ActiveReplication
from tideover.parts import AlignedSnapshots as AlignedSnapshots
from tideover.parts import Amnesia as Amnesia
from tideover.parts import CrashHost as CrashHost
from tideover.parts import CrashTask as CrashTask
from tideover.parts import LoseState as LoseState
from tideover.parts import MicroBatch as MicroBatch
from tideover.parts import Pause as Pause
from tideover.parts import Run as Run
from tideover.parts import SourceReplay as SourceReplay
from tideover.parts import StateManagement as StateManagement
from tideover.scenarios.errors import ScenarioError as ScenarioError
from tideover.scenarios.quantities import bytes_per_second as bytes_per_second
from tideover.scenarios.quantities import milliseconds as milliseconds
from tideover.scenarios.quantities import n_bytes as n_bytes
from tideover.scenarios.quantities import per_second as per_second
from tideover.scenarios.quantities import seconds as seconds
from tideover.scenarios.runs import RunFailed as RunFailed
from tideover.scenarios.scenario import Scenario as Scenario
from tideover.scenarios.scenario import load as load
from tideover.scenarios.sweep import Sweep as Sweep

__version__: str
