"""Acks: which roots are done, and which have timed out."""
