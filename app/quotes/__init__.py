"""Quote requests: the only room that keeps personal data, and the only one that forgets it."""
