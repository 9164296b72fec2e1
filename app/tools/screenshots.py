"""Take a picture of every page in both languages, light and dark, phone, tablet and desktop.

    python -m app.tools.screenshots [PATH …]     into build/screenshots/

Without a path, every page of the route list that has no parameter in its path, with the example
of the workbench as its case. Look at them: tests see what is in a page, not how it looks.
"""

import os
import sys
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlencode

from fastapi.routing import APIRoute
from playwright.sync_api import Browser, sync_playwright

from app.main import ROOT, ROUTERS
from app.tools.bench import HOST, server
from app.web.routes.result import EXAMPLE

FOLDER: Final = ROOT / "build" / "screenshots"
CHROMIUM: Final = os.environ.get("SIZING_TEST_CHROMIUM", "/usr/bin/chromium")
ARGUMENTS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SIZES: Final = {"phone": (390, 844), "tablet": (768, 1024), "desktop": (1280, 800)}
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


def pages() -> list[str]:
    """Return the path of every page, embedded ones left out."""
    case = urlencode(EXAMPLE)
    return sorted(
        f"{route.path}?{case}"
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        and route.name.endswith((":de", ":en"))
        and "GET" in (route.methods or ())
        and "{" not in route.path
    )


def shoot(browser: Browser, address: str, path: str) -> list[Path]:
    """Write one picture per size and theme; return the files."""
    written = []
    for size, (width, height) in SIZES.items():
        for theme in THEMES:
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme
            )
            page = context.new_page()
            page.goto(address + path)
            name = path.partition("?")[0].strip("/").replace("/", "-") or "start"
            file = FOLDER / f"{name}-{size}-{theme}.png"
            page.screenshot(path=file, full_page=True)
            context.close()
            written.append(file)
    return written


def main(paths: list[str]) -> None:
    """Serve the application, take the pictures, print where they are."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with server() as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        for path in paths or pages():
            for file in shoot(browser, f"http://{HOST}:{port}", path):
                print(file.relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
