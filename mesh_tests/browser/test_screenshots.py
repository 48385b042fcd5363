"""The pictures of the how-to about the console are of pages that exist, and are small.

``REWRITE=1 pytest mesh_tests/browser/test_screenshots.py`` takes them anew, for review.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh_tests.browser.faked_mesh import WritingConsoleHost, json_body, message
from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.small_png import small_png
from mesh_tests.browser.tabs import Tab
from mesh_tests.unit.mesh.watch.console_host import NOW_S
from recording.columns import RecordKind

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "how-to" / "images"
MAX_BYTES = 60_000
REWRITE = bool(os.environ.get("REWRITE"))
QUEUE = "/queue?node=b1&address=orders&subscriber="


def purge(shown: Tab) -> None:
    shown.page.click(".actions button:has-text('Purge what is shown'):enabled")
    shown.wait("document.querySelector('#confirm-count')")


def wait_for_message(shown: Tab) -> None:
    shown.wait("document.querySelector('pre.body')?.textContent")


def wait_for_rows(shown: Tab) -> None:
    shown.wait("document.querySelectorAll('tbody tr').length > 2")


def wait_for_troubles(shown: Tab) -> None:
    shown.wait("document.querySelectorAll('.troubles li').length > 1")


PICTURES: dict[str, tuple[str, Callable[[Tab], None], int]] = {
    "map": ("/", wait_for_troubles, 560),
    "queue": (f"{QUEUE}&open=2&select=2,3", wait_for_message, 760),
    "purge": (QUEUE, purge, 480),
    "events": ("/events", wait_for_rows, 330),
}


@pytest.fixture(scope="module")
def console() -> Iterator[ServedConsole]:
    served = ServedConsole()
    served.change(fill)
    served.mesh.queues["orders"] = [
        message(number, json_body('{"order": 4711, "lines": [{"article": "tea", "count": 2}]}'), bytes=214,
                properties={"region": "north" if number % 2 else "south"})
        for number in range(1, 7)
    ]  # fmt: skip
    yield served
    served.close()


def fill(host: WritingConsoleHost) -> None:
    host.start_all()
    host.connect("r1", 2, "alice", "web")
    host.connect("r1", 3, "bob", "shop")
    host.produce("r1", 1, 2, "rpc.tea")
    host.starve("r1", 1, "no_taker")
    host.add(
        "b1", RecordKind.QUEUE, queue=1, address="orders", depth_count=6, depth_bytes=1284, oldest_us=3_600_000_000
    )
    host.log("b1", "store_opened", "info", NOW_S - 900, queue_count=3, message_count=6, took_s=0.2)
    host.log("r1", "neighbor_down", at_s=NOW_S - 600, router="r2", reason="connection reset")
    host.log("r1", "neighbor_up", "info", NOW_S - 598, router="r2")
    host.log("r3", "attach_refused", at_s=NOW_S - 60, user="bob", address="rpc.tea",
             condition="amqp:unauthorized-access")  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_of_a_page_that_exists_and_small(
    name: str, console: ServedConsole, tab: Callable[..., Any]
) -> None:
    view, act, height = PICTURES[name]
    shown = tab(console, view, viewport={"width": 960, "height": height}, color_scheme="light")
    act(shown)
    assert shown.wrongs == []
    file = IMAGES / f"{name}.png"
    if REWRITE:
        IMAGES.mkdir(exist_ok=True)
        file.write_bytes(small_png(shown.page.screenshot()))
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < MAX_BYTES


def test_each_picture_of_the_documents_is_made_here() -> None:
    assert {file.stem for file in IMAGES.iterdir()} == set(PICTURES)
    text = (IMAGES.parent / "console.md").read_text()
    assert all(f"](images/{name}.png)" in text for name in PICTURES)
