"""Placements: which host takes which task. One a file."""

from tideover.models.job.placements import k_safe, round_robin

__all__ = ["k_safe", "round_robin"]
