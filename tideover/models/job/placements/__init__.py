"""Placements: which host takes which task. One a file."""

from tideover.models.job.placements import by_hand, estorm, k_safe, round_robin

__all__ = ["by_hand", "estorm", "k_safe", "round_robin"]
