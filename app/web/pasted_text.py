"""Pasted text and dropped files of a form, read in memory: nothing pasted ever lies on a disk."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import Request

from app.readings.log_text import decode
from app.web.security import MIB

MAX_FIELDS: Final = 20
_LARGEST: Final = 8 * MIB
_KEPT: Final = "\t\n\r"
# Removed: what a reader of logs drops anyway. Shown as what they are: control characters, among
# them the escape of colours. Replaced: what turns the direction of a line around, or is no
# character at all.
_REMOVED: Final = (0x00, *range(0x200B, 0x2010), 0x2060, 0xFEFF)
_REPLACED: Final = (
    *range(0x80, 0xA0), 0x61C, *range(0x2028, 0x202F), *range(0x2061, 0x2070),
    *range(0xD800, 0xE000), *range(0xFDD0, 0xFDF0), *range(0xFFF9, 0xFFFC),
    *(plane << 16 | last for plane in range(17) for last in (0xFFFE, 0xFFFF)),
)  # fmt: skip
_VISIBLE: Final[dict[int, str | None]] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT},
    0x7F: "\u2421",
    **dict.fromkeys(_REPLACED, "\ufffd"),
    0x9B: "\u241b[",
    **dict.fromkeys(_REMOVED),
}


class _InMemory(MultiPartParser):
    """Starlette's parser without its temporary files: the size of a body is limited anyway."""

    spool_max_size = _LARGEST


async def read_texts(request: Request) -> dict[str, str]:
    """Return the fields of a form as text; a file that was chosen replaces its field.

    A file in `log_file` counts as `log`. Raises HTTPException 400 for a body that is no form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    parser: FormParser | MultiPartParser
    if kind == "application/x-www-form-urlencoded":
        parser = FormParser(
            request.headers, request.stream(), max_fields=MAX_FIELDS, max_part_size=_LARGEST
        )
    elif kind == "multipart/form-data":
        parser = _InMemory(
            request.headers,
            request.stream(),
            max_files=2,
            max_fields=MAX_FIELDS,
            max_part_size=_LARGEST,
        )
    else:
        raise HTTPException(400)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise HTTPException(400) from error
    texts: dict[str, str] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            data = await value.read()
            await value.close()
            if data.strip():
                texts[name.removesuffix("_file")] = made_visible(decode(data))
        else:
            texts.setdefault(name, made_visible(value))
    return texts


def made_visible(text: str) -> str:
    """Show or replace characters that a page must not hold or that hide what is there."""
    return text.translate(_VISIBLE)
