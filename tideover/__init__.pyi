from tideover.api import Comparison as Comparison
from tideover.api import compare as compare
from tideover.api import run as run
from tideover.api import sweep as sweep
from tideover.models.config import Scenario as Scenario
from tideover.models.results.result import Result as Result
from tideover.scenarios.errors import ScenarioError as ScenarioError
from tideover.scenarios.loader import load as load
from tideover.scenarios.quantities import bytes_per_second as bytes_per_second
from tideover.scenarios.quantities import milliseconds as milliseconds
from tideover.scenarios.quantities import n_bytes as n_bytes
from tideover.scenarios.quantities import per_second as per_second
from tideover.scenarios.quantities import seconds as seconds
from tideover.scenarios.runs import RunFailed as RunFailed
from tideover.scenarios.sweep import Sweep as Sweep

__version__: str
