"""External queues that spouts read, one a file; importing the room registers them."""

from tideover.models.job.sources import kafka, kestrel

__all__ = ["kafka", "kestrel"]
