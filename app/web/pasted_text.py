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


class _InMemory(MultiPartParser):
    """Starlette's parser without its temporary files: the size of a body is limited anyway."""

    spool_max_size = _LARGEST


async def read_texts(request: Request) -> dict[str, str]:
    """Return the fields of a form as text; a file that was chosen replaces its field.

    A file in `log_file` counts as `log`. Raises HTTPException 400 for a body that is no form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        plain = await FormParser(request.headers, request.stream()).parse()
        return {name: text for name, text in plain.items() if isinstance(text, str)}
    if kind != "multipart/form-data":
        raise HTTPException(400)
    parser = _InMemory(
        request.headers,
        request.stream(),
        max_files=2,
        max_fields=MAX_FIELDS,
        max_part_size=_LARGEST,
    )
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
                texts[name.removesuffix("_file")] = decode(data)
        else:
            texts.setdefault(name, value)
    return texts
