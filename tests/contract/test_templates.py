"""What every template must keep: it compiles, it is translated, it carries no inline code."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.main import ROOT
from app.web.locale import LANGUAGES, Language
from app.web.render import make_environment

TEMPLATES = ROOT / "templates"
FILES = sorted(path for path in TEMPLATES.rglob("*") if path.is_file())

INLINE_CODE = {
    "inline script": re.compile(r"<script(?![^>]*\ssrc=)", re.IGNORECASE),
    "inline style element": re.compile(r"<style", re.IGNORECASE),
    "style attribute": re.compile(r"\sstyle\s*=", re.IGNORECASE),
    "event handler": re.compile(r"\son[a-z]+\s*=", re.IGNORECASE),
    "hx-on": re.compile(r"hx-on", re.IGNORECASE),
    "js: value": re.compile(r"\bj(?:ava)?s(?:cript)?:", re.IGNORECASE),
    "trigger filter": re.compile(r"hx-trigger\s*=\s*(?:\"[^\"]*\[|'[^']*\[)", re.IGNORECASE),
}

TRANSLATED = re.compile(r"{%-?\s*trans\b.*?{%-?\s*endtrans\s*-?%}", re.DOTALL)
JINJA = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}", re.DOTALL)
# a macro may return an attribute, a block a class (wrap--narrow): text to a parser, not to a person
ATTRIBUTE = re.compile(r"[\w-]+=\"[^\"]*\"|\b\w+--\w+\b")
WORD = re.compile(r"[^\W\d_]{2,}")
SPOKEN_ATTRIBUTES = {"alt", "aria-label", "placeholder", "title", "aria-roledescription"}
UNTRANSLATABLE = {"code", "kbd", "samp", "script", "style", "var"}
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# Names that are the same in both languages.
NAMES = {"vLLM", "GiB", "KiB", "DE", "EN", "Deutsch", "English", "TP", "PP", "DP", "KV", "JSON"}


class VisibleText(HTMLParser):
    """Collects the words a person would see or hear that no translation covers."""

    def __init__(self) -> None:
        """Start outside every element."""
        super().__init__()
        self.found: list[str] = []
        self._open: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note whether the element is exempt, and read its spoken attributes."""
        values = dict(attrs)
        if tag not in VOID:
            self._open.append(tag in UNTRANSLATABLE or values.get("translate") == "no")
        for name in SPOKEN_ATTRIBUTES & values.keys():
            self._collect(values[name] or "")

    def handle_endtag(self, tag: str) -> None:
        """Leave the element."""
        if self._open and tag not in VOID:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        """Collect text outside exempt elements."""
        if not any(self._open):
            self._collect(ATTRIBUTE.sub(" ", data))

    def _collect(self, text: str) -> None:
        self.found += [word for word in WORD.findall(text) if word not in NAMES]


def untranslated(source: str) -> list[str]:
    """Return the words of a template that stand outside {% trans %} and expressions."""
    text = JINJA.sub(" ", TRANSLATED.sub(" ", source))
    parser = VisibleText()
    parser.feed(text)
    parser.close()
    return parser.found


def inline_code(source: str) -> list[str]:
    """Return what a strict content security policy forbids in a template."""
    source = re.sub(r"{#.*?#}", "", source, flags=re.DOTALL)
    return [name for name, pattern in INLINE_CODE.items() if pattern.search(source)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TEMPLATES)))
def test_every_template_compiles(file: Path, language: Language) -> None:
    """Each template compiles in the environment of each language."""
    environment = make_environment(
        language, templates=TEMPLATES, translations=ROOT / "app" / "i18n", reload=False
    )
    environment.globals["asset"] = str
    template = environment.get_template(file.relative_to(TEMPLATES).as_posix())
    assert template.name == file.relative_to(TEMPLATES).as_posix()


# A mail has no style sheet and no policy; it carries its few styles on its elements.
MAILS = TEMPLATES / "email"
PAGES = [file for file in FILES if not file.is_relative_to(MAILS)]


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(TEMPLATES)))
def test_no_template_carries_inline_code(file: Path) -> None:
    """No template needs an exception from the content security policy."""
    assert inline_code(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", sorted(MAILS.rglob("*")), ids=lambda file: file.name)
def test_a_mail_carries_no_code(file: Path) -> None:
    """A mail may style its elements, and do nothing else."""
    assert set(inline_code(file.read_text(encoding="utf-8"))) <= {"style attribute"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TEMPLATES)))
def test_no_template_has_untranslated_words(file: Path) -> None:
    """Every word a person sees or hears is inside a translation."""
    assert untranslated(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("<script>alert(1)</script>", "inline script"),
        ("<style>p{}</style>", "inline style element"),
        ("<p style='color: red'>", "style attribute"),
        ('<a onclick="x()">', "event handler"),
        ('<a hx-on:click="x()">', "hx-on"),
        ("<a href='javascript:x()'>", "js: value"),
        ("<a hx-vals='js:{a: 1}'>", "js: value"),
        ('<input hx-trigger="keyup[ctrlKey]">', "trigger filter"),
    ],
)
def test_inline_code_is_found_where_it_is(source: str, name: str) -> None:
    """The check reports each kind of inline code, so its silence means something."""
    assert name in inline_code(source)


def test_a_good_template_has_no_inline_code() -> None:
    """A script with a source and htmx attributes pass the check."""
    good = (
        '<script src="{{ asset("js/a.js") }}" defer></script><form hx-get="/x" hx-trigger="input">'
    )
    assert inline_code(good) == []


@pytest.mark.parametrize(
    "source",
    [
        "<p>Hello</p>",
        '<img alt="A bar">',
        "{% trans %}good{% endtrans %} bad",
        "<p translate=no>vLLM</p> bad",
    ],
)
def test_untranslated_words_are_found_where_they_are(source: str) -> None:
    """The check reports text and spoken attributes outside a translation."""
    assert untranslated(source)


def test_translated_words_pass() -> None:
    """Translations, expressions, code and names are no untranslated words."""
    good = (
        "{% trans n=3 %}Three of {{ n }}{% endtrans %} {{ value }} <code>--max-model-len</code>"
        '<img alt="{% trans %}A bar{% endtrans %}"> 12 GiB {# a comment #}'
    )
    assert untranslated(good) == []
