"""Quotes are kept once, whole, found again, and forgotten without a trace. On both databases."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
import stamina

from app.quotes.outbox import Outbox
from app.quotes.quote import Note
from app.quotes.repository import PAGE_ROWS, Repository
from app.storage.engine import Storage
from app.storage.unavailable import StorageUnavailableError
from tests.quotes.conftest import CREATED, Draft

CHANNELS = ("desk_mail", "customer_mail", "webhook")


def test_a_quote_comes_back_as_it_was_stored(repository: Repository, draft: Draft) -> None:
    """Every field, the answers and the whole result come back equal, with a reference drawn."""
    sent = draft(
        company="Ünïcode GmbH", phone="+49 30 1", country="DE", quantity=2, wished_date="März",
        message="two\nlines", start_log="INFO \x1b[0m log", marketing=True,
    )  # fmt: skip
    sent = replace(sent, marketing_at=CREATED, marketing_version="v")
    saved = repository.save(sent, CHANNELS)
    assert saved.is_new
    stored = repository.get(sent.id)
    assert stored == replace(sent, reference=saved.quote.reference)
    assert len(saved.quote.reference) == len("123-456-789")


def test_the_same_form_twice_is_one_quote(
    repository: Repository, outbox: Outbox, draft: Draft
) -> None:
    """A repeated form gets the first quote back, and nobody is told again."""
    first = draft()
    kept = repository.save(first, CHANNELS).quote
    again = repository.save(replace(draft(name="Other"), form_id=first.form_id), CHANNELS)
    assert (again.is_new, again.quote) == (False, kept)
    assert repository.search().total == 1
    assert len(outbox.of_quote(kept.id)) == len(CHANNELS)


def test_the_same_form_at_the_same_moment_is_one_quote(
    repository: Repository, draft: Draft
) -> None:
    """Sixteen threads that send one form get one reference between them."""
    one = draft()
    repository.search()

    def send(_: int) -> str:
        return repository.save(replace(draft(), form_id=one.form_id), CHANNELS).quote.reference

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(send, range(16)))) == 1
    assert repository.search().total == 1


def test_search_finds_by_number_mail_name_company_and_status(
    repository: Repository, draft: Draft
) -> None:
    """Parts of words in any case, and a number typed with other separators, find their quote."""
    ann = repository.save(draft(company="Müller & Söhne 100%"), ()).quote
    bob = repository.save(draft(email="bob@example.org", name="Bob"), ()).quote
    repository.set_status(bob.id, "offered")

    def found(text: str, **more: object) -> set[str]:
        return {quote.id for quote in repository.search(text, **more).quotes}  # type: ignore[arg-type]

    assert found("BOB@") == found("bo") == {bob.id}
    assert found("söhne 100%") == {ann.id}
    assert found("%") == {ann.id}, "a percent sign is no wildcard"
    assert found(ann.reference.replace("-", " ")) == {ann.id}
    assert found("", status="offered") == {bob.id}
    assert found("nobody") == set()


def test_search_pages(repository: Repository, draft: Draft) -> None:
    """A page holds fifty quotes, newest first; the second the rest."""
    for number in range(PAGE_ROWS + 3):
        repository.save(draft(created_at=CREATED + timedelta(minutes=number)), ())
    first, second = repository.search(), repository.search(page=2)
    assert (len(first.quotes), len(second.quotes), first.total, first.pages) == (50, 3, 53, 2)
    assert first.quotes[0].created_at > second.quotes[0].created_at


def test_notes_are_added_never_changed(repository: Repository, draft: Draft) -> None:
    """Notes keep their order; a note on a quote that is gone is refused."""
    quote = repository.save(draft(), ()).quote
    notes = [Note(CREATED + timedelta(hours=hour), f"note {hour}") for hour in range(3)]
    assert all(repository.add_note(quote.id, note) for note in notes)
    assert repository.notes_of(quote.id) == tuple(notes)
    assert not repository.add_note("0" * 32, notes[0])


def test_forgetting_leaves_nothing(repository: Repository, outbox: Outbox, draft: Draft) -> None:
    """Quote, notes and news are gone; a webhook that was never tried hears nothing."""
    quote = repository.save(draft(), CHANNELS).quote
    repository.add_note(quote.id, Note(CREATED, "private"))
    assert repository.forget((quote.id,), CREATED) == 1
    assert repository.get(quote.id) is None
    assert repository.notes_of(quote.id) == ()
    assert outbox.of_quote(quote.id) == ()


def test_a_webhook_that_may_know_a_quote_hears_of_its_end_afterwards(
    repository: Repository, outbox: Outbox, draft: Draft
) -> None:
    """The news of a deletion is due only when the delivery under way must have ended."""
    quote = repository.save(draft(), CHANNELS).quote
    (leased,) = outbox.lease("me", "webhook", moment=CREATED, limit=1)
    repository.forget((quote.id,), CREATED)
    (news,) = outbox.of_quote(quote.id)
    assert (news.event, news.channel, news.reference) == ("deleted", "webhook", quote.reference)
    assert news.idempotency_key != leased.idempotency_key
    assert outbox.lease("me", "webhook", moment=CREATED, limit=1) == ()
    later = CREATED + timedelta(minutes=5)
    (due,) = outbox.lease("me", "webhook", moment=later, limit=1)
    outbox.delivered(due, "me", later)
    assert outbox.of_quote(quote.id) == ()


def test_a_database_that_is_down_is_said_to_be_down(draft: Draft) -> None:
    """A PostgreSQL that does not answer raises the one error that pages handle, without data."""
    repository = Repository(Storage("postgresql://nobody@127.0.0.1:1/none"))
    with stamina.set_testing(True), pytest.raises(StorageUnavailableError) as caught:
        repository.save(draft(), CHANNELS)
    assert "ann@example.com" not in repr(caught.value)
    assert caught.value.__cause__ is None
