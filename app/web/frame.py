"""How an embedding site colours the frame: `theme` and `accent` in the address, checked."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request

from app.web.locale import Place

MIN_CONTRAST: Final = 4.5
# The surfaces of static/css/app.css that accent text stands on, and the ink on an accent button.
LIGHT: Final = (("#fcfcfb", "#ffffff"), "#ffffff")
DARK: Final = (("#131518", "#1a1d21"), "#0c1422")
# Which of them a theme shows.
SCHEMES: Final = {"light": (LIGHT,), "dark": (DARK,), "auto": (LIGHT, DARK)}
_ACCENT: Final = re.compile(r"#?([0-9a-fA-F]{6})")


def frame_pairs(request: Request, place: Place) -> dict[str, str]:
    """Return theme and accent of an embedded page, to be kept on every link in it."""
    if not place.embedded:
        return {}
    given = request.query_params
    kept = {}
    if given.get("theme") in SCHEMES:
        kept["theme"] = given["theme"]
    if read_accent(given.get("accent", "")) is not None:
        kept["accent"] = given["accent"]
    return kept


def theme_address(request: Request, place: Place) -> str:
    """Return the address of the frame's own style sheet; "" where it would say nothing."""
    pairs = frame_pairs(request, place)
    return f"/theme.css?{urlencode(pairs)}" if pairs else ""


def read_accent(text: str) -> str | None:
    """Return an accent as `#rrggbb` in small letters; None for anything else."""
    found = _ACCENT.fullmatch(text)
    return f"#{found[1].lower()}" if found else None


def theme_css(theme: str, accent: str | None) -> str:
    """Write the style sheet of a frame. An accent counts where it can be read.

    A theme that the host page names is the host's own, so its background shines through. In each
    colour scheme the accent replaces ours only if text in it has a contrast of 4.5:1 on our
    surfaces, and the text on a button in it has too.
    """
    rules = []
    if theme in {"light", "dark"}:
        rules.append(f":root {{ color-scheme: {theme}; background: transparent; }}")
    if accent is not None:
        light, dark = readable(accent, LIGHT), readable(accent, DARK)
        if light or dark:
            rules.append(_accent_rule(accent if light else "", accent if dark else ""))
    return "\n".join(["@layer components {", *rules, "}", ""])


def _accent_rule(light: str, dark: str) -> str:
    own_light, own_dark = "#1b54c0", "#8fb4ff"
    return f":root {{ --accent: light-dark({light or own_light}, {dark or own_dark}); }}"


def readable(accent: str, scheme: tuple[tuple[str, ...], str]) -> bool:
    """Whether text in this colour, and text on a button of it, can be read in a colour scheme."""
    surfaces, on_accent = scheme
    return all(contrast(accent, other) >= MIN_CONTRAST for other in (*surfaces, on_accent))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours `#rrggbb`, from 1 to 21. Source: WCAG 2.2."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 - WCAG's
        for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
