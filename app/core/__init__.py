"""The calculation: standard library only, frozen dataclasses, integer bytes, no I/O, no words."""
