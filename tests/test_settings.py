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


def test_signing_keys_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are separated by commas, newest first; one that can be guessed is refused."""
    monkeypatch.setenv("SIZING_SECRET_KEYS", f"{'n' * 32}, {'o' * 32}")
    assert [key.get_secret_value()[0] for key in Settings().secret_keys] == ["n", "o"]
    monkeypatch.setenv("SIZING_SECRET_KEYS", "short")
    with pytest.raises(ValidationError, match="32 characters"):
        Settings()


def test_a_webhook_is_always_signed() -> None:
    """An address without a key is refused at the start, not at the first delivery."""
    with pytest.raises(ValidationError, match="webhook_secret"):
        Settings(webhook_url="https://crm.example/hook")


def test_no_secret_is_shown() -> None:
    """Printing the settings shows no password, no key and no address of a database."""
    settings = Settings.model_validate(
        {
            "database_url": "postgresql://u:hidden1@h/d",
            "secret_keys": "hidden2" * 8,
            "smtp_password": "hidden3",
            "webhook_secret": "hidden4",
            "desk_password_hash": "hidden5",
        }
    )
    assert "hidden" not in repr(settings)
