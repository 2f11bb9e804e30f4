"""What an expert remarks on a planned run: texts and arithmetic that strategies share."""
