"""Placements: which host takes which task. One a file."""

from tideover.models.job.placements import round_robin

__all__ = ["round_robin"]
