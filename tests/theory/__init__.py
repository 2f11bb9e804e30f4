"""The engine against closed forms of queueing theory."""
