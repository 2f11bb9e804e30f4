"""Groupings: where a tuple goes. One kind a file."""

from tideover.models.job.groupings import direct, every, fields, shuffle, single

__all__ = ["direct", "every", "fields", "shuffle", "single"]
