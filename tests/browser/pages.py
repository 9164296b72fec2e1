"""Page objects: what a person does on a page, in the words of the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Locator, Page, expect

LLAMA: Final = {
    "model": "llama-3.3-70b",
    "checkpoint": "nvidia/Llama-3.3-70B-Instruct-FP8",
    "gpu": "rtx-pro-6000-server",
    "max_model_len": "8192",
}
WORKBENCH: Final = {"de": "/de/rechner", "en": "/en/workbench"}
RESULT: Final = {"de": "/de/auslegung/ergebnis", "en": "/en/sizing/result"}
GUIDED: Final = {
    "de": ("modell", "praezision", "karten", "aufteilung", "kontext", "ergebnis", "pruefen"),
    "en": ("model", "precision", "gpu", "layout", "context", "result", "check"),
}
GUIDED_ROOT: Final = {"de": "/de/auslegung", "en": "/en/sizing"}


def address(path: str, answers: Mapping[str, str]) -> str:
    """Return a path with answers in its query."""
    return f"{path}?{urlencode(answers)}"


class Result:
    """The result block, on whichever page it stands."""

    def __init__(self, page: Page) -> None:
        """Look at the result of a page."""
        self.page = page
        self.block: Locator = page.locator("#result")

    @property
    def sentence(self) -> str:
        """The verdict, on one line."""
        return " ".join(self.block.locator("#verdict-sentence").inner_text().split())

    @property
    def planned(self) -> str:
        """The planning figure."""
        return self.block.locator(".key-figure dd").first.inner_text().strip()

    @property
    def log(self) -> str:
        """The log line or lines."""
        return self.block.locator("#figures .log").inner_text()

    def layout(self, name: str) -> Locator:
        """Return the row of a layout by its name."""
        return self.block.locator("#layouts tbody tr").filter(
            has=self.page.get_by_role("rowheader", name=re.compile(rf"^{re.escape(name)}$"))
        )


class Workbench:
    """Every input beside the live result."""

    def __init__(self, page: Page, language: str = "en") -> None:
        """Open nothing yet."""
        self.page = page
        self.path = WORKBENCH[language]
        self.result = Result(page)

    def open(self, answers: Mapping[str, str] | None = None) -> Workbench:
        """Go to the workbench, with answers or as it first shows itself."""
        self.page.goto(address(self.path, answers) if answers else self.path)
        return self

    def choose(self, field: str, value: str) -> None:
        """Choose from a list, and wait for the answer."""
        with self.page.expect_response(lambda answer: self.path in answer.url):
            self.page.locator(f"#{field}").focus()
            self.page.locator(f"#{field}").select_option(value)
        self.settle()

    def split(self, tensor_parallel_size: int) -> None:
        """Choose a tensor-parallel size, and wait for the answer."""
        with self.page.expect_response(lambda answer: self.path in answer.url):
            self.page.locator(
                f"input[name=tensor_parallel_size][value='{tensor_parallel_size}']"
            ).check()
        self.settle()

    def type(self, field: str, text: str) -> None:
        """Type into a field as a person does, and wait for the answer."""
        box = self.page.locator(f"#{field}")
        box.press("Control+a")
        with self.page.expect_response(lambda answer: self.path in answer.url):
            box.press_sequentially(text, delay=20)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is on its way any more."""
        expect(self.page.locator(".htmx-request")).to_have_count(0)

    @property
    def answers(self) -> dict[str, str]:
        """The answers in the address."""
        query = parse_qs(urlsplit(self.page.url).query)
        return {name: values[-1] for name, values in query.items()}


class Guided:
    """One question a page."""

    def __init__(self, page: Page, language: str = "en") -> None:
        """Open nothing yet."""
        self.page = page
        self.language = language
        self.result = Result(page)

    def path(self, step: int) -> str:
        """Return the path of a step, counted from 0."""
        return f"{GUIDED_ROOT[self.language]}/{GUIDED[self.language][step]}"

    def open(self) -> Guided:
        """Go to the first question."""
        self.page.goto(self.path(0))
        return self

    def go_on(self) -> None:
        """Press the button that leads on."""
        self.page.locator("button[name=go][value='1']").click()

    def expect_step(self, step: int) -> None:
        """Check that a step is shown."""
        expect(self.page).to_have_url(re.compile(rf"{re.escape(self.path(step))}(\?|$)"))
