"""What calibrations come to, for readers: fits to real runs, and to recoveries that others measured."""
