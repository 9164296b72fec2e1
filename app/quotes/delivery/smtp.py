"""Who takes a mail: the configured mail server, or the console of a developer."""

from __future__ import annotations

import sys
from email.message import EmailMessage
from typing import Final

from app.quotes.delivery.channel import DeliveryError
from app.settings import Settings

TIMEOUT_SECONDS: Final = 20.0


class SmtpTransport:
    """Hands each mail over in a connection of its own."""

    def __init__(self, settings: Settings) -> None:
        """Remember the mail server."""
        self._settings = settings

    async def __call__(self, message: EmailMessage) -> None:
        """Send a mail. Raises DeliveryError with what kind of failure it was."""
        import aiosmtplib  # noqa: PLC0415 - only where mails are sent

        settings = self._settings
        password = settings.smtp_password
        try:
            await aiosmtplib.send(
                message,
                hostname=settings.smtp_host,
                port=settings.smtp_port,
                username=settings.smtp_username,
                password=password.get_secret_value() if password else None,
                use_tls=settings.smtp_transport == "tls",
                start_tls=settings.smtp_transport == "starttls",
                timeout=TIMEOUT_SECONDS,
            )
        except aiosmtplib.SMTPResponseException as error:
            raise DeliveryError(f"smtp_{error.code}") from None
        except aiosmtplib.SMTPRecipientsRefused as error:
            code = error.recipients[0].code if error.recipients else 0
            raise DeliveryError(f"smtp_{code}_recipient") from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise DeliveryError(type(error).__name__) from None


async def print_mail(message: EmailMessage) -> None:
    """Print a mail on a developer's console; it is not sent, and it is in no log."""
    body = message.get_body(("plain",))
    text = body.get_content() if body else ""
    headers = "\n".join(f"{name}: {message[name]}" for name in ("From", "To", "Subject"))
    rule = "-" * 78
    sys.stdout.write(
        f"\n{rule}\nThis mail is only printed; set SIZING_SMTP_HOST to send it.\n"
        f"{rule}\n{headers}\n\n{text}{rule}\n"
    )
    sys.stdout.flush()
