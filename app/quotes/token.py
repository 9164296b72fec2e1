"""Signed texts that stand in for cookies and accounts: forms, links in mails, the desk's session.

Keys rotate: the first signs, all are accepted. Each use has its own salt, so that a link never
passes for a form.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from itsdangerous import BadData, BadTimeSignature, SignatureExpired, URLSafeTimedSerializer

FORM_LIFETIME: Final = timedelta(hours=2)
CONFIRMATION_LIFETIME: Final = timedelta(hours=1)
SESSION_LIFETIME: Final = timedelta(hours=8)
ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class FormToken:
    """The identity of one form that was handed out, and when."""

    form_id: str
    issued_at: datetime


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the page after sending may show: the quote and its number."""

    quote_id: str
    reference: str


class TokenExpiredError(Exception):
    """The token is ours but too old."""


class TokenInvalidError(Exception):
    """The token is not ours, or was changed."""


class Signer:
    """Signs and reads every kind of token."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Remember the keys, newest first."""
        self._keys = list(reversed(keys))

    def form_token(self) -> str:
        """Return a token for a new form."""
        return self._sign("form", new_id())

    def read_form_token(self, text: str) -> FormToken:
        """Return what a form's token says. Raises TokenExpiredError, TokenInvalidError."""
        form_id, issued_at = self._read("form", text, FORM_LIFETIME)
        return FormToken(str(form_id), issued_at)

    def confirmation(self, quote_id: str, reference: str) -> str:
        """Return a token for the page that says a request has arrived."""
        return self._sign("confirmation", [quote_id, reference])

    def read_confirmation(self, text: str) -> Confirmation:
        """Return which request a page confirms. Raises TokenExpiredError, TokenInvalidError."""
        content, _ = self._read("confirmation", text, CONFIRMATION_LIFETIME)
        return Confirmation(*content)

    def link_token(self, quote_id: str) -> str:
        """Return the token in the customer's mail: good as long as the request is kept."""
        return self._sign("link", quote_id)

    def opens(self, text: str, quote_id: str) -> bool:
        """Whether a token from a mail opens a request."""
        try:
            content, _ = self._read("link", text, None)
        except (TokenExpiredError, TokenInvalidError):
            return False
        return bool(content == quote_id)

    def session(self, fingerprint: str) -> str:
        """Return the desk's cookie; `fingerprint` names the password it was opened with."""
        return self._sign("desk", fingerprint)

    def session_is_open(self, text: str, fingerprint: str) -> bool:
        """Whether a cookie is ours, young enough, and of today's password."""
        try:
            content, _ = self._read("desk", text, SESSION_LIFETIME)
        except (TokenExpiredError, TokenInvalidError):
            return False
        return bool(content == fingerprint)

    def _sign(self, salt: str, content: object) -> str:
        return str(URLSafeTimedSerializer(self._keys, salt=salt).dumps(content))

    def _read(self, salt: str, text: str, lifetime: timedelta | None) -> tuple[Any, datetime]:
        serializer = URLSafeTimedSerializer(self._keys, salt=salt)
        age = None if lifetime is None else int(lifetime.total_seconds())
        try:
            content, signed_at = serializer.loads(text, max_age=age, return_timestamp=True)
        except SignatureExpired:
            raise TokenExpiredError from None
        except (BadTimeSignature, BadData, ValueError):
            raise TokenInvalidError from None
        return content, signed_at


def new_id() -> str:
    """Draw an identity nobody can guess: 32 hexadecimal digits."""
    return secrets.token_hex(ID_BYTES)


def now() -> datetime:
    """Return this moment."""
    return datetime.now(UTC)


def kept_key(folder: Path) -> str:
    """Return the signing key in a folder, made at the first call; processes may race for it."""
    path = folder / "secret.key"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"secret.{new_id()}"
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails if another process was first; its key counts
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="ascii").strip()
