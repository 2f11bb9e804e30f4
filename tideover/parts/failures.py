"""Failures, as typed objects: what breaks, and when."""

from tideover.parts.typed import typed
from tideover.sim import faults

Cascade = typed(faults.Cascade)
CrashHost = typed(faults.CrashHost)
CrashRack = typed(faults.CrashRack)
CrashTask = typed(faults.CrashTask)
CrashWorker = typed(faults.CrashWorker)
Events = typed(faults.Events)
LoseState = typed(faults.LoseState)
LoseStore = typed(faults.LoseStore)
MachinesFail = typed(faults.MachinesFail)
Partition = typed(faults.Partition)
Pause = typed(faults.Pause)
SlowHost = typed(faults.SlowHost)
SlowLink = typed(faults.SlowLink)
SlowStore = typed(faults.SlowStore)
StoreDown = typed(faults.StoreDown)
