"""Sweeps: many scenarios that differ in some keys, their runs, and what comes of them."""
