"""Storm's state checkpoints: transactions go through the topology, and acks wait for their commit.

Acks, timeouts and retries are those of `source_replay`, but for when a tuple is acked. A transaction
(tests/models/test_storm_checkpoint.py, test_exact_mechanisms.py; in full queues
test_bounded_queues.py):

- A prepare begins at `checkpoint_interval` (rank CHECKPOINT), then one interval after the last began, or
  when its commit has ended, if that is later. A marker comes into the queue of each task that reads a
  spout. A task takes part when it has had one from there and one over each channel from bolts; tuples
  behind a marker do not wait for the others.
- A task with state (its own, or a `state`) is kept until the store has written its entries (its own: all;
  of a `state`: those accessed since the last prepare), one operation each, and then for `write_time` +
  entries * `write_cost`; a pause makes that later. Then it hands the marker on; a task without state does
  so at once.
- When all have, the transaction *holds*, and the commit's markers go out. Each task writes as many entries
  once more, then acks what was prepared, as a window's end does. Only with this commit are tuples acked by
  tasks with state, late ones and those still in a window too; others ack when they have processed.
- A fault of a bolt ends the transaction under way. At `ready` a task gives up what it does, control markers
  too, and reads its state. Then (rank RESTORE) all tasks go back to the transaction that holds: they begin
  the tuple in service anew, ack what was prepared in it, and never ack what came later. Where one fault has
  hit all that have state, each begins with that transaction, and nobody goes back again (`CheckpointSpout`
  sends INITSTATE then, and no ROLLBACK). When the last is back, the next prepare is due one interval later.

Look-ups of a `state` follow the rules of `RemoteState` (test_look_ups.py).

`saved: ids` of a window that ticks end (test_exact_mechanisms.py): a checkpoint has, for each sender, the
greatest uid that has left the window and that of what it has put out. Who goes back has empty windows: of
each sender what is at most the first is dropped and acked, what is at most the second is taken in, and
anything greater waits until all senders have come so far. Until then ticks have no effect.
"""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from tideover.models import remarks
from tideover.models.mechanisms.base import Costs
from tideover.models.mechanisms.checkpoint_transactions import RemoteState, Transactions
from tideover.models.remarks import Plan
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import STRATEGIES, OpensSpouts
from tideover.models.strategies.source_replay import Replay, SourceReplay
from tideover.sim.registry import setting
from tideover.sim.units import Duration, Period, S, Size


@STRATEGIES.register("storm_checkpoint")
class StormCheckpoint(SourceReplay):
    """At least once: state lies in a store between commits, acks wait for the commit, and a failure takes all
    state back to the last transaction.

    Apache Storm 1.0, *Storm State Management* (``RedisKeyValueState``, ``CheckpointSpout``), 2016; P. Carbone
    et al., *Lightweight Asynchronous Snapshots for Distributed Dataflows*, 2015, for the markers.
    """

    bounded_queues = True
    reads_queues = True
    loses_messages = False
    windows = frozenset({"sliding", "event", "session", "arrival session", "join", "ids"})
    composed_of = (*SourceReplay.composed_of, Transactions)
    costs: ClassVar[dict[str, tuple[str, ...]]] = {"transactions": ("write_time", "write_cost")}
    per_tuple = SourceReplay.per_tuple

    checkpoint_interval: Period = setting("distance of two prepares", S)
    store: str | None = setting("where state lies, of `stores`; if not given: the scenario's `store`")
    entry_size: Size = setting("bytes of an entry in the store", 64)
    write_time: Duration = setting("time that preparing or committing keeps a task, besides the store's", 0)
    write_cost: Duration = setting("the same, for each entry that has changed", 0)
    round_trip: Duration = setting(
        "time to look up an entry of a `state` that is not at hand in the store", 0
    )
    access_cost: Duration = setting("the same, for each access to a `state`, whether at hand or not", 0)
    look_up_work: Duration = setting(
        "part of `round_trip` for which it keeps the store, and others wait; 0: nobody does", 0
    )

    @model_validator(mode="after")
    def _part_of_the_round_trip(self) -> Self:
        if self.look_up_work > self.round_trip:
            raise ValueError("look_up_work is part of `round_trip`, and can't be longer")
        return self

    @property
    def needs(self) -> Needs:
        return super().needs._replace(look_ups=self.look_up_work > 0)

    def cycle(self) -> tuple[int, int]:
        return self.checkpoint_interval, self.checkpoint_interval

    def remarks(self, plan: Plan) -> list[str]:
        least = self.message_timeout * (self.timeout_buckets - 1)
        remark = f"checkpoint_interval: a tuple waits for a commit, and can time out after {least / S:g} s"
        return [remark] * (self.checkpoint_interval >= least) + remarks.held(plan, least)

    def protocol(self, job: Job) -> Checkpointing:
        return Checkpointing(job, self)


class Checkpointing(OpensSpouts, Replay):
    """The protocol: source replay, but with acks that are held until a transaction commits."""

    held = True

    def __init__(self, job: Job, s: StormCheckpoint) -> None:
        super().__init__(job, s)
        costs = Costs(s.write_time, s.write_cost, entry_size=s.entry_size, store=s.store)
        remote = RemoteState(job, s.store, s.round_trip, s.look_up_work, s.access_cost)
        Transactions(job, self.acks, remote, s.checkpoint_interval, costs)
