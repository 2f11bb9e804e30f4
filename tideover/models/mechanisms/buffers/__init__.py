"""Upstream buffers: senders keep what they have sent, and replay it."""
