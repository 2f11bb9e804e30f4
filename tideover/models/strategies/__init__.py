"""Strategies: how a pipeline survives failure. One protocol a file."""

from tideover.models.strategies import none, source_replay

__all__ = ["none", "source_replay"]
