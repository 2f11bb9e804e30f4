"""How long a restart waits, one kind a file."""

from tideover.models.detectors.restarts import exponential_delay, failure_rate, fixed_delay

__all__ = ["exponential_delay", "failure_rate", "fixed_delay"]
