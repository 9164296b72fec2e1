"""Pasted start logs and metrics pages, turned into observations."""
