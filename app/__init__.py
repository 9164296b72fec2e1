"""Sizing wizard for vLLM servers."""
