"""Real receivers that can be told to misbehave: a mail server and an HTTP server on loopback."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
import random
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

Mood = Literal["well", "slow", "refuse", "die", "die after taking it"]
SLOW_SECONDS = 0.4


def free_port() -> int:
    """Return a port nobody listens on.

    Below the range that outgoing connections are given, or one of them might take it while the
    server is down, even to itself.
    """
    while True:
        port = random.randint(20_000, 32_000)  # noqa: S311 - any will do
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


class MailServer:
    """An SMTP peer. `mails` is what it took, in order, also what was sent twice."""

    def __init__(self) -> None:
        """Choose a port; nothing listens yet."""
        self.port = free_port()
        self.mood: Mood = "well"
        self.mails: list[EmailMessage] = []
        self._controller: Controller | None = None

    def start(self) -> None:
        """Listen."""
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()

    def stop(self) -> None:
        """Be down."""
        if self._controller is not None:
            self._controller.stop()
            self._controller = None

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self,
        _server: SMTP,
        _session: Session,
        envelope: Envelope,
        address: str,
        _options: list[str],
    ) -> str:
        """Take a receiver, or refuse."""
        if self.mood == "refuse":
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Take a mail in the mood of the moment."""
        if self.mood == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        if self.mood == "die":
            server.transport.abort()  # type: ignore[union-attr]
            return "421 dying"
        content = envelope.content
        assert isinstance(content, bytes)
        taken = email.message_from_bytes(content, policy=email.policy.default)
        assert isinstance(taken, EmailMessage)
        self.mails.append(taken)
        if self.mood == "die after taking it":
            server.transport.abort()  # type: ignore[union-attr]
        return "250 OK"


@dataclass(frozen=True)
class Post:
    """One webhook as it arrived."""

    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        """Its idempotency key."""
        return self.headers["Idempotency-Key"]

    @property
    def event(self) -> dict[str, Any]:
        """Its content."""
        content: dict[str, Any] = json.loads(self.body)
        return content


class _Server(ThreadingHTTPServer):
    """Lets many wait in line, where the standard five would be turned away under load."""

    request_queue_size = 128


@dataclass
class Receiver:
    """An HTTP peer. `posts` is what it took, in order, also what was sent twice."""

    port: int = field(default_factory=free_port)
    mood: Mood = "well"
    posts: list[Post] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/hook"

    def start(self) -> None:
        """Listen."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            """Answers one post."""

            def do_POST(self) -> None:
                """Take a post in the mood of the moment."""
                receiver._take(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = _Server(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Be down."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers["Content-Length"])
        if self.mood == "die":
            handler.rfile.read(length // 2)
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        body = handler.rfile.read(length)
        if len(body) < length:
            return  # the sender was killed in the middle; nothing was taken
        if self.mood == "slow":
            time.sleep(SLOW_SECONDS)
        if self.mood == "refuse":
            handler.send_error(503)
            return
        self.posts.append(Post(dict(handler.headers.items()), body))
        if self.mood == "die after taking it":
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.send_response(204)
        handler.end_headers()
