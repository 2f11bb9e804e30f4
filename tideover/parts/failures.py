"""Failures, as typed objects: what breaks, and when."""

from tideover.parts.typed import typed
from tideover.sim.faults import (
    cascade,
    crash_host,
    crash_rack,
    crash_task,
    crash_worker,
    events,
    lose_state,
    lose_store,
    machines_fail,
    partition,
    pause,
    slow_host,
    slow_link,
    slow_store,
    store_down,
)

Cascade = typed(cascade.Cascade)
CrashHost = typed(crash_host.CrashHost)
CrashRack = typed(crash_rack.CrashRack)
CrashTask = typed(crash_task.CrashTask)
CrashWorker = typed(crash_worker.CrashWorker)
Events = typed(events.Events)
LoseState = typed(lose_state.LoseState)
LoseStore = typed(lose_store.LoseStore)
MachinesFail = typed(machines_fail.MachinesFail)
Partition = typed(partition.Partition)
Pause = typed(pause.Pause)
SlowHost = typed(slow_host.SlowHost)
SlowLink = typed(slow_link.SlowLink)
SlowStore = typed(slow_store.SlowStore)
StoreDown = typed(store_down.StoreDown)
