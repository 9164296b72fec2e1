"""German is whole: nothing untranslated, doubtful, unused or differently filled in."""

import re
from typing import Final

import pytest
from babel.messages.catalog import Catalog

from app.tools.translations import GERMAN, check, extract, problems, read

# One word for one thing: what German says instead of each of these.
OTHER_WORDS: Final = {
    r"[Pp]rotokoll": "Log, Start-Log",
    r"(?<!-)Graphs\b": "Graphen, CUDA-Graphen",
    r"Köpfe": "Heads",
    r"Planungsregel": "Planregel",
    r"gleitend": "Sliding Window",
    r"\bRelease\b(?! Notes)": "Version",
    r"des (KV-)?Cache(?![\w-])": "des Caches",
}


def _told_otherwise(text: str) -> list[str]:
    return [pattern for pattern in OTHER_WORDS if re.search(pattern, text)]


def _catalogue(**messages: str) -> Catalog:
    catalogue = Catalog(locale="de")
    for name, text in messages.items():
        catalogue.add(name, text)
    return catalogue


def _complaints(now: Catalog, translated: Catalog) -> str:
    return "\n".join(problems(now, now, translated))


def test_the_gate_finds_nothing() -> None:
    """The project's own catalogue passes."""
    assert check() == []


def test_a_whole_catalogue_passes() -> None:
    """A catalogue with every message translated gives no complaint."""
    assert _complaints(_catalogue(one=""), _catalogue(one="eins")) == ""


def test_a_missing_translation_is_reported() -> None:
    """An empty translation and an absent message are reported."""
    assert "has no translation" in _complaints(_catalogue(one=""), _catalogue(one=""))
    assert "not in messages.po" in _complaints(_catalogue(one=""), _catalogue())


def test_an_unused_translation_is_reported() -> None:
    """A translation that no template uses is reported."""
    assert "no template uses" in _complaints(_catalogue(), _catalogue(one="eins"))


def test_a_fuzzy_translation_is_reported() -> None:
    """A translation marked as doubtful is reported."""
    translated = _catalogue()
    translated.add("one", "eins", flags=["fuzzy"])
    assert "fuzzy" in _complaints(_catalogue(one=""), translated)


def test_other_placeholders_are_reported() -> None:
    """A translation that fills in something else is reported."""
    now, translated = Catalog(), Catalog(locale="de")
    now.add("%(n)s cards")
    translated.add("%(n)s cards", "%(m)s Karten")
    assert "placeholders" in _complaints(now, translated)


def test_an_outdated_template_is_reported() -> None:
    """A message of the templates that is not in messages.pot is reported."""
    now = _catalogue(one="")
    assert "up to date" in "\n".join(problems(now, _catalogue(), _catalogue(one="eins")))


def test_extraction_reads_the_templates() -> None:
    """The extraction finds the messages of the error page, trimmed to one line."""
    assert "There is no page at this address" in extract()


def test_german_has_one_word_for_one_thing() -> None:
    """A log is a Log on every page, a release a Version, a head a Head."""
    texts = [
        text
        for message in read(GERMAN, "de")
        if message.id
        for text in ([message.string] if isinstance(message.string, str) else message.string or ())
    ]
    assert {text: words for text in texts if (words := _told_otherwise(text))} == {}


@pytest.mark.parametrize(
    "text", ["Ihr Protokoll", "CUDA Graphs", "8 KV-Köpfe", "das Release", "des KV-Cache"]
)
def test_another_word_is_noticed(text: str) -> None:
    """The list of words finds what it is made for."""
    assert _told_otherwise(text)
