"""Everything that a scenario is made of, as typed objects: strategies, failures, bolts, arrivals and so on.

They are built with units, as in a scenario file, and checked at once. What comes out are the simulator's own
parts, the same that ``load`` makes of a file; numbers that are read from them are nanoseconds, bytes, and
tuples per second.

>>> from tideover.parts import CrashTask, SourceReplay
>>> SourceReplay(message_timeout="10 s").message_timeout
10000000000
>>> CrashTask(at=75, component="count")
Traceback (most recent call last):
tideover.scenarios.errors.ScenarioError: CrashTask: at: 75 has no unit; write a duration, such as 30 s, ...

There is one for every class that is registered, under its name. Type checkers and editors see the signatures
in ``__init__.pyi``, which ``python tests/parts_stubs.py`` makes from the classes.
"""

from typing import Any

from tideover.models.config import Slo
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, MachineType, Run, SpoutConfig, Store
from tideover.models.operators.window import Window
from tideover.parts.typed import typed
from tideover.scenarios.part_builder import REGISTRIES

_UNREGISTERED = (BoltConfig, Hosts, Links, MachineType, Run, Slo, SpoutConfig, Store, Window)
_CLASSES: list[Any] = [*_UNREGISTERED, *(part for sort in REGISTRIES.values() for _, part in sort.items())]
# What other packages have registered by now stays theirs.
_PARTS = {part.__name__: typed(part) for part in _CLASSES if part.__module__.startswith("tideover.")}

__all__ = sorted(_PARTS)
globals().update(_PARTS)
