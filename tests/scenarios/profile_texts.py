"""Texts of a scenario and its profile, for the tests of profiles, predictions and short parameters."""

SCENARIO = """\
name: test
topology:
  log: {spout: keys, keys: 10, rate: 100/s}
  job: {bolt: forward, from: {log: shuffle}, service: 5 ms}
  end: {bolt: windowed_count, from: {job: shuffle}, service: 1 ms, window: 30 s}
strategy: {kind: rsm}
strategies: {rsm: {checkpoint_interval: 7 s}}
failures:
  - {kind: crash_task, at: 30 s, component: job, while_down: hold}
  - {kind: crash_task, at: 31 s, component: end, detection: 1 s}
run: {duration: 100 s, warmup: 5 s}
profile: measured.yaml
"""
PROFILE = """\
name: measured
provenance: {source: a test}
values:
  strategy: {rsm: {checkpoint_interval: 9 s, restore_time: 3 ms}, source_replay: {ack_cost: 1 ms}}
  failures: {crash_task: {detection: 10 s, restart: 5 s}, crash_host: {restart: 7 s}, driver: {restart: 9 s}}
  bolts: {forward: {service: 2 ms}, windowed_count: {service: 2 ms}}
  run: {seed: 5}
intervals:
  failures.crash_task.restart: {low: 3 s, high: 8 s, identified: false}
draws:
  keys: [failures.crash_task.detection, failures.crash_task.restart]
  rows: [[8 s, 4 s], [10 s, 5 s], [12 s, 6 s]]
scatter: {catch_up_s: 0.05}
errors: {leave_one_out: 0.1}
"""


def outage() -> str:
    """log -> job at 100/s and a capacity of 200/s; down for d, it has caught up 2 d after the failure."""
    return """\
topology:
  log: {spout: keys, keys: 10, rate: 100/s}
  job: {bolt: forward, from: {log: shuffle}, service: 5 ms}
strategy: none
failures: [{kind: crash_task, at: 30 s, component: job, while_down: hold}]
run: {duration: 100 s, warmup: 5 s, seed: 1}
parameters:
  rate: {sets: topology.log.rate, description: input rate}
  capacity: {sets: topology.job.service, inverse: true, description: most tuples per second}
profile: measured.yaml
"""
