"""Made-up worlds for `same_bytes`: every strategy with every kind of failure, and with detectors.

A world is a scenario as it stands in a file, chosen by its name alone. What a strategy does not take is left
out, so that few are refused.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Settings = dict[str, Any]

STRATEGIES = (
    "none",
    "source_replay",
    "storm_checkpoint",
    "estorm",
    "rsm",
    "active_replication",
    "active_standby",
    "passive_standby",
    "upstream_backup",
    "aligned_snapshots",
    "unaligned",
    "changelog",
    "micro_batch",
    "batch_rerun",
    "trident",
    "hybrid",
)
FAILURES = (
    "quiet",
    "lose_state",
    "crash_task",
    "crash_host",
    "crash_rack",
    "crash_worker",
    "pause",
    "partition",
    "slow_host",
    "slow_link",
    "slow_store",
    "store_down",
    "lose_store",
    "cascade",
    "machines_fail",
    "events",
    "two",
    "many",
    "special",
)
DETECTED = ("heartbeats", "free_slots", "storm", "consumer_group")
FILES = {
    "events.csv": "time,kind,component,host,detection,restart\n"
    "11.5 s,crash_task,count,,1 s,1 s\n19 s,lose_state,count,,0.5 s,0 s\n27 s,crash_task,split,,0 s,2 s\n",
    "rates.csv": "time_s,rate_per_s\n0,6\n12.5,14\n20,0\n22.25,18\n30,9\n",
    "day.csv": "time,rate_per_s\n00:00,4\n09:00,10\n12:00:05,16\n12:00:20,8\n18:00,20\n",
}
"""What scenarios name by its path."""

STORM = ("source_replay", "storm_checkpoint", "estorm")
SNAPSHOTS = ("aligned_snapshots", "unaligned")
BATCHES = ("micro_batch", "batch_rerun")
BY_MARKER = ("active_replication", *SNAPSHOTS, *BATCHES, "trident", "hybrid", "active_standby")
"""Whose windows of time markers end."""
SOURCED = ("none", *STORM)
LOSING = ("none", "source_replay")
"""Whose links may lose messages."""
FREE_SLOTS = ("none", "rsm", *SNAPSHOTS, *STORM)
MOVED = ("none", "changelog")
"""With whom members of a consumer group take over tasks."""


class World:
    """One world in the making; its chance is its name's alone."""

    def __init__(self, strategy: str, failure: str, detector: str, number: int) -> None:
        self.strategy, self.failure, self.detector = strategy, failure, detector
        self.name = "-".join(part for part in (strategy, failure, detector, str(number)) if part)
        self.number = number
        self.chance = random.Random(self.name)
        self.topology: dict[str, Settings] = {}
        self.stores: dict[str, Settings] = {}
        self.daily = False

    def some(self, *values: Any) -> Any:
        """One of these."""
        return self.chance.choice(values)

    def often(self, part: float) -> bool:
        """True in this part of the cases."""
        return self.chance.random() < part

    def given(self, **values: Any) -> Settings:
        """These settings, without those that are None."""
        return {key: value for key, value in values.items() if value is not None}

    def scenario(self) -> Settings:
        """The whole."""
        topology = self.some(_words, _words, _joined, _keys, _keys if self.strategy == "trident" else _events)
        topology(self)
        found: Settings = {
            "name": self.name,
            "topology": self.topology,
            "strategy": _strategy(self, self.strategy),
            "hosts": _hosts(self),
            "links": _links(self),
            "store": self.some({"latency": "5 ms", "bandwidth": "1 MiB/s"}, {}),
        }
        if self.failure == "quiet" and self.strategy not in (*BATCHES, "trident", "changelog"):
            found["queues"] = self.some(50, {"length": 20, "when_full": "block", "send": 5})
        elif self.strategy in ("none", *SNAPSHOTS, "source_replay", "rsm") and self.often(0.25):
            full = self.some("block", "credits", "block" if self.strategy in SNAPSHOTS else "drop")
            found["queues"] = {"length": self.some(3, 20, 200), "when_full": full}
        found["failures"] = _failures(self)
        detector = _detector(self)
        if detector:
            found["detector"] = detector
        if self.stores:
            found["stores"] = self.stores
        return found | {"run": _run(self)}


def worlds() -> Iterator[World]:
    """All of them."""
    for strategy in STRATEGIES:
        for failure in FAILURES:
            yield World(strategy, failure, "", 0)
        for detector in DETECTED:
            free = strategy in FREE_SLOTS or detector != "free_slots"
            free &= strategy not in (*BATCHES, "trident")
            if free and (detector != "consumer_group" or strategy in MOVED):
                for number, failure in enumerate(("crash_task", "crash_worker", "pause", "two")):
                    yield World(strategy, failure, detector, number)


def _parallel(world: World) -> int:
    return world.some(1, 1, 2, 3)


def _service(world: World, mean: float) -> Any:
    """A distribution with about this mean in milliseconds."""
    text = f"{mean} ms"
    return world.some(
        text,
        text,
        {"kind": "exponential", "mean": text},
        {"kind": "gamma", "mean": text, "cv": 2},
        {"kind": "gamma", "mean": text, "shape": 3},
        {"kind": "lognormal", "mean": text, "cv": 0.8},
        {"kind": "lognormal", "median": text, "sigma": 0.5},
        {"kind": "uniform", "low": "0 s", "high": f"{2 * mean} ms"},
        {"kind": "weibull", "mean": text, "shape": world.some(0.7, 3)},
        {"kind": "empirical", "values": ["1 ms", text, "7 ms"], "weights": [1, 2, 0.5]},
        {
            "kind": "request",
            "answer": {"kind": "exponential", "mean": text},
            "timeout": f"{3 * mean} ms",
            "retries": 2,
            "backoff": "1 ms",
        },
    )


def _arrivals(world: World, rate: int) -> Settings:
    """A spout's rate, or its arrivals."""
    kind = world.some("rate", "rate", "poisson", "burst", "ramp", "trace", "day", "file", "pause")
    if kind == "rate":
        return {"rate": f"{rate}/s"}
    if kind == "pause":
        return {"pause": f"{1000 // rate} ms", "emit_cost": "1 ms"}
    arrivals: Settings = {
        "poisson": {"kind": "poisson", "rate": f"{rate}/s"},
        "burst": {
            "kind": "burst",
            "rate": f"{rate}/s",
            "peak": f"{3 * rate}/s",
            "length": "2 s",
            "every": "9 s",
        },
        "ramp": {"kind": "ramp", "start": "2/s", "end": f"{rate}/s", "begin": "8 s", "over": "15 s"},
        "trace": {"kind": "trace", "file": "rates.csv", "scale": 0.9},
        "day": {
            "kind": "day",
            "peak": f"{rate}/s",
            "by_hour": [
                5,
                4,
                3,
                3,
                3,
                4,
                6,
                10,
                14,
                16,
                17,
                18,
                18,
                17,
                17,
                18,
                20,
                23,
                24,
                22,
                18,
                13,
                9,
                7,
            ],
            "growth": "3 %",
            "months": 2,
            "interpolation": world.some("linear", "steps"),
        },
        "file": {"kind": "day", "file": "day.csv"},
    }[kind]
    world.daily |= arrivals["kind"] == "day"
    return {"arrivals": arrivals}


def _spout(world: World, rate: int = 10, **more: Any) -> Settings:
    """A spout, and maybe the queue that it reads."""
    found = {"parallelism": _parallel(world)} | more | _arrivals(world, rate)
    if "offset" not in more and world.strategy in SOURCED and world.often(0.2):
        kind = world.some("kafka", "kestrel")
        own = {"commit_interval": "2 s"} if kind == "kafka" else {"timeout": "6 s"}
        found["source"] = {"kind": kind, "poll_cost": "0.2 ms"} | own
    return found


def _window(world: World, event: bool = False) -> Settings:
    """A window of any sort that the strategy takes."""
    strategy = world.strategy
    if strategy in BY_MARKER and not event:
        length, slide = world.some((5, None), (3, None), (6, 2), (4, 2))
        return world.given(length=f"{length} s", slide=slide and f"{slide} s", trigger="marker")
    if event:
        found = {"by": "event", "lag": world.some("0 s", "0.5 s", "2 s"), "watermark_interval": "0.7 s"}
        if world.often(0.3) and strategy != "upstream_backup":
            return found | {"gap": world.some("0.6 s", "1.5 s")}
        length, slide = world.some((5, None), (3, None), (6, 2))
        late = world.some("drop", "aside") if strategy in ("none", "source_replay") else None
        return found | world.given(length=f"{length} s", slide=slide and f"{slide} s", late=late)
    if strategy == "upstream_backup":
        return world.some(
            {"length": "5 s"}, {"length": "6 s", "slide": "2 s", "trigger": "marker"}, {"tuples": 17}
        )
    return world.some(
        {"length": "5 s", "trigger": world.some("tick", "marker")},
        {"length": "3 s"},
        {"length": "6 s", "slide": "2 s"},
        {"tuples": world.some(17, 40)},
        {"tuples": 20, "slide_tuples": 5},
        {"gap": "0.3 s", "watermark_interval": "0.4 s"}
        | ({"by": "event"} if strategy == "changelog" else {}),
        {"length": "4 s", "saved": "ids"} if strategy == "storm_checkpoint" else {"length": "4 s"},
    )


def _counted(world: World) -> Settings:
    """A bolt that counts, and its window: a running count goes on, so its windows follow one another."""
    window = _window(world)
    simple = not {"slide", "slide_tuples", "gap", "saved"} & set(window)
    running = simple and world.strategy != "upstream_backup"
    return {"bolt": world.some("windowed_count", "distinct", "running_count" if running else "distinct")} | {
        "window": window
    }


def _state(world: World) -> Settings:
    """A state backend, sometimes."""
    backed = world.strategy not in (
        *BATCHES,
        "trident",
        "upstream_backup",
        "active_standby",
        "passive_standby",
    )
    if not backed or not world.often(0.3):
        return {}
    kind = world.some("memory", "rocksdb")
    found = {"kind": kind, "entries": world.some(100, 3000), "entry_size": "100 B", "accesses": 2}
    if kind == "rocksdb" and world.strategy in SNAPSHOTS:
        found["incremental"] = world.some(True, False)
    return {"state": found}


def _words(world: World) -> None:
    """Sentences, their words, and how often each comes."""
    world.topology |= {
        "words": _spout(world, world.some(5, 10), spout="sentences"),
        "split": {"bolt": "split_words", "from": {"words": "shuffle"}, "service": _service(world, 2)}
        | {"parallelism": _parallel(world)},
        "count": {
            "from": {"split": {"fields": ["word"]}},
            "service": _service(world, 1.5),
            "parallelism": _parallel(world),
        }
        | _counted(world)
        | _state(world),
    }
    _ends(world)


def _keys(world: World) -> None:
    """Keys that are filtered or multiplied, and counted."""
    middle = world.some({"bolt": "filter", "keep": 0.7}, {"bolt": "generic", "selectivity": 1.5})
    grouping = world.some("shuffle", "global", {"fields": ["key"]}, "direct", "all")
    order = world.some({"exponent": 1.1}, {"order": "in_turn"}, {})
    world.topology |= {
        "words": _spout(world, world.some(10, 20), spout="keys", keys=12) | order,
        "split": middle
        | {"from": {"words": grouping}, "service": _service(world, 2), "parallelism": _parallel(world)}
        | _state(world),
        "count": {
            "from": {"split": {"fields": ["key"]}},
            "service": _service(world, 1),
            "parallelism": _parallel(world),
        }
        | _counted(world),
    }
    _ends(world)


def _joined(world: World) -> None:
    """Two streams that are joined, and one that is counted beside."""
    both = {"from": {"split": {"fields": ["key"]}, "clicks": {"fields": ["key"]}}}
    late = {"event_delay": {"kind": "exponential", "mean": "0.5 s"}}
    event = world.often(0.4) and world.strategy != "trident"
    world.topology |= {
        "words": _spout(world, 10, spout="keys", keys=8) | (late if event else {}),
        "clicks": _spout(world, 5, spout="keys", keys=8) | (late if event else {}),
        "split": {"bolt": "forward", "from": {"words": "shuffle"}, "service": _service(world, 1)},
        "count": both
        | {"bolt": "windowed_join", "service": _service(world, 2), "parallelism": _parallel(world)}
        | {"window": _joint(world, event)},
    }


def _joint(world: World, event: bool) -> Settings:
    """A window of a join: no session, nor late tuples aside, nor so many tuples."""
    while True:
        found = _window(world, event)
        if "length" in found and found.get("late") != "aside":
            return found


def _events(world: World) -> None:
    """Windows by event, of keys or of values with stamps."""
    if world.often(0.3):
        stamps = [f"{second} s" for second in (3, 5, 7, 18, 26, 36, 8825, 8826, 8827, 8839)]
        words: Settings = {
            "spout": "values",
            "values": [1 << bit for bit in range(10)],
            "stamps": stamps,
            "pause": "3100 ms",
            "offset": "0 s",
        }
    else:
        words = _spout(world, 12, spout="keys", keys=8)
        words["event_delay"] = world.some("0.2 s", {"kind": "exponential", "mean": "0.7 s"})
    window = _window(world, event=True)
    if world.strategy not in (*BATCHES, "trident"):
        window |= world.given(idle_after=world.some(None, None, "3 s"))
    world.topology |= {
        "words": words,
        "split": {"bolt": "forward", "from": {"words": "shuffle"}, "service": _service(world, 1)},
        "count": {
            "bolt": world.some("windowed_count", "distinct"),
            "from": {"split": {"fields": ["key"]}},
            "service": _service(world, 2),
            "window": window,
            "parallelism": _parallel(world),
        },
    }


def _ends(world: World) -> None:
    """What comes after the count, and beside it."""
    if world.often(0.4):
        world.topology["sink"] = {"bolt": "forward", "from": {"count": "global"}, "service": "1 ms"}
    if world.often(0.25) and world.strategy not in BATCHES:
        world.topology["direct"] = {"bolt": "forward", "from": {"split": "shuffle"}, "service": "1 ms"}


def _settings(world: World) -> Settings:
    """Some settings of each strategy, of which `_strategy` takes one; drawn for all, in this order."""
    some = world.some
    acks = world.given(
        message_timeout=some("4 s", "7 s"),
        timeout_phase=some(None, "0 s", "1.3 s"),
        ack_cost=some("0 s", "0.3 ms"),
        acker_host=some(None, 0),
        max_spout_pending=some(None, None, 200, 20),
        timeout_buckets=some(2, 3),
    )
    batch = {
        "plan_time": "10 ms",
        "task_time": "20 ms",
        "state_time": "5 ms",
        "state_cost": "0.1 ms",
        "output_time": some("0 s", "5 ms"),
        "commit_time": "10 ms",
        "reload_time": "50 ms",
        "recovery_time": "300 ms",
        "executor_cold": "100 ms",
        "cores": some(1, 2),
        "locality_wait": some("0 s", "0.6 s"),
    }
    every = {"checkpoint_interval": some("2 s", "3.1 s")}
    replayed = world.given(replay_cost="0.5 ms", replay_rate=some(None, "200/s"))
    copied = world.given(copy_time="20 ms", copy_bandwidth=some(None, "10 KiB/s"))
    restored = {"restore_time": "10 ms", "restore_cost": "0.1 ms"}
    return {
        "none": {},
        "source_replay": acks,
        "storm_checkpoint": acks
        | every
        | {"write_time": "2 ms", "write_cost": "0.1 ms", "round_trip": "1 ms"},
        "estorm": acks
        | {
            "members": some(1, 2, 3),
            "copy_cost": "0.2 ms",
            "transaction_time": "0.3 s",
            "load_time": "0.2 s",
        },
        "rsm": every
        | restored
        | replayed
        | {"spout_buffer": some(True, False), "serialise_time": "1 ms", "serialise_cost": "0.1 ms"},
        "active_replication": copied | {"k": some(0, 1, 1, 2)},
        "active_standby": copied | {"ack_interval": some("0.5 s", "1 s"), "replay_cost": "0.5 ms"},
        "passive_standby": every
        | replayed
        | {"delta": some(True, False), "checkpoint_time": "1 ms", "checkpoint_cost": "0.1 ms"},
        "upstream_backup": replayed | {"ack_interval": some("0.5 s", "1 s")},
        "aligned_snapshots": every
        | restored
        | {
            "min_pause": some("0 s", "0.5 s"),
            "snapshot_time": "5 ms",
            "snapshot_cost": "0.1 ms",
            "upload_time": some("0 s", "30 ms"),
            "sink": some(
                {"kind": "direct"},
                {"kind": "transactional", "transaction_timeout": some("3 s", "60 s"), "commit_time": "50 ms"},
            ),
        },
        "unaligned": {"unaligned": True, "aligned_timeout": some("0 s", "20 ms")},
        "changelog": {"restore_time": "10 ms", "restore_cost": "0.1 ms", "commit_time": some("0 s", "5 ms")}
        | {"commit_interval": some("0.5 s", "3 s"), "standby_replicas": some(0, 0, 1)},
        "micro_batch": batch
        | {
            "trigger_interval": some("0 s", "0.5 s", "1 s"),
            "recovery": some("checkpoint", "checkpoint", "replay", "lineage"),
            "output_mode": some("append", "update"),
        },
        "batch_rerun": batch | {"trigger_interval": some("4 s", "9 s"), "retry": some("job", "task")},
        "trident": {
            "spout": some("opaque", "transactional", "non_transactional"),
            "state": some("opaque", "transactional", "non_transactional"),
            "batch_interval": some("0.5 s", "1 s"),
            "max_spout_pending": some(1, 2),
            "message_timeout": some("3 s", "6 s"),
            "metadata_time": "5 ms",
            "task_time": "5 ms",
            "state_time": "5 ms",
            "commit_time": "5 ms",
        },
        "hybrid": {},
    }


def _strategy(world: World, name: str) -> Settings:
    """The strategy with some settings."""
    some, settings = world.some, _settings(world)
    found = dict(settings[name])
    if name == "unaligned":
        found = settings["aligned_snapshots"] | found
    if name == "hybrid":
        found["rest"] = _strategy(world, "rsm")
        if world.often(0.5):
            found["stateless"] = _strategy(world, some("active_replication", "none"))
        if world.often(0.5):
            found["bolts"] = {"count": _strategy(world, "active_replication")}
    if name == "changelog" and world.often(0.4):
        found |= {"guarantee": "exactly_once"}
    elif name == "changelog" and world.often(0.3):
        found |= some({"local_state": True}, {"batch_interval": "0.2 s"})
    if name in ("rsm", "changelog", "storm_checkpoint", "estorm", *SNAPSHOTS) and world.often(0.4):
        found["store"] = "other"
        world.stores["other"] = _store(world)
    if name in SNAPSHOTS and world.often(0.3):
        found["local_recovery"] = "ssd"
        world.stores["ssd"] = {"kind": "disk", "latency": "1 ms"}
    return {"kind": "aligned_snapshots" if name == "unaligned" else name, **found}


def _store(world: World) -> Settings:
    """One of `stores`."""
    if world.strategy in ("storm_checkpoint", "estorm"):
        return {"kind": "redis", "operations": "8000/s"}
    return world.some({"kind": "dfs", "replication": 2}, {"kind": "redis", "operations": "8000/s"})


def _hosts(world: World) -> Any:
    """So many hosts, or machines with cores, cards, slots, racks, workers and a reserve."""
    plain = world.failure not in ("crash_rack", "crash_worker") and world.detector in ("", "heartbeats")
    if plain and world.often(0.5):
        return world.some(4, 5)
    batch = world.strategy in BATCHES
    slots = 12 if world.detector == "free_slots" else None
    machine = world.given(
        count=6,
        cores=None if batch else world.some(None, 1, 2),
        nic=None if batch else world.some(None, None, "2 Mbit/s"),
        slots=slots,
        price=world.some(None, 0.2),
    )
    found: Settings = {"machines": {"m": machine}}
    if world.failure == "crash_rack" or world.often(0.3):
        found["racks"] = 2
    if world.failure == "crash_worker" or world.detector == "storm":
        found["workers"] = world.some(1, 2)
    if world.often(0.4):
        found["placement"] = "estorm" if world.strategy == "estorm" else "k_safe"
    if world.detector in ("heartbeats", "storm") and world.often(0.3):
        found["reserve"] = 1
    return found


def _links(world: World) -> Settings:
    """Latencies, and what messages cost."""
    found: Settings = {"latency": _service(world, 2), "local": world.some("0 s", "0.1 ms")}
    if found["latency"] and isinstance(found["latency"], dict) and found["latency"]["kind"] == "request":
        found["latency"] = "2 ms"
    if world.often(0.3):
        found["pairs"] = {"0-1": "9 ms"}
    if world.often(0.2) and world.strategy not in BATCHES:
        found |= {"header": "40 B", "serialise": "0.05 ms", "deserialise": "0.05 ms"}
    return found


def _failures(world: World) -> list[Settings]:
    """What fails."""
    some, kind = world.some, world.failure
    when: Settings = {"at": f"{12 + world.chance.randrange(6000) / 1000} s"}
    if world.often(0.2):
        when["within"] = "3 s"
    down: Settings = {"while_down": some("drop", "hold")}
    if not world.detector:
        down |= {
            "detection": some("0 s", "0.7 s"),
            "restart": some("0 s", "0.9 s", {"kind": "uniform", "low": "0.5 s", "high": "1 s"}),
        }
        down["restart"] = down["restart"] if isinstance(down["restart"], str) else "1.3 s"
    if world.often(0.1) and world.strategy in (*SNAPSHOTS, "rsm", "passive_standby"):
        when["in_interval"] = some(0.3, 0.9)
    hit = {"component": some("split", "count", "count")}
    lasting = {"duration": some("1.2 s", "4 s")} | when
    host = {"host": world.chance.randrange(3)}
    crash = {"kind": "crash_task"} | when | hit | down
    store = {"store": "other"} if "other" in world.stores else {}
    special = {"micro_batch": "driver", "batch_rerun": "driver", "trident": "coordinator"}
    component = special.get(world.strategy, "acker" if world.strategy in STORM else "words")
    second = {"kind": some("lose_state", "crash_task"), "component": "split"} | down
    if second["kind"] == "lose_state" and world.detector:
        second["kind"] = "crash_task"
    table: dict[str, list[Settings]] = {
        "quiet": [],
        "lose_state": [{"kind": "lose_state"} | when | {"component": "count"} | down],
        "crash_task": [crash],
        "crash_host": [{"kind": "crash_host"} | host | when | down | some({}, {"repair": "2 s"})],
        "crash_rack": [{"kind": "crash_rack", "rack": some(0, 1)} | when | down],
        "crash_worker": [{"kind": "crash_worker"} | host | when | down],
        "pause": [{"kind": "pause"} | lasting | hit],
        "partition": [
            {
                "kind": "partition",
                "hosts": [0],
                "messages": "lose" if world.often(0.5) and world.strategy in LOSING else "hold",
            }
            | lasting
        ],
        "slow_host": [{"kind": "slow_host", "factor": 0.2} | host | lasting],
        "slow_link": [{"kind": "slow_link", "hosts": [0], "latency_factor": 30} | lasting],
        "slow_store": [{"kind": "slow_store", "factor": 20} | store | lasting, crash | {"at": "19 s"}],
        "store_down": [{"kind": "store_down"} | store | lasting, crash | {"at": "19 s"}],
        "lose_store": [{"kind": "lose_store"} | store | when, crash | {"at": "19 s"}],
        "cascade": [{"kind": "cascade", "host": 0, "probability": 0.6, "span": "3 s"} | when | down],
        "machines_fail": [
            {
                "kind": "machines_fail",
                "lifetime": {"kind": "exponential", "mean": "60 s"},
                "repair": "1 s",
                "crews": 2,
            }
            | down
        ],
        "events": [{"kind": "events", "file": "events.csv"}],
        "two": [crash, second | {"at": f"{18 + world.chance.randrange(2000) / 1000} s"}],
        "many": [
            crash | some({"times": 3, "period": "4 s"}, {"every": {"kind": "exponential", "mean": "9 s"}})
        ],
        "special": [crash | {"component": component}],
    }
    if kind == "machines_fail" or (kind == "many" and "every" in table[kind][0]):
        table[kind][0].pop("at", None)
    if kind == "many":
        for key in ("within", "in_interval"):
            table[kind][0].pop(key, None)
    return table[kind]


def _detector(world: World) -> Settings:
    """How failures are noticed."""
    restarts = world.some(
        None,
        {"kind": "fixed_delay", "delay": "0.5 s", "attempts": world.some(1, 10)},
        {"kind": "exponential_delay", "initial": "0.2 s", "factor": 2, "most": "3 s"},
        {"kind": "failure_rate", "delay": "0.3 s", "most_failures": world.some(1, 3), "within": "20 s"},
    )
    heartbeats = {"kind": "heartbeats", "interval": "0.5 s", "timeout": world.some("1.6 s", "3 s")}
    heartbeats |= {"launch": "0.4 s", "prepare": "0.3 s"} | world.given(restarts=restarts)
    return {
        "": {},
        "heartbeats": heartbeats | world.given(listener=world.some(None, 0)),
        "free_slots": heartbeats | {"restart_on": "free_slot"},
        "storm": {
            "kind": "storm",
            "supervisor_worker_timeout": "3 s",
            "nimbus_task_timeout": world.some("4 s", "8 s"),
            "task_heartbeat": "1 s",
            "supervisor_round": "1 s",
            "nimbus_round": "2 s",
            "worker_start_timeout": "8 s",
            "task_launch": "8 s",
            "launch": "0.7 s",
            "prepare": "0.3 s",
        },
        "consumer_group": {
            "kind": "consumer_group",
            "heartbeat_interval": "0.5 s",
            "session_timeout": "2 s",
            "rebalance": "0.3 s",
        }
        | world.some({}, {"restart": "1 s"}, {"restart": "1 s", "static": True}),
    }[world.detector]


def _run(world: World) -> Settings:
    """How long, and how it is read."""
    found: Settings = {"duration": "40 s", "warmup": "5 s", "seed": world.chance.randrange(1, 10**6)}
    found |= world.given(
        replications=world.some(1, 1, 2),
        log_resolution=world.some(None, None, None, "1 s"),
        lag_window=world.some(None, None, None, "3 s"),
        calm=world.some(None, None, "2 s"),
    )
    whole = any("values" in parts or "tuples" in parts.get("window", ()) for parts in world.topology.values())
    if not whole and world.strategy not in STORM and world.often(0.35):
        found["lump"] = world.some(2, 4)
    if world.daily:
        timed = world.failure not in ("quiet", "machines_fail", "events", "many")
        found |= {"fails_at": world.some("12:00", "peak")} if timed else {"starts_at": "11:59:50"}
    return found
