"""A tab of a browser at a served console, as tests of pages use it."""

from __future__ import annotations

from typing import Any

from mesh_tests.installed import PEERS, require
from mesh_tests.waiting import wait_until

SOON_S = 20.0
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>alert(1)</script>",
    "javascript:alert(1)",
    "\u202eright to left\u2066",
    "a\x00b\x1b[31m",
    "{{7*7}}${7*7}`'\"\\",
    "x" * 65_536,
)


class Tab:
    """A tab at the console. ``wrongs``: what the browser complained of, and requests to other places."""

    def __init__(self, browser: Any, url: str, cookie: Any = None, **options: Any) -> None:
        self._context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        if cookie is not None:
            self._context.add_cookies([cookie])
        self.page = self._context.new_page()
        self.url = url
        self.wrongs: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.wrongs.append(message.text))
        self.page.on("pageerror", lambda error: self.wrongs.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrongs.append(f"dialog: {dialog.message}"))
        self._context.on("request", lambda request: self._on_request(request.url))

    def _on_request(self, url: str) -> None:
        self.requests.append(url)
        if not url.startswith(f"{self.url}/"):
            self.wrongs.append(f"request: {url}")

    def open(self, view: str) -> Tab:
        self.page.goto(self.url + view)
        self.wait("!document.querySelector('[aria-busy=true]') && document.querySelector('#curl')?.textContent")
        self.wait("![...document.querySelectorAll('.summary')].some(it => it.textContent.startsWith('Reading'))")
        return self

    def wait(self, condition: str) -> None:
        wait_until(lambda: self._holds(condition), SOON_S, condition)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.page.evaluate(condition))
        except Exception as error:
            # A page that is left takes its scripts along, and so the question.
            if "Execution context was destroyed" not in str(error):
                raise
            return False

    def rows(self, column: int = 0) -> list[str]:
        """Return the texts of a column; a row of another table may have fewer."""
        found: list[str] = self.page.evaluate(
            "column => [...document.querySelectorAll('tbody tr')].map(row => row.cells[column]?.textContent ?? '')",
            column,
        )
        return found

    @property
    def href(self) -> str:
        """The URL that the page has now; playwright hears of a change that a script made somewhat later."""
        return str(self.page.evaluate("location.href"))

    def text(self, selector: str) -> str:
        return str(self.page.evaluate("it => document.querySelector(it)?.textContent ?? ''", selector))

    def axe(self) -> list[tuple[str, Any, Any]]:
        """Return what axe-core finds wrong: rule, element, and what was expected."""
        axe = PEERS / "axe" / "node_modules" / "axe-core" / "axe.min.js"
        require(axe.exists(), "axe-core")
        self.page.evaluate(axe.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
        return [
            (each["id"], node["target"], node["any"] and node["any"][0]["message"])
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def close(self) -> None:
        self._context.close()
