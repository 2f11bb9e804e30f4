"""How failures are noticed and what they hit is restarted, one kind a file.

Without one each fault says how long detection and restart take (`given`). With one a fault changes what
lives, and nobody knows. A fault on a task whose process is dead, and not ordered anew yet, hits nothing: it
is over with the one before. A `lose_state` leaves the process alive, and is over at once (rank READY).

`heartbeats` (tests/models/test_detectors.py, test_exact_mechanisms.py):

- A process, a worker, sends heartbeats at phase + k * `interval`; the phase is drawn by its name. They take
  no time, and one of the instant of a strike has been sent. What dies is noticed `timeout` after its last
  sign of life; `restarts` says how much later a process is ordered. It runs after a draw of `launch`, its
  tasks are ready after draws of `prepare`. The order is a sign of life.
- A job that fails as one is noticed when all its dead processes are; all tasks are prepared when the last
  process runs. `restarts` counts failures as they are noticed.
- A process that is paused, or cut off from the `listener`, for `timeout` counts as dead: a *false
  detection* (rank READY). Its task crashes, and comes back as after a death; what the zombie still does
  counts no more.
- `restart_on: free_slot` (test_free_slots.py): the tasks of a host that fails each get a slot on another
  one that works, is heard and has one free: if possible without a replica of the task, then with the fewest
  tasks, then the lowest. It is there when its process is ordered. Who finds none waits for the repair;
  who loses one by then, and finds no other, is launched at the repair, whenever it was ordered.
  What stands on a host that is stopped on purpose is launched in free slots at once. A job that fails as one
  takes them only if there is one for each working task of that host; else all of it waits.

`heartbeats` with `connection`, where a process dies and its host does not, and is heard
(test_closed_connections.py):

- It is noticed after a draw of `connection`, or when its slots are *dropped*, if that is sooner: `timeout`
  after its last sign of life, or, with `rpc_failure_threshold`, by so many requests in vain since it died.
  Two send them: one when its heartbeats would come, the job's master at a phase of its own.
- A restart that is ordered before fails after a draw of `failed_deployment`: that is noticed at once, and
  counts for `restarts`. The next one launches who was to be launched by it.
- A job that fails as one is noticed when the first of its processes is. Only the restart after the failure
  that was noticed last is deployed; one that another failure overtakes does not fail any more.

`replacement`: by itself another process registers a draw of it after a death, or the repair of the host.
Restarts do not wait to be ordered for that; `launch` begins when both are there. With `free_slot` tasks of a
process that dies look for slots as those of a host do, and there are none where one has to register.

`storm` (test_nimbus.py, test_exact_mechanisms.py):

- A fault of a task kills its worker. The supervisor looks each `supervisor_round`, and launches a worker
  anew whose heartbeat is `supervisor_worker_timeout` old (during a launch: `worker_start_timeout`):
  `launch`, then the longest `prepare` of its tasks.
- Nimbus looks each `nimbus_round` (rank READY, after all tasks). Tasks silent for `nimbus_task_timeout`,
  and not assigned within `task_launch`, go to a free worker and stay; else to the worker with the fewest
  tasks (then one with a sender of theirs) until its next round, in which they go home. Hosts under repair
  get nothing.
- A worker whose tasks change is killed at once and launched: a failure of the kind `reassigned`.

`consumer_group` (test_consumer_group.py):

- Members are processes, one for each worker with or without bolt tasks. A fault of a bolt task kills its
  member. Spouts are noticed, and back, at once. A member is removed `session_timeout` after its last
  heartbeat (each `heartbeat_interval`, phase drawn), which is when its tasks are noticed.
- A removal, or a process that joins, begins a *rebalance*. It waits until each other member has learnt of
  it, at its next heartbeat, or is removed; then a draw of `rebalance`. Then tasks without a member are
  assigned, in physical order, each to the member with the fewest tasks (ties: lowest host, worker, newest),
  and are ready.
- With `restart` a new process joins a draw later beside the dead member; with `static` it is the same
  member, and its tasks are ready at once. A partition is not noticed.
- A `pause` of a bolt's task stops all bolts' tasks of its process. It sends its next heartbeat when
  it goes on (and then each `heartbeat_interval`), learns of a rebalance, and its tasks are ready that it was
  assigned meanwhile. If it is removed before, they are taken from it (a failure of the kind
  `false_detection`), and when the pause is over a new process joins, whatever has struck that one since.
- Members that a planned stop takes, with tasks or without, end, and a process joins in the place of each when
  that is over. With `leaves` they are removed at once, else as if they had died.
- Tasks of a member that has heard of a rebalance work on until it is over, but commit nothing; a commit
  whose turn comes meanwhile has it then. With `protocol: eager` they commit when it hears of it, and then
  do nothing: what comes waits, and what waits comes once more when the tasks are assigned, behind ticks.
- A member whose transaction becomes too old meanwhile (rules of `changelog`) loses all of its tasks then: a
  failure of the kind `fenced`, which is noticed at once. They are assigned with the others.
- With `warmup_replicas`, where tasks are assigned (of `changelog`): while one who lives has two tasks more
  than another, its newest is to move from who has most to who has fewest (ties: as above), so many at most.
  It warms up: unless it has a standby, a copy there reads the changelog, and follows it; no other host has
  it. Those of which a copy has all commit, go down together (rank BATCH; a failure of the kind `reassigned`),
  and are assigned by the rebalance that this begins, in which who had them has joined. If some are to move, a
  rebalance begins `probing_interval` later, if none has before. A task that fails while it is to move goes
  there, too.
"""
