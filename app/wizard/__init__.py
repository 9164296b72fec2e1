"""Answers, questions, their order and the permalink; no HTML."""
