"""What workers elsewhere get from here: Tideover, and, if they lack them, the packages that it needs."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

from tideover.scenarios.spark.scratch import scratch
from tideover.scenarios.spark.settings import PACKAGE


@functools.cache
def zipped() -> Path:
    """Tideover as a zip that Python imports from."""
    return Path(shutil.make_archive(str(scratch() / "tideover"), "zip", PACKAGE.parent, PACKAGE.name))
