"""Kinds of sinks, one a file; importing the room registers them."""

from tideover.models.job.sinks import direct, transactional

__all__ = ["direct", "transactional"]
