"""The office opens late: the calculator needs none of it, and nothing must be configured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.main import ROOT
from tests.strict_client import StrictClient
from tests.web.quote_form import office

Make = Callable[..., StrictClient]
HEAVY = ("sqlalchemy", "alembic", "psycopg", "aiosmtplib", "argon2", "limits", "stamina")


@pytest.mark.slow
def test_the_calculator_starts_without_database_and_mail() -> None:
    """Making the application imports no driver, no migrations, no mail and no password library."""
    program = (
        "import sys; from app.main import create_app; create_app();"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_the_calculator_works_where_nothing_can_be_stored(make_client: Make) -> None:
    """With a database that is down and a folder that cannot be made, sizing goes on."""
    client = make_client(
        data_dir=Path("/proc/nowhere"), database_url="postgresql://nobody@127.0.0.1:1/x"
    )
    assert client.get("/healthz").json() == {"status": "ok", "outbox": None}
    assert client.get("/api/v1/sizing?model=llama-3.3-70b&gpu=h200-nvl").status_code == 200


def test_health_shows_what_was_not_delivered(make_client: Make, tmp_path: Path) -> None:
    """What the delivery last saw is in the health check, without asking the database."""
    client = make_client(data_dir=tmp_path)
    office(client).metrics.outbox(waiting=3, dead=1)
    assert client.get("/healthz").json()["outbox"] == {"waiting": 3, "dead": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "channels"),
    [
        ({}, ("desk_mail", "customer_mail")),
        ({"environment": "production"}, ()),
        ({"environment": "production", "smtp_host": "mail"}, ("desk_mail", "customer_mail")),
        (
            {
                "environment": "production",
                "webhook_url": "https://x.example",
                "webhook_secret": "s",
            },
            ("webhook",),
        ),
    ],
)
def test_only_who_can_be_told_is_to_be_told(
    make_client: Make, tmp_path: Path, changes: dict[str, object], channels: tuple[str, ...]
) -> None:
    """Mails are printed in development and need a server in production; a webhook needs both."""
    found = office(make_client(data_dir=tmp_path, **changes))
    assert found.channels == channels
    assert set(found.senders()) == set(channels)
