"""What fits to real runs come to: pairs of measured and predicted figures, in tables, words and pictures."""
