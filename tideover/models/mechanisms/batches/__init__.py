"""Micro-batches: the log, a batch's rehearsal, the executors that run its tasks, the driver of one query."""
