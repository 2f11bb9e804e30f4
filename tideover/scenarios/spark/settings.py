"""How Spark is set up, each setting with its reason, and what its process finds in its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import tideover
from tideover.scenarios.spark.conf import REQUIRED
from tideover.scenarios.spark.masters import is_embedded

PACKAGE = Path(tideover.__file__).parent


def settings(master: str, app_name: str, scratch: Path) -> dict[str, str]:
    """Spark's settings, each with its reason."""
    chosen = {key: value for key, (value, _) in REQUIRED.items()}
    chosen |= {
        "spark.master": master,
        "spark.app.name": app_name,
        # Its page would open a port, and costs time at the start.
        "spark.ui.enabled": "false",
        # We draw our own progress bar.
        "spark.ui.showConsoleProgress": "false",
        # Warnings at the start are about clusters and native libraries; errors reach us as exceptions.
        "spark.log.level": "ERROR",
        # Tables are never saved by name; without this, a directory appears wherever the user happens to be.
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
    }
    if is_embedded(master):
        chosen |= {
            # Out of the network's reach; and it starts even where the host's own name does not resolve.
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Spark only hands work to Python here: a compiler that does not optimise much, and one thread for
            # garbage, leave the cores to the simulation. Halves the time until the first task ends.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            # Enough for the summary of a million runs; with more, only garbage lies about for longer.
            "spark.driver.memory": "640m",
            # Shuffle files go away with the session.
            "spark.local.dir": str(scratch / "local"),
            # 200, the default, means 200 tiny tasks for a table of a few hundred runs.
            "spark.sql.shuffle.partitions": "8",
        }
    return chosen


def environment(master: str, java: Mapping[str, str]) -> dict[str, str | None]:
    """What Spark's process finds in its environment beside ours; None: taken out."""
    if not is_embedded(master):
        # Whoever has a cluster has set up the rest. A local one has its workers here, where this Python is.
        if master.startswith("local-cluster") and "PYSPARK_PYTHON" not in os.environ:
            return {**java, "PYSPARK_PYTHON": sys.executable}
        return {**java}
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    return {
        **java,
        # The workers are this very Python, with what is installed for it, ...
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # ... and find Tideover even when it isn't installed.
        "PYTHONPATH": path,
        # Another Spark's jars and settings, left from some other work, must not mix with ours.
        "SPARK_HOME": None,
        "SPARK_CONF_DIR": None,
        "SPARK_LOCAL_DIRS": None,
        "SPARK_LOCAL_IP": None,
        "SPARK_REMOTE": None,
        "PYSPARK_SUBMIT_ARGS": None,
    }
