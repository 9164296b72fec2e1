"""Another vendor's file is one setting away."""

import pytest

from app.catalog.problems import CatalogueError
from app.main import create_app
from app.settings import Settings


def test_the_vendor_is_a_setting() -> None:
    """The application starts with the vendor that is set, and names the file that is missing."""
    assert create_app(Settings(vendor="default")).state.catalogue.vendor.slug == "default"
    with pytest.raises(CatalogueError, match=r"vendors/nobody\.toml"):
        create_app(Settings(vendor="nobody"))
