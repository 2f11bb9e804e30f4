"""State backends, one a file; importing the room registers them."""

from tideover.models.job.backends import memory, rocksdb

__all__ = ["memory", "rocksdb"]
