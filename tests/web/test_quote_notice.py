"""Nobody changes what people agree to without giving it a new version."""

from __future__ import annotations

import hashlib

from fastapi import FastAPI

from app.quotes.notice import MARKETING_VERSION, NOTICE_VERSION
from app.web.locale import LANGUAGES

# (version, first digits of the SHA-256 of both languages): a changed text is a new line here
NOTICES = {"2026-11-29": "788bb2f92472"}
MARKETING = {"2026-11-29": "ae94ebfa120d"}


def _digest(app: FastAPI, call: str) -> str:
    texts = []
    for language in LANGUAGES:
        environment = app.state.renderer.environments[language]
        source = '{% from "quote/notice.html" import privacy_notice, marketing_text %}' + call
        texts.append(environment.from_string(source).render(vendor=app.state.catalogue.vendor))
    return hashlib.sha256("".join(" ".join(text.split()) for text in texts).encode()).hexdigest()[
        :12
    ]


def test_the_notice_is_the_one_its_version_names(app: FastAPI) -> None:
    """The text people read is the text that the stored version stands for."""
    assert _digest(app, "{{ privacy_notice(vendor, language, 180) }}") == NOTICES[NOTICE_VERSION]


def test_the_marketing_text_is_the_one_its_version_names(app: FastAPI) -> None:
    """The sentence beside the box is the one that a stored agreement stands for."""
    assert _digest(app, "{{ marketing_text(vendor) }}") == MARKETING[MARKETING_VERSION]
