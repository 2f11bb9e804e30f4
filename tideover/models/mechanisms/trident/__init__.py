"""Batches with transaction ids: what spouts emit again, what stores make of it, who commits in order."""
