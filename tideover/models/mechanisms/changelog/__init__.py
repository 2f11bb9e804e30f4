"""Changelogs: every task writes what changes in its state to a topic of its own, and commits how far it has
read.
"""
