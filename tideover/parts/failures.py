"""Failures, as typed objects: what breaks, and when."""

from tideover.parts.typed import typed
from tideover.sim.faults import crash_host, crash_rack, crash_task, crash_worker, lose_state, pause, slow_host

CrashHost = typed(crash_host.CrashHost)
CrashRack = typed(crash_rack.CrashRack)
CrashTask = typed(crash_task.CrashTask)
CrashWorker = typed(crash_worker.CrashWorker)
LoseState = typed(lose_state.LoseState)
Pause = typed(pause.Pause)
SlowHost = typed(slow_host.SlowHost)
