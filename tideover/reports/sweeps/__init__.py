"""What a sweep found, for readers: its points as a table, the effect of each swept key, figures, the page."""
