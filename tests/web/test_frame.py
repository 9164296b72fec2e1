"""The colours of an embedding site: what is taken, what is refused, and that tokens agree."""

from __future__ import annotations

import re

import pytest

from app.main import ROOT
from app.web import frame
from tests.strict_client import StrictClient

SHEET = (ROOT / "static" / "css" / "app.css").read_text(encoding="utf-8")


def token(name: str) -> tuple[str, str]:
    """Return the light and the dark value of a token of the style sheet, six digits each."""
    found = re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\)", SHEET)
    assert found is not None
    light, dark = found.groups()
    return _six(light), _six(dark)


def _six(colour: str) -> str:
    return colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])


def test_surfaces_are_those_of_the_style_sheet() -> None:
    """The colours that an accent is measured against are the ones on the page."""
    paper, surface, on_accent = token("paper"), token("surface"), token("on-accent")
    assert ((paper[0], surface[0]), on_accent[0]) == frame.LIGHT
    assert ((paper[1], surface[1]), on_accent[1]) == frame.DARK
    light, dark = token("accent")
    assert f"light-dark({light}, #8fd0ff)" in frame.theme_css("auto", "#8fd0ff")
    assert f"light-dark(#0a5c7a, {dark})" in frame.theme_css("auto", "#0a5c7a")


@pytest.mark.parametrize("name", ["ink", "muted", "accent", "fits", "tight", "no"])
def test_our_own_text_colours_can_be_read(name: str) -> None:
    """Every colour for text has a contrast of 4.5:1 on every surface it may stand on."""
    for scheme in (0, 1):
        for surface in ("paper", "surface", "sunken"):
            assert frame.contrast(token(name)[scheme], token(surface)[scheme]) >= 4.5


@pytest.mark.parametrize(
    "name",
    [
        "weights", "peak-activation", "persistent-buffers", "non-torch", "cudagraph-estimate",
        "kv-cache", "field",
    ],
)  # fmt: skip
def test_our_own_marks_can_be_seen(name: str) -> None:
    """Every hue of the memory bar, and the border of a field, has a contrast of 3:1."""
    for scheme in (0, 1):
        assert frame.contrast(token(name)[scheme], token("paper")[scheme]) >= 3


def test_contrast_is_that_of_the_standard() -> None:
    """Black on white is 21:1, and the order of the colours plays no part."""
    assert frame.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert frame.contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)
    assert frame.contrast("#ffffff", "#777777") == frame.contrast("#777777", "#ffffff")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("accent=ffff00&theme=light", "contrast"),
        ("accent=00f", "hexadecimal"),
        ("accent=0a5c7g", "hexadecimal"),
        ("accent=red", "hexadecimal"),
        ("theme=blue", "light, dark or auto"),
        ("theme=light&accent=}body{", "hexadecimal"),
    ],
)
def test_unusable_colours_are_refused(client: StrictClient, query: str, reason: str) -> None:
    """What is no colour, cannot be read, or is no theme gets a plain 400 that says why."""
    answer = client.get(f"/theme.css?{query}")
    assert answer.status_code == 400
    assert reason in answer.text
    assert answer.headers["content-type"].startswith("text/plain")


def test_usable_colours_become_a_small_sheet(client: StrictClient) -> None:
    """A good accent and theme give a style sheet that may be kept."""
    answer = client.get("/theme.css?accent=0a5c7a&theme=light")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/css")
    assert "max-age" in answer.headers["cache-control"]
    assert "--accent: light-dark(#0a5c7a" in answer.text
    assert "color-scheme: light" in answer.text


def test_nothing_asked_changes_nothing(client: StrictClient) -> None:
    """Without theme and accent the sheet is empty."""
    assert "--" not in client.get("/theme.css").text
