"""Several processes share one outbox."""

from __future__ import annotations

import subprocess
import sys

import pytest

from app.main import ROOT
from app.quotes.repository import Repository
from app.storage.engine import Storage
from tests.quotes.conftest import Draft
from tests.quotes.peers import Receiver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
MESSAGES = 1_000


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True
)
def test_two_processes_deliver_a_thousand_without_a_duplicate(
    storage: Storage, database_url: str, receiver: Receiver, draft: Draft
) -> None:
    """Both do a share of the work, and no message is told twice or not at all."""
    repository = Repository(storage)
    quotes = [repository.save(draft(), ("webhook",)).quote for _ in range(MESSAGES)]
    command = [sys.executable, "-m", "tests.quotes.serving", database_url, receiver.url]
    workers = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
        for _ in range(2)
    ]
    try:
        said = [worker.communicate(timeout=150)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert [worker.returncode for worker in workers] == [0, 0]
    shares = [float(text.splitlines()[-1]) for text in said]
    assert sum(shares) == MESSAGES
    assert min(shares) > 0, "both worked"
    assert len(receiver.posts) == len({post.key for post in receiver.posts}) == MESSAGES
    assert {post.event["id"] for post in receiver.posts} == {quote.id for quote in quotes}
