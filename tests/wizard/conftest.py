"""The catalogue as the application reads it."""

import pytest

from app.catalog.catalogue import Catalogue, load_catalogue
from app.main import ROOT


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """Return the project's own catalogue."""
    return load_catalogue(ROOT / "data")
