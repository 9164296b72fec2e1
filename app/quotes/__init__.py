"""Quote requests: the only room that holds personal data."""
