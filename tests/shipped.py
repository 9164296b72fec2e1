"""The catalogue as it is shipped, read once for all tests of a process."""

from functools import cache
from pathlib import Path

from app.catalog.catalogue import Catalogue, load_catalogue

DATA = Path(__file__).parents[1] / "data"


@cache
def catalogue() -> Catalogue:
    """Return the project's own catalogue."""
    return load_catalogue(DATA)
