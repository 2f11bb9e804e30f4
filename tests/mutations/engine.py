"""Bugs planted in windows, and in what protocols run on."""

from __future__ import annotations

from tests.mutations.base import MODELS, Mutation, exactness, mechanism

WINDOWS = (
    Mutation(
        "what counts for a session by arrival is when a tuple was served",
        "state.add_events(train, arrival, NEVER)",
        "state.add_events(train, train.time, NEVER)",
        (f"{MODELS}/test_event_windows.py", "-k", "queue_nor_a_pause"),
    ),
    Mutation(
        "a batch knows the events of one task only",
        "newest = np.max([clock._newest for clock in clocks], axis=0)",
        "newest = clocks[0]._newest",
        (f"{MODELS}/test_event_windows.py", "-k", "one_watermark"),
    ),
    Mutation(
        "a query that starts anew reads windows that slide from their last pane on",
        "max(0, epoch // self._extent.slide * self._extent.slide - self._extent.panes)",
        "max(0, epoch // self._extent.slide * self._extent.slide)",
        (f"{MODELS}/test_windows.py", "-k", "micro_batch"),
    ),
    Mutation(
        "a marker ends the epoch that it begins, too",
        "if before is None or epoch < before",
        "if before is None or epoch <= before",
        exactness("none"),
    ),
)
BY_EVENT = f"{MODELS}/test_event_windows.py"
EVENTS = (
    Mutation(
        "the watermark follows the input that is furthest",
        "int(newest.min()) - self._lag",
        "int(newest.max()) - self._lag",
        (BY_EVENT, "-k", "least_input"),
    ),
    Mutation(
        "an idle input still counts",
        "self._newest if idle_after is None else",
        "self._newest if True else",
        (BY_EVENT, "-k", "least_input"),
    ),
    Mutation(
        "an event at the watermark is not late",
        "return events <= self.watermark",
        "return events < self.watermark",
        (BY_EVENT, "-k", "what_is_late"),
    ),
    Mutation(
        "a late tuple is not dropped",
        "state.add(train.pick(~late).replace(epoch=panes[~late]))",
        "state.add(train.replace(epoch=panes))",
        (BY_EVENT, "-k", "what_is_late"),
    ),
    Mutation(
        "an event at a window's end is in the next one",
        "panes = -(-events // extent.pane)",
        "panes = events // extent.pane + 1",
        (BY_EVENT, "-k", "at_the_watermark"),
    ),
    Mutation(
        "a window that ends at the watermark is not over",
        "(pane * slide) + 1, watermark // (pane * slide)",
        "(pane * slide) + 1, (watermark - 1) // (pane * slide)",
        (BY_EVENT, "-k", "at_the_watermark"),
    ),
    Mutation(
        "a session that ends at the watermark is not over",
        "if number * MS <= watermark)",
        "if number * MS < watermark)",
        (BY_EVENT, "-k", "at_the_watermark"),
    ),
    Mutation(
        "a tuple between two sessions is put into one of them",
        "and begin <= other.last]",
        "and begin <= other.last][:1]",
        (BY_EVENT, "-k", "end_with_a_gap_and_merge"),
    ),
    Mutation(
        "a session does not have what comes a whole gap after its newest event",
        "<= end and begin <= other.last",
        "<= end and begin < other.last",
        (BY_EVENT, "-k", "at_the_watermark"),
    ),
    Mutation(
        "a tuple before the watermark is late though its session is open",
        "late[row] = self._number(new) * MS <= watermark",
        "late[row] = event <= watermark",
        (BY_EVENT, "-k", "joins_a_session"),
    ),
    Mutation(
        "a join has of one side only what came since the last end",
        "left, right = np.sum(contents, axis=0) if contents else self._nothing()",
        "left, right = (np.sum(contents, axis=0)[0], contents[-1][1]) if contents else self._nothing()",
        (f"{MODELS}/test_windows.py", "-k", "all_pairs"),
    ),
    Mutation(
        "a join puts out what one side has at a window's end",
        "pairs = left * right",
        "pairs = left * (right > 0)",
        (f"{MODELS}/test_windows.py", "-k", "all_pairs"),
    ),
)
STOPPED = (
    Mutation(
        "a task that is stopped hands a marker on",
        "if task.put_off > put_off:",
        "if False:",
        (f"{MODELS}/test_storm_checkpoint.py", "-k", "stopped_as_it_writes"),
    ),
)
CLUSTER = (
    Mutation(
        "tasks go round a host's workers the other way",
        "places[number :: self.workers_per_host]",
        "places[self.workers_per_host - 1 - number :: self.workers_per_host]",
        (f"{MODELS}/test_clusters.py", "-k", "who_runs_where"),
    ),
    Mutation(
        "the acker lives in the second worker",
        "            return thing.worker",
        "            return thing.worker + 1",
        (f"{MODELS}/test_clusters.py", "-k", "acker"),
    ),
    Mutation(
        "racks are filled one after the other",
        "number >= first_in_reserve, number % self.racks",
        "number >= first_in_reserve, number * self.racks // self.count",
        (f"{MODELS}/test_placement.py",),
    ),
    Mutation(
        "a host takes one task more than it has slots",
        "self.taken[host.number] < host.slots",
        "self.taken[host.number] <= host.slots",
        (f"{MODELS}/test_placement.py", "-k", "no_host_more_than_its_slots"),
    ),
    Mutation(
        "k_safe does not look at racks",
        "h.number not in fleet and h.rack not in taken",
        "h.number not in fleet",
        (f"{MODELS}/test_placement.py", "-k", "keeps_replicas_apart"),
    ),
    Mutation(
        "all shadows of a bolt sit beside its source",
        "free = [host for host in free if host.number not in full] or free",
        "",
        (f"{MODELS}/test_placement.py", "-k", "spreads_shadows"),
    ),
    Mutation(
        "E-Storm's placement makes tuples local, not bytes",
        "edge.up.config.tuple_size / edge.up.tasks",
        "1 / edge.up.tasks",
        (f"{MODELS}/test_placement.py", "-k", "estorm"),
    ),
)
CARDS = (
    Mutation(
        "a message between hosts has no header",
        " + self._links.header * (wire.up.host != wire.down.host)",
        "",
        mechanism("cards"),
    ),
)
QUEUES = (
    Mutation(
        "the first in the physical order gets the next place, not who asked first",
        "p->tasks[ahead].line.asked_at == now && ahead > t->number",
        "ahead > t->number",
        mechanism("who_waits"),
    ),
    Mutation(
        "a queue has a place more",
        "task.c.places.free = bound.length",
        "task.c.places.free = bound.length + 1",
        mechanism("who_waits"),
    ),
    Mutation(
        "a send queue holds a message more",
        "self.c.send = send",
        "self.c.send = send + 1",
        mechanism("who_waits"),
    ),
)
CORES = (
    Mutation(
        "a slow core works as a fast one where several share it",
        "h->speed = h->factor * h->share;",
        "h->speed = h->jobs > 1 ? h->share : h->factor * h->share;",
        (f"{MODELS}/test_cores.py", "-k", "slow"),
    ),
)
HEARTBEATS = (
    Mutation(
        "the timeout begins with the failure",
        "return max(now, last + self._detector.timeout)",
        "return now + self._detector.timeout",
        (f"{MODELS}/test_detectors.py", "-k", "begins_with_the_last_heartbeat"),
    ),
    Mutation(
        "a process sends no heartbeat before a whole interval is over",
        "first + (now - first) // period * period",
        "max(first, first + ((now - first) // period - 1) * period)",
        mechanism("heartbeats_none"),
    ),
    Mutation(
        "a host in reserve takes the place of many",
        "            if self._reserve[0] < repaired:\n",
        "            if False:\n",
        (f"{MODELS}/test_detectors.py", "-k", "reserve"),
    ),
    Mutation(
        "what dies while it is launched is launched all the same",
        "now <= (known.back.ready if fault.process_lives else known.ordered)",
        "now <= (known.back.ready if fault.process_lives else known.launched)",
        (f"{MODELS}/test_detectors.py", "-k", "during_the_launch"),
    ),
    Mutation(
        "who pauses for longer than the timeout is never missed",
        "        if missed < pause[1]:\n",
        "        if False:\n",
        (f"{MODELS}/test_detectors.py", "-k", "taken_for_death"),
    ),
)
CLOSED = f"{MODELS}/test_closed_connections.py"
CONNECTIONS = (
    Mutation(
        "a request of the instant of a death is in vain",
        "((now - last) // interval + threshold) * interval for last",
        "((now - last) // interval + threshold - 1) * interval for last",
        (CLOSED, "-k", "failure_of_its_own"),
    ),
    Mutation(
        "a host that loses power closes its connections",
        "detector.connection is not None and not broken and",
        "detector.connection is not None and",
        (CLOSED, "-k", "loses_power"),
    ),
    Mutation(
        "who is cut off is seen to die",
        "and not broken and self._cuts.hears(host):",
        "and not broken:",
        (CLOSED, "-k", "cut_off"),
    ),
    Mutation(
        "a restart that fails does not count for those after it",
        "            earlier.append(Earlier(noticed, failed[-1]))\n",
        "",
        (CLOSED, "-k", "count_for_the_strategy"),
    ),
    Mutation(
        "nothing overtakes a restart of a job",
        "if following is not None and following <= ordered:",
        "if False:",
        (CLOSED, "-k", "launches_nobody"),
    ),
    Mutation(
        "a restart that is overtaken as it is deployed fails as well",
        "if following is None or failed < following:",
        "if True:",
        (CLOSED, "-k", "overtaken"),
    ),
    Mutation(
        "a failed restart forgets whom it was to launch",
        "restart.left = restart.waiting if self._comes_to_nothing(place) else {}",
        "self._comes_to_nothing(place)",
        (CLOSED, "-k", "failure_of_its_own"),
    ),
    Mutation(
        "a job is noticed with the last of its processes, though peers see the first",
        "noticed = max if self._detector.connection is None else min",
        "noticed = max",
        (CLOSED, "-k", "with_the_first"),
    ),
    Mutation(
        "restarts do not wait for who registers",
        "min(max(ordered, there) + takes, NEVER)",
        "min(ordered + takes, NEVER)",
        (CLOSED, "-k", "registers"),
    ),
    Mutation(
        "a host whose process is dead has slots",
        "max(self._repairs.over(host), self._away.get(host, 0))",
        "self._repairs.over(host)",
        (CLOSED, "-k", "has_no_slots"),
    ),
)
GROUPS = (
    Mutation(
        "a task commits during a rebalance",
        "        if own.rebalances and not own.stops:",
        "        if False:",
        (f"{MODELS}/test_consumer_group.py", "-k", "works_on_and_commits"),
    ),
    Mutation(
        "an eager member works on",
        "                own.stopped = True\n                self._do.close(task)",
        "                own.stopped = True",
        (f"{MODELS}/test_consumer_group.py", "-k", "eager_member_commits"),
    ),
    Mutation(
        "nobody who lives is fenced",
        "        if own.rebalances and old and",
        "        if False and old and",
        (f"{MODELS}/test_consumer_group.py", "-k", "too_old_costs"),
    ),
    Mutation(
        "what the dead have left open holds up nobody",
        "        if self._left_open:\n            self._waiting",
        "        if False:\n            self._waiting",
        (f"{MODELS}/test_changelog.py", "-k", "left_open"),
    ),
    Mutation(
        "a restore waits for no transaction",
        "        if own.held_up > self._job.kernel.now:",
        "        if False:",
        (f"{MODELS}/test_changelog.py", "-k", "left_open"),
    ),
    Mutation(
        "a process that is back aborts nothing",
        "        if own.changelog.is_back:",
        "        if False:",
        (f"{MODELS}/test_changelog.py", "-k", "left_open"),
    ),
    Mutation(
        "after a crash exactly once uses what is on disk",
        "        if self.is_back and self._clean:",
        "        if self.is_back:",
        (f"{MODELS}/test_changelog.py", "-k", "left_open"),
    ),
    Mutation(
        "the newest segment is compacted as it is written",
        "        if self._segment >= self._settings.segment_size:",
        "        if True:",
        (f"{MODELS}/test_changelog.py", "-k", "newest_segment"),
    ),
    Mutation(
        "who leaves a group is waited for",
        "now if self._detector.leaves else",
        "now if False else",
        (f"{MODELS}/test_consumer_group.py", "-k", "on_purpose"),
    ),
    Mutation(
        "a task moves before it is warm",
        "task.available and grouped.is_warm(task)",
        "task.available",
        (f"{MODELS}/test_consumer_group.py", "-k", "goes_home"),
    ),
    Mutation(
        "who hands over a task joins before it is closed",
        "any(map(grouped.closes, member.tasks))",
        "False",
        (f"{MODELS}/test_consumer_group.py", "-k", "joins_again"),
    ),
    Mutation(
        "a planned stop waits for the first commit alone",
        "        if not closing.left:",
        "        if True:",
        (f"{MODELS}/test_changelog.py", "-k", "planned_stop"),
    ),
)
ENGINE = (*WINDOWS, *EVENTS, *STOPPED, *CLUSTER, *CARDS, *QUEUES, *CORES, *HEARTBEATS, *CONNECTIONS, *GROUPS)
