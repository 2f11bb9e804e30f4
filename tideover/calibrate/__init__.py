"""Calibration: real pipelines that are really killed (``real``), and parameters fitted to what they did.

Imports scenarios, models and sim; reports and this room do not know each other. PySpark is imported when a
driver runs, not before.
"""
