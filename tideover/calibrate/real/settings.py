"""How Spark is set up for the measurements, each setting with its reason."""

from __future__ import annotations

import os
from pathlib import Path

from tideover.calibrate.real.plan import DriverSpec
from tideover.scenarios.java import Java, java_environment
from tideover.scenarios.spark import settings as sweeps

TAG = "TIDEOVER_TAG"
"""The environment variable by which a process is known as ours."""

LOCALITY_WAIT_S = 0.5
"""In s; part of the output gap where one of several partitions of the state was lost."""

# A compiler that does not optimise much, and one thread for garbage: a batch takes as long in the tenth
# minute as in the first, and the cores are there for the tasks. With the default, durations fall for minutes.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def settings(spec: DriverSpec) -> dict[str, str]:
    """Spark's settings for a driver of the calibration."""
    java = f"{_JVM} -Djava.io.tmpdir={spec.scratch} -Dtideover.tag={spec.tag}"
    return {
        **sweeps.settings(spec.plan.master, "tideover calibrate", spec.scratch),
        # Out of the network's reach; and it starts even where the host's own name does not resolve.
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.executorEnv." + TAG: spec.tag,
        "spark.executor.memory": "1g",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(spec.scratch / "local"),
        # As many partitions of the state as there are cores.
        "spark.sql.shuffle.partitions": str(spec.plan.partitions),
        # Would plan each batch anew in the light of its size; stateful queries do not use it.
        "spark.sql.adaptive.enabled": "false",
        # The state store that keeps more state than fits the heap, and the one that is worth measuring.
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        # A batch without rows would run only to drop old windows; it would look like a batch of size 0.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # When each task began and ended, on which executor: read from this log after the session.
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": spec.spark_events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        # We kill more executors than a cluster's master would forgive.
        "spark.deploy.maxExecutorRetries": "-1",
        # Each kill may take an attempt of each task with it.
        "spark.task.maxFailures": "8",
        # How long a task waits for the executor that has its state, or had it. The default, 3 s, is about as
        # long as a new executor takes to come: chance would decide whether that one or the survivor gets the
        # partitions that were lost. This is short enough for the survivor to get them in any case, and long
        # enough for its partitions to wait for each other there.
        "spark.locality.wait": f"{round(LOCALITY_WAIT_S * 1000)}ms",
        # Whether a wait is over is looked at once a second by default, which adds half a second of chance.
        "spark.scheduler.revive.interval": "100ms",
        # On one machine a refused connection says that the process is gone. The defaults, three times after
        # 5 s each, wait for a network to mend.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
    }


def environment(java: Java, tag: str, scratch: Path) -> dict[str, str]:
    """The whole environment of a driver: ours, without what another Spark has left in it."""
    chosen: dict[str, str | None] = {
        **sweeps.environment("local", java_environment(java)),
        TAG: tag,
        # The workers of a local cluster would write into the installed package.
        "SPARK_WORKER_DIR": str(scratch / "work"),
        "TMPDIR": str(scratch),
        # Executors, too, are out of the network's reach.
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Draws and Arrow are fast enough on one thread, and more would take the cores from the tasks.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    kept = {name: value for name, value in os.environ.items() if name not in chosen}
    return kept | {name: value for name, value in chosen.items() if value is not None}
