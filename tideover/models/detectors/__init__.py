"""How failures are noticed and what they hit is restarted, one kind a file."""

from tideover.models.detectors import given, heartbeats, restarts, storm

__all__ = ["given", "heartbeats", "restarts", "storm"]
