"""Debian's chromium, once for each file; a page that may not reach anything, and tells of all that went wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mesh.drills.page import page as render
from mesh.drills.report import DrillReport
from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.tabs import Tab
from mesh_tests.installed import require

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

Show = Callable[..., "Shown"]


class Shown:
    """A report in a tab. ``wrongs``: what the console, the scripts and the network told."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self._context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        self._context.set_offline(True)
        self.tab = self._context.new_page()
        self.wrongs: list[str] = []
        self.tab.on("console", lambda message: self.wrongs.append(message.text))
        self.tab.on("pageerror", lambda error: self.wrongs.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.wrongs.append(f"dialog: {dialog.message}"))
        self.tab.on("request", lambda request: self._on_request(request.url, file))
        self.tab.goto(file.as_uri())

    def _on_request(self, url: str, file: Path) -> None:
        if url != file.as_uri() and not url.startswith("data:"):
            self.wrongs.append(f"request: {url}")

    def close(self) -> None:
        self._context.close()


# Not for longer: while playwright is there, its loop runs in this thread, and no other test could have one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    require(CHROMIUM is not None, "a browser (Debian: chromium)")
    require(find_spec("playwright") is not None, "playwright", command="make setup")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Show]:
    """Opens a page, or that of a report of a drill; takes what a context of playwright takes."""
    opened: list[Shown] = []

    def open_page(report: DrillReport | str, **options: Any) -> Shown:
        file = tmp_path / f"report-{len(opened)}.html"
        file.write_text(report if isinstance(report, str) else render(report), "utf-8")
        opened.append(Shown(browser, file, **options))
        return opened[-1]

    yield open_page
    for each in opened:
        each.close()


@pytest.fixture
def own() -> Iterator[Callable[..., ServedConsole]]:
    """Makes consoles that a test changes."""
    made: list[ServedConsole] = []

    def make(**options: Any) -> ServedConsole:
        made.append(ServedConsole(**options))
        made[-1].change(lambda host: host.start_all())
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    opened: list[Tab] = []

    def open_tab(
        served: ServedConsole, view: str | None = "/", login: bool = True, user: str | None = None, **options: Any
    ) -> Tab:
        cookie = served.cookie(user) if login else None
        opened.append(Tab(browser, served.url, cookie, **options))
        return opened[-1] if view is None else opened[-1].open(view)

    yield open_tab
    for each in opened:
        each.close()
