"""How failures are noticed and what they hit is restarted, one kind a file."""

from tideover.models.detectors import base, consumer_group, heartbeats, restarts, storm

__all__ = ["base", "consumer_group", "heartbeats", "restarts", "storm"]
