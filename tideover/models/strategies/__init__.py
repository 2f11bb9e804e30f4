"""Strategies: how a pipeline survives failure. One protocol a file."""

from tideover.models.strategies import active_replication, none, rsm, source_replay

__all__ = ["active_replication", "none", "rsm", "source_replay"]
