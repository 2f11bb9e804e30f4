"""Strategies that each act for some of a job's bolts, brought together."""
