"""The schema of results: every field, with its name, unit and meaning, and how it is combined and shown."""
