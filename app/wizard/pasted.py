"""A pasted model configuration as one short value of a link: `spec=`.

Canonical JSON, compressed with zlib, written in base64url. Up to 4 kB; longer ones have no link.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Final

from app.wizard.readers import UnreadableError, canonical_json, read_object

MAX_SPEC_LENGTH: Final = 4096
MAX_JSON_LENGTH: Final = 262_144
PARTS: Final = ("hf_config", "hf_quant_config")


def encode(hf_config: str, hf_quant_config: str | None) -> str | None:
    """Write both objects (canonical JSON text) as one value; None where it exceeds 4 kB."""
    parts = {"hf_config": json.loads(hf_config)}
    if hf_quant_config is not None:
        parts["hf_quant_config"] = json.loads(hf_quant_config)
    packed = zlib.compress(canonical_json(parts).encode(), 9)
    text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return text if len(text) <= MAX_SPEC_LENGTH else None


def decode(text: str) -> dict[str, str]:
    """Read a value back into canonical JSON texts by input name.

    Never expands to more than 256 kB. Raises UnreadableError with the code `broken_spec`.
    """
    if len(text) > MAX_SPEC_LENGTH:
        raise UnreadableError("too_long", (("maximum", MAX_SPEC_LENGTH),))
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(packed, MAX_JSON_LENGTH)
        if not unpacker.eof or unpacker.unused_data:
            raise UnreadableError("broken_spec")
        parts = json.loads(read_object(plain.decode()))
    except (ValueError, binascii.Error, zlib.error):
        raise UnreadableError("broken_spec") from None
    if "hf_config" not in parts or not parts.keys() <= set(PARTS):
        raise UnreadableError("broken_spec")
    if not all(isinstance(part, dict) for part in parts.values()):
        raise UnreadableError("broken_spec")
    return {name: canonical_json(part) for name, part in parts.items()}
