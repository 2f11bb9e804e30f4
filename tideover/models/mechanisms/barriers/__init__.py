"""Snapshots of a whole job: when they are triggered, and what each task does for them."""
