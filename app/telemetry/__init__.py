"""Logs and metrics about the service, never about a person."""
