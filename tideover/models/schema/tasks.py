"""The columns that say how busy each task was, and each of what tasks share."""

from __future__ import annotations

from tideover.models.schema.columns import Column, count, text

TASK = (
    text("task", "a bolt's task, as component.number, with /number of the replica from the second on"),
    Column(
        "utilisation",
        "part of the time in which the task was up that it was busy",
        "ratio",
        undefined="the task was never up",
    ),
    Column("busy_s", "how long it was busy: tuples, acks, checkpoints, replays, batches", "s"),
    Column(
        "blocked_s",
        "how long full queues kept it from doing more, where they have an end",
        "s",
        optional=True,
    ),
    Column("up_s", "how long it was up", "s"),
    count("queued", "tuples in its queue or in service at the end of the run", "tuples"),
    Column("queued_s", "how long it would have been busy with them", "s"),
)

RESOURCE = (
    Column("begin_s", "begin of a stretch of the run", "s"),
    Column("end_s", "its end", "s"),
    text("resource", "name of a task, or of what tasks share"),
    text("kind", "what it is: task, cores, card in, card out, store, link"),
    count("host", "number of its host", "index", "it is on none"),
    Column("busy", "part of the stretch in which it was busy; of cores the mean", "ratio"),
)
