"""Stream processing: what runs (job, operators), how it moves (runtime), how it survives (mechanisms and
strategies), what is observed (accounts), what is reported (results).

Importing the room registers its parts, so that scenarios can name them: all modules of these packages are
imported, in the order of their names. Who adds a part adds a module there, and nothing here.
"""

import tideover.sim.fault_kinds  # noqa: F401
from tideover.sim.registry import import_modules

for _package in ("detectors", "operators", "job", "strategies"):
    import_modules(f"tideover.models.{_package}")
