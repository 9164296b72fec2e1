"""Translations: extract from the templates, update, compile, and check that German is whole.

    python -m app.tools.translations update    templates -> messages.pot -> messages.po -> .mo
    python -m app.tools.translations compile   messages.po -> messages.mo, if older
    python -m app.tools.translations check     the gate: says what is wrong, exits with 1

English is written in the templates; German in app/i18n/de/LC_MESSAGES/messages.po.
"""

import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.frontend import parse_mapping_cfg
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "app" / "i18n"
TEMPLATE: Final = FOLDER / "messages.pot"
GERMAN: Final = FOLDER / "de" / "LC_MESSAGES" / "messages.po"
PLACEHOLDER: Final = re.compile(r"%\((\w+)\)[sd]|%%")
SHOWN: Final = 12
# a fixed date keeps unchanged catalogues unchanged
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def extract(root: Path = ROOT) -> Catalog:
    """Return every message of the templates below a folder."""
    with (FOLDER / "babel.cfg").open(encoding="utf-8") as config:
        methods, options = parse_mapping_cfg(config)  # type: ignore[no-untyped-call]
    catalogue = _empty()
    found = extract_from_dir(
        root / "templates",
        [(pattern.removeprefix("templates/"), method) for pattern, method in methods],
        {pattern.removeprefix("templates/"): value for pattern, value in options.items()},
        keywords=DEFAULT_KEYWORDS,
        comment_tags=("Translators:",),
        strip_comment_tags=True,
    )
    for _file, _line, message, comments, context in found:
        catalogue.add(message, auto_comments=comments, context=context)
    return catalogue


def _empty(locale: str | None = None) -> Catalog:
    return Catalog(
        locale=locale,
        project="vllm-sizing",
        version="1",
        copyright_holder="vllm-sizing",
        msgid_bugs_address="see SECURITY.md",
        creation_date=EPOCH,
        revision_date=EPOCH,
        last_translator="vllm-sizing",
        language_team="vllm-sizing",
        header_comment="# Translations of vllm-sizing.",
        fuzzy=False,
    )


def as_text(catalogue: Catalog) -> str:
    """Return a catalogue as the text of its file."""
    buffer = io.BytesIO()
    write_po(buffer, catalogue, width=100, no_location=True, sort_output=True, ignore_obsolete=True)
    return buffer.getvalue().decode()


def read(file: Path, locale: str | None = None) -> Catalog:
    """Return the catalogue in a file; an empty one if there is no file."""
    if not file.exists():
        return _empty(locale)
    with file.open("rb") as stream:
        return read_po(stream, locale=locale, abort_invalid=True)


def update() -> None:
    """Write messages.pot from the templates, carry new messages into German, compile."""
    messages = extract()
    TEMPLATE.write_text(as_text(messages), encoding="utf-8")
    german = read(GERMAN, "de")
    german.update(messages, no_fuzzy_matching=True, update_creation_date=False)
    GERMAN.write_text(as_text(german), encoding="utf-8")
    compile_if_older()


def compile_if_older(source: Path = GERMAN) -> bool:
    """Write the .mo file beside a .po file when it is missing or older; True if written."""
    target = source.with_suffix(".mo")
    if target.exists() and target.stat().st_mtime_ns >= source.stat().st_mtime_ns:
        return False
    catalogue = read(source, "de")
    temporary = target.with_suffix(".mo.new")
    with temporary.open("wb") as stream:
        write_mo(stream, catalogue)
    temporary.replace(target)
    return True


def problems(messages: Catalog, template: Catalog, translated: Catalog) -> Iterator[str]:
    """Say what keeps a translation from being whole, one sentence each.

    Args:
        messages: what the templates contain now.
        template: messages.pot.
        translated: messages.po.
    """
    now, then = _keys(messages), _keys(template)
    for key in sorted(now ^ then):
        yield f"messages.pot is not up to date at {key[1]!r}: run `make translations`"
    for key in sorted(_keys(translated) - now):
        yield f"{key[1]!r} is translated but no template uses it: run `make translations`"
    for key in sorted(now - _keys(translated)):
        yield f"{key[1]!r} is not in messages.po: run `make translations`"
    for message in translated:
        if message.id and (message.context or "", _first(message.id)) in now:
            yield from _problems_of(message)


def _problems_of(message: Message) -> Iterator[str]:
    name = repr(_first(message.id))
    if message.fuzzy:
        yield f"{name} is marked fuzzy: check it and remove the mark"
    strings = _all(message.string or "")
    if not all(strings):
        yield f"{name} has no translation"
        return
    allowed = {frozenset(_placeholders(text).items()) for text in _all(message.id)}
    for text in strings:
        if frozenset(_placeholders(text).items()) not in allowed:
            yield f"{name} has other placeholders than its translation {text!r}"
    if _first(message.id).strip() and any(text != text.strip() for text in strings):
        yield f"{name} has a translation that starts or ends with a space"


def _keys(catalogue: Iterable[Message]) -> set[tuple[str, str]]:
    return {(message.context or "", _first(message.id)) for message in catalogue if message.id}


def _all(value: str | tuple[str, ...] | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _first(value: str | tuple[str, ...] | list[str]) -> str:
    return _all(value)[0]


def _placeholders(text: str) -> Counter[str]:
    return Counter(match.group(0) for match in PLACEHOLDER.finditer(text))


def check() -> list[str]:
    """Return what the gate finds in the project's own files."""
    return list(problems(extract(), read(TEMPLATE), read(GERMAN, "de")))


def main(arguments: list[str]) -> int:
    """Run one of the three commands; return the exit status."""
    match arguments:
        case ["update"]:
            update()
        case ["compile"]:
            compile_if_older()
        case ["check"]:
            found = check()
            print("\n".join(found[:SHOWN]) or "Translations are whole.")
            if len(found) > SHOWN:
                print(f"… and {len(found) - SHOWN} more of this kind")
            return 1 if found else 0
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
