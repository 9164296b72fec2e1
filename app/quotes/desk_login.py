"""The desk's password: one for all, kept as an argon2 hash in the settings."""

from __future__ import annotations

import hashlib


def password_matches(password_hash: str, password: str) -> bool:
    """Whether a password belongs to a hash. Takes tens of milliseconds on purpose."""
    from argon2 import PasswordHasher  # noqa: PLC0415 - only the desk needs it
    from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415 - see above

    try:
        return PasswordHasher().verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def hash_of(password: str) -> str:
    """Return the argon2id hash of a new password, for the settings."""
    from argon2 import PasswordHasher  # noqa: PLC0415 - see above

    return PasswordHasher().hash(password)


def fingerprint(password_hash: str) -> str:
    """Return what a session remembers of the password: a new password ends all sessions."""
    return hashlib.sha256(password_hash.encode()).hexdigest()[:16]
