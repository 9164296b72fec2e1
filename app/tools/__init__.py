"""Named tasks behind make."""
