"""The space-time diagram of a stretch of a run: what is drawn of it, where, and how."""
