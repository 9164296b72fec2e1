"""The database behind the quotes."""
