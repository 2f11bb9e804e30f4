"""Kinds of stores, one a file; importing the room registers them."""

from tideover.models.job.stores import dfs, disk, redis

__all__ = ["dfs", "disk", "redis"]
