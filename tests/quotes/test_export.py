"""Exports hold everything, and nothing that a spreadsheet would run."""

import csv
import io
import json
from datetime import timedelta

import pytest

from app.quotes.export import COLUMNS, as_csv, as_json_text
from tests.quotes.conftest import CREATED, Draft


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\N{BYTE ORDER MARK}"))))


def test_the_table_holds_every_quote(draft: Draft) -> None:
    """Each quote is a row with contact and figures; line breaks and quotes stay in their cell."""
    quotes = [
        draft(message='He said "12";\nthen left', quantity=2),
        draft(created_at=CREATED + timedelta(days=1)),
    ]
    first, second = _rows(as_csv(quotes))
    assert tuple(first) == COLUMNS
    assert first["message"] == 'He said "12";\nthen left'
    assert (first["requests"], first["model"]) == ("12", "Llama 3.3 70B Instruct")
    assert second["created_at"] == "2026-11-30T12:00:00+00:00"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_no_cell_is_a_formula(draft: Draft, start: str) -> None:
    """A text that a spreadsheet would run is marked as a text."""
    (row,) = _rows(as_csv([draft(name=f"{start}cmd|' /C calc'!A0")]))
    assert row["name"].startswith(f"'{start}")


def test_the_file_holds_the_whole_result(draft: Draft) -> None:
    """The JSON export has answers, link and every figure as they were frozen."""
    quote = draft()
    (exported,) = json.loads(as_json_text([quote]))
    assert exported["result"] == quote.sizing.result
    assert exported["answers"] == quote.sizing.answers
    assert exported["contact"]["email"] == "ann@example.com"
