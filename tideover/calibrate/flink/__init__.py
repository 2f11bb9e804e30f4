"""Calibration on a real Flink: a job whose TaskManagers are really killed."""
