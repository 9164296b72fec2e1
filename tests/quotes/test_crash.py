"""The service is killed again and again while people send: nothing acknowledged is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from app.main import ROOT
from app.quotes.outbox import Outbox
from app.quotes.repository import Repository
from app.quotes.token import Signer
from app.storage.engine import Storage
from tests.quotes.drafts import ANSWERS
from tests.quotes.peers import MailServer, Receiver, free_port

CLIENTS = 8
KEY = "crash-test-key-of-32-characters-or-more"
FORM = f"/en/quote?{urlencode(ANSWERS)}"
TOKEN = re.compile(r'name="form_token" value="([^"]+)"')
START_SECONDS = 100
HURRY = (httpx.TransportError, httpx.RemoteProtocolError)


@dataclass
class Service:
    """The service as a process of its own, for its tormentor."""

    settings: dict[str, str]
    log: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [
            sys.executable, "-m", "uvicorn", "--factory", "tests.quotes.serving:create",
            "--port", str(self.port), "--no-access-log",
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own words
                command, cwd=ROOT, env={**os.environ, **self.settings}, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/healthz").status_code == 200:
                    return
            except HURRY:
                time.sleep(0.05)
        pytest.fail(f"the service did not start:\n{self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"


class Crowd:
    """People who send requests and press the button again until they see a confirmation."""

    def __init__(self, service: Service) -> None:
        """Remember whom to bother."""
        self.service = service
        self.acknowledged: dict[str, str] = {}
        self._signer = Signer([KEY])
        self._lock = threading.Lock()

    def send(self, number: int) -> None:
        """Send one request with one form, for as long as it takes."""
        email = f"person{number}@example.com"
        form = self._patiently("GET", {})
        token = TOKEN.search(form.text)
        assert token is not None
        fields = {"email": email, "name": f"Person {number}", "form_token": token[1]}
        answer = self._patiently("POST", fields)
        assert answer.status_code == 303, answer.text
        confirmation = httpx.URL(answer.headers["location"]).params["token"]
        reference = self._signer.read_confirmation(confirmation).reference
        with self._lock:
            self.acknowledged[email] = reference

    def _patiently(self, method: str, fields: dict[str, str]) -> httpx.Response:
        while True:
            try:
                answer = httpx.request(method, self.service.url + FORM, data=fields, timeout=30)
            except HURRY:
                time.sleep(0.1)
                continue
            if answer.status_code < 500:
                return answer
            time.sleep(0.1)


def torment(service: Service, *, quotes: int, kills: int) -> Crowd:
    """Let the crowd send while the service is killed at even distances."""
    crowd = Crowd(service)
    service.start()
    with ThreadPoolExecutor(CLIENTS) as pool:
        sending = [pool.submit(crowd.send, number) for number in range(quotes)]
        for kill in range(1, kills + 1):
            _wait_until(
                lambda: len(crowd.acknowledged) >= kill * quotes // (kills + 1),  # noqa: B023
                "acknowledgements stopped",
            )
            service.kill()
            service.start()
        for each in sending:
            each.result(timeout=120)
    return crowd


def _wait_until(condition: object, complaint: str, seconds: float = 300) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(complaint)
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("quotes", "kills"),
    [
        pytest.param(24, 2, marks=[pytest.mark.slow, pytest.mark.timeout(180)]),
        pytest.param(200, 20, marks=[pytest.mark.deep, pytest.mark.timeout(2_400)]),
    ],
)
def test_nothing_acknowledged_is_lost_or_doubled(
    database_url: str,
    tmp_path: Path,
    mail_server: MailServer,
    receiver: Receiver,
    quotes: int,
    kills: int,
) -> None:
    """What was acknowledged is stored once under its number, and told to all under one key."""
    service = Service(
        {
            "SIZING_DATABASE_URL": database_url,
            "SIZING_DATA_DIR": str(tmp_path),
            "SIZING_SECRET_KEYS": KEY,
            "SIZING_QUOTE_MIN_SECONDS": "0",
            "SIZING_QUOTE_RATE": "100000/hour",
            "SIZING_RETRY_SECONDS": "0.2",
            "SIZING_SMTP_HOST": "127.0.0.1",
            "SIZING_SMTP_PORT": str(mail_server.port),
            "SIZING_SMTP_TRANSPORT": "plain",
            "SIZING_WEBHOOK_URL": receiver.url,
            "SIZING_WEBHOOK_SECRET": "secret",
            "SIZING_WEBHOOK_PRIVATE": "true",
        },
        tmp_path / "service.log",
    )
    storage = Storage(database_url)
    outbox = Outbox(storage)
    try:
        crowd = torment(service, quotes=quotes, kills=kills)
        _wait_until(lambda: outbox.load().waiting == 0, "not everything was delivered")
    finally:
        service.kill()
    assert len(crowd.acknowledged) == quotes
    stored = Repository(storage).everything()
    storage.close()
    assert len(stored) == quotes, "nobody is stored twice"
    assert {quote.contact.email: quote.reference for quote in stored} == crowd.acknowledged
    _check_deliveries(crowd, mail_server, receiver, {quote.id for quote in stored})
    log = (tmp_path / "service.log").read_text()
    assert "@example.com" not in log, "no log line names a person"
    assert "Traceback" not in log


def _check_deliveries(
    crowd: Crowd, mail_server: MailServer, receiver: Receiver, ids: set[str]
) -> None:
    """Somebody who drops what has a known key has each message exactly once."""
    count = len(crowd.acknowledged)
    mails = {mail["Message-ID"]: str(mail["To"]) for mail in mail_server.mails}
    told = Counter(mails.values())
    assert told.pop("sales@example.com") == count
    assert set(told.values()) == {1}
    assert len(told) == count
    events = {post.key: post.event["id"] for post in receiver.posts}
    assert Counter(events.values()) == Counter(ids)
