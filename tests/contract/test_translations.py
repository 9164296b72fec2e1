"""German is whole: nothing untranslated, doubtful, unused or differently filled in."""

from babel.messages.catalog import Catalog

from app.tools.translations import check, extract, problems


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
