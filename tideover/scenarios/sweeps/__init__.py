"""Sweeps: from what a file says to points, one scenario each."""
