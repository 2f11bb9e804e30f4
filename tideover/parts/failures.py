"""Failures, as typed objects: what breaks, and when."""

from tideover.parts.typed import typed
from tideover.sim.faults import crash_host, crash_task, lose_state, pause, slow_host

CrashHost = typed(crash_host.CrashHost)
CrashTask = typed(crash_task.CrashTask)
LoseState = typed(lose_state.LoseState)
Pause = typed(pause.Pause)
SlowHost = typed(slow_host.SlowHost)
