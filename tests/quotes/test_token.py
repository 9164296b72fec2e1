"""Signed texts open what they were made for, for as long as they may, and nothing else."""

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from app.quotes.token import (
    CONFIRMATION_LIFETIME,
    FORM_LIFETIME,
    SESSION_LIFETIME,
    Signer,
    TokenExpiredError,
    TokenInvalidError,
    kept_key,
)

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_a_form_token_names_its_form_and_time() -> None:
    """Each form has an identity of its own and remembers when it was handed out."""
    signer = Signer(["k" * 32])
    with time_machine.travel(START, tick=False):
        token = signer.form_token()
        assert signer.form_token() != token
    with time_machine.travel(START + FORM_LIFETIME, tick=False):
        assert signer.read_form_token(token).issued_at == START
    late = time_machine.travel(START + FORM_LIFETIME + SECOND, tick=False)
    with late, pytest.raises(TokenExpiredError):
        signer.read_form_token(token)


@pytest.mark.parametrize("change", ["", "x", "{}x", "x{}", "{}.{}", "ä", "a.b.c", "\0"])
def test_a_changed_token_is_refused(change: str) -> None:
    """Emptied, lengthened, doubled or invented: not ours."""
    signer = Signer(["k" * 32])
    token = signer.form_token()
    with pytest.raises(TokenInvalidError):
        signer.read_form_token(change.format(token, token))


def test_a_token_opens_its_own_kind_only() -> None:
    """A link is no form, a form no confirmation, a confirmation no link and no session."""
    signer = Signer(["k" * 32])
    form, link = signer.form_token(), signer.link_token("q1")
    confirmation = signer.confirmation("q1", "123")
    for wrong in (form, link):
        with pytest.raises(TokenInvalidError):
            signer.read_confirmation(wrong)
    with pytest.raises(TokenInvalidError):
        signer.read_form_token(link)
    assert not signer.opens(confirmation, "q1")
    assert not signer.session_is_open(link, "q1")


def test_a_link_opens_its_own_request_for_years() -> None:
    """The link of a mail works as long as the request is kept, and for no other request."""
    signer = Signer(["k" * 32])
    with time_machine.travel(START, tick=False):
        token = signer.link_token("q1")
    with time_machine.travel(START + timedelta(days=3650), tick=False):
        assert signer.opens(token, "q1")
        assert not signer.opens(token, "q2")


def test_confirmations_and_sessions_end() -> None:
    """A confirmation is good for an hour, a session for eight, and for one password."""
    signer = Signer(["k" * 32])
    with time_machine.travel(START, tick=False):
        confirmation, session = signer.confirmation("q1", "123"), signer.session("f")
        assert signer.read_confirmation(confirmation).reference == "123"
        assert signer.session_is_open(session, "f")
        assert not signer.session_is_open(session, "g")
    with time_machine.travel(START + CONFIRMATION_LIFETIME + SECOND, tick=False):
        with pytest.raises(TokenExpiredError):
            signer.read_confirmation(confirmation)
        assert signer.session_is_open(session, "f")
    with time_machine.travel(START + SESSION_LIFETIME + SECOND, tick=False):
        assert not signer.session_is_open(session, "f")


def test_keys_rotate() -> None:
    """The newest key signs, an older one is still accepted, a dropped one is not."""
    old = Signer(["o" * 32]).link_token("q1")
    both = Signer(["n" * 32, "o" * 32])
    assert both.opens(old, "q1")
    assert Signer(["n" * 32]).opens(both.link_token("q1"), "q1")
    assert not Signer(["n" * 32]).opens(old, "q1")


def test_a_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    """Processes that start together agree on one key, which only its owner may read."""
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(kept_key, [tmp_path / "var"] * 8))
    assert len(keys) == 1
    (file,) = (tmp_path / "var").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
