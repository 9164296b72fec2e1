"""Exports for the desk: a table for a spreadsheet and everything as JSON. Never stored here."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Final

from app.quotes.figures import figures_of
from app.quotes.quote import Quote, as_json

# a spreadsheet would run a cell that starts like this
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
COLUMNS: Final = (
    "reference", "created_at", "status", "language", "email", "name", "company", "phone", "country",
    "quantity", "wished_date", "message", "marketing_at", "model", "checkpoint", "gpu", "cards",
    "max_model_len", "vllm_version", "requests", "planned_requests", "expected_low",
    "expected_likely", "expected_high", "permalink",
)  # fmt: skip


def as_csv(quotes: Iterable[Quote]) -> str:
    """Write quotes as a table with a header, UTF-8 with a mark that spreadsheets look for."""
    buffer = io.StringIO(newline="")
    buffer.write("\N{BYTE ORDER MARK}")
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for quote in quotes:
        cells = _cells(quote)
        writer.writerow([_harmless(cells[column]) for column in COLUMNS])
    return buffer.getvalue()


def as_json_text(quotes: Iterable[Quote]) -> str:
    """Write quotes as a JSON list, each with its answers and whole result."""
    return json.dumps([as_json(quote) for quote in quotes], ensure_ascii=False, indent=2)


def _cells(quote: Quote) -> dict[str, object]:
    contact, figures = quote.contact, figures_of(quote.sizing.result)
    low, likely, high = figures.expected or (None, None, None)
    return {
        "reference": quote.reference,
        "created_at": quote.created_at.isoformat(timespec="seconds"),
        "status": quote.status,
        "language": quote.language,
        "email": contact.email,
        "name": contact.name,
        "company": contact.company,
        "phone": contact.phone,
        "country": contact.country,
        "quantity": contact.quantity,
        "wished_date": contact.wished_date,
        "message": contact.message,
        "marketing_at": quote.marketing_at.isoformat() if quote.marketing_at else None,
        "model": figures.model,
        "checkpoint": figures.checkpoint,
        "gpu": figures.gpu,
        "cards": figures.cards,
        "max_model_len": figures.max_model_len,
        "vllm_version": figures.vllm_version,
        "requests": figures.requests,
        "planned_requests": figures.planned_requests,
        "expected_low": low,
        "expected_likely": likely,
        "expected_high": high,
        "permalink": quote.sizing.permalink,
    }


def _harmless(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
