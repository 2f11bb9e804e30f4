"""Arrival processes: when a spout is called. One a file."""

from tideover.models.job.arrivals import burst, day, periodic, poisson, ramp, saturating, trace

__all__ = ["burst", "day", "periodic", "poisson", "ramp", "saturating", "trace"]
