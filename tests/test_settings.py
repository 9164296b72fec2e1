"""Settings come from the environment and refuse what cannot work."""

import pytest
from pydantic import ValidationError

from app.settings import Settings


def test_variables_have_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SIZING_ variable sets its field; a list is separated by commas."""
    monkeypatch.setenv("SIZING_FRAME_ANCESTORS", "https://a.example, https://b.example")
    monkeypatch.setenv("SIZING_ENVIRONMENT", "production")
    settings = Settings()
    assert settings.frame_ancestors == ("https://a.example", "https://b.example")
    assert settings.production


@pytest.mark.parametrize(
    "origin",
    ["*", "a.example", "https://", "https://a.example/x", "https://a.example; script-src *"],
)
def test_only_origins_may_frame(origin: str) -> None:
    """Anything but scheme and host is refused, as it would change the policy's meaning."""
    with pytest.raises(ValidationError, match="not an origin"):
        Settings(frame_ancestors=(origin,))


@pytest.mark.parametrize("url", ["wizard.example.com", "https://wizard.example.com/", "ftp://x"])
def test_base_url_is_complete(url: str) -> None:
    """The own address has a scheme and no closing slash."""
    with pytest.raises(ValidationError, match="base_url"):
        Settings(base_url=url)
