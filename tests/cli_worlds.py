"""Files that commands are given."""

from __future__ import annotations

import numpy as np

from tideover.calibrate.capacities import NUMBERS

DIAGRAM = """
name: small
topology:
  sentences: {spout: sentences, rate: 5/s}
  split:     {bolt: split_words,    from: {sentences: shuffle},      service: 10 ms}
  count:     {bolt: windowed_count, from: {split: {fields: [word]}}, service: 5 ms, window: 1 s}
strategy: {kind: source_replay, message_timeout: 2 s}
failures: [{at: 1300 ms, kind: crash_task, component: count, detection: 100 ms, restart: 100 ms}]
run: {duration: 6 s, warmup: 0 s, seed: 1, replications: 2}
"""
"""A run that is small enough to be drawn as a whole."""

STREAM = """
name: stream
topology:
  log: {spout: keys, keys: 1, rate: 10/s}
  count: {bolt: windowed_count, from: {log: shuffle}, service: 50 ms, window: {length: 5 s, trigger: marker}}
strategy: {kind: aligned_snapshots, checkpoint_interval: 10 s, snapshot_time: 100 ms}
detector: {kind: heartbeats, interval: 2 s, timeout: 4 s, launch: 5 s}
failures: [{kind: crash_task, at: 30 s, component: count}]
run: {duration: 90 s, warmup: 10 s}
"""
"""Checkpoints and heartbeats, whose intervals can be chosen."""


def _saturated() -> str:
    scatter = np.random.default_rng(1).normal(0, 0.05, 12)
    rows = [f"made,{2 * i},2,4096,2,{2000 * i * np.exp(x)},1" for i, x in enumerate(scatter, 1)]
    return "\n".join([",".join(("workload", *NUMBERS)), *rows]) + "\n"


SATURATED = _saturated()
"""Twelve saturated runs whose core carries 1,000/s, on 1 to 12 TaskManagers of 2 cores with 2 slots; they
scatter by 5 %.
"""
LAG = "workload,checkpoint_interval_s,rate_per_s,recovery_s\n" + "".join(
    f"mine,30,{rate},{rate / 100}\n" for rate in (1000, 2000, 3000, 4000, 5000, 6000)
)
"""Recoveries of a job."""
