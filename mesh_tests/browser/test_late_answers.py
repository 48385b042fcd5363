"""Pages of an observer that answers late, in another order, or not at all at first, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mesh_tests.browser.faked_mesh import message
from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.tabs import SOON_S, Tab
from mesh_tests.unit.mesh.watch.console_host import ConsoleHost
from mesh_tests.waiting import wait_until
from recording.columns import RecordKind

Own = Callable[..., ServedConsole]
Open = Callable[..., Tab]
QUEUE = "/queue?node=b1&address=orders&subscriber="
NUMBERS = "[...document.querySelectorAll('.tabled tbody tr')].map(row => row.cells[1].textContent).join()"


@pytest.fixture
def served(own: Own) -> ServedConsole:
    """Serves the queue orders of b1 with the messages 1 and 2."""
    console = own()
    console.change(add_queue)
    console.mesh.queues["orders"] = [message(number) for number in (1, 2)]
    return console


def add_queue(host: ConsoleHost) -> None:
    host.add("b1", RecordKind.QUEUE, queue=1, address="orders", depth_count=2)


def fail_first(shown: Tab, pattern: str) -> None:
    """Let the first request that matches ``pattern`` fail, and no other."""
    shown.page.route(pattern, lambda route: route.abort(), times=1)


@pytest.mark.parametrize("way", ["poll", "follow"])
def test_a_mistake_of_a_page_is_told_to_the_browser_and_the_page_goes_on(
    way: str, served: ServedConsole, tab: Open
) -> None:
    shown = tab(served, "/nodes")
    shown.page.evaluate(
        """async way => {
            const { follow, observer, poll } = await import("/console/page/observer.js");
            window.calls = 0;
            observer.addEventListener("state", () => (window.isLost = true));
            const fail = () => { throw new Error(`mistake ${++window.calls}`); };
            const signal = new AbortController().signal;
            if (way === "poll") poll(() => "/api/nodes", 10, fail, fail, signal);
            else follow("/api/stream?entity=nodes", fail, fail, signal);
        }""",
        way,
    )
    wait_until(lambda: shown.page.evaluate("window.calls") and "mistake 1" in shown.wrongs, SOON_S, "the mistake")
    if way == "poll":
        wait_until(lambda: shown.page.evaluate("window.calls") > 1, SOON_S, "the next answer")
    assert not shown.page.evaluate("window.isLost")


def test_rights_that_the_observer_does_not_tell_at_first_are_asked_for_again(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, None)
    fail_first(shown, "**/api/me")
    shown.page.goto(f"{served.url}/neighbor?id=r1/r2")
    wait_until(lambda: shown.text("#me .who") == "owner", SOON_S, "the name")
    shown.page.click(".actions button:has-text('Change'):enabled")


def test_an_open_message_that_cannot_be_read_at_first_is_asked_for_again(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, None)
    fail_first(shown, "**/messages?after=1&limit=1&**")
    shown.page.goto(f"{served.url}{QUEUE}&open=2")
    wait_until(lambda: shown.text("pre.body") == "order 2", SOON_S, "the body")
    assert shown.page.is_hidden(".tabled .error")


def test_a_list_of_messages_that_comes_late_does_not_replace_a_newer_one(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, QUEUE)
    shown.wait(f"{NUMBERS} === '1,2'")
    held: list[tuple[Any, Any]] = []
    shown.page.route("**/messages?limit=50", lambda route: held.append((route, route.fetch())), times=1)
    shown.page.click("text=Read again")
    wait_until(lambda: shown.page.evaluate("true") and held, SOON_S, "the page to ask")
    del served.mesh.queues["orders"][0]
    shown.page.click("text=Read again")
    shown.wait(f"{NUMBERS} === '2'")
    route, answer = held[0]
    with shown.page.expect_event("requestfinished", lambda request: request == route.request):
        route.fulfill(response=answer)
    assert shown.page.evaluate(NUMBERS) == "2"


def test_buttons_of_a_queue_stay_where_they_are_when_its_messages_come(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, None)
    held: list[Any] = []
    is_read: list[bool] = []
    shown.page.route("**/messages?limit=50", lambda route: route.continue_() if is_read else held.append(route))
    shown.page.goto(f"{served.url}{QUEUE}")
    shown.wait("document.querySelector('.summary')?.textContent.startsWith('2 messages')")
    wait_until(lambda: shown.page.evaluate("true") and held, SOON_S, "the page to ask")
    button = shown.page.locator(".actions button:has-text('Delete the queue'):enabled")
    assert shown.page.evaluate(NUMBERS) == ""
    left = button.bounding_box()["x"]
    is_read.append(True)
    for route in held:
        route.continue_()
    shown.wait(f"{NUMBERS} === '1,2'")
    assert button.bounding_box()["x"] == left


@pytest.mark.parametrize("status", [429, 503])
def test_a_stream_and_a_change_for_which_there_is_no_room_are_asked_for_again(
    status: int, served: ServedConsole, tab: Open
) -> None:
    def refuse(route: Any) -> None:
        route.fulfill(status=status, json={"error": "25 streams of yours are under way"})

    shown = tab(served, None)
    shown.page.route("**/api/stream?**", refuse, times=1)
    shown.page.goto(f"{served.url}/nodes")
    wait_until(lambda: shown.rows() == ["b1", "r1", "r2", "r3"], SOON_S, "the nodes")
    shown.open("/neighbor?id=r1/r2")
    shown.page.route("**/api/neighbors/r1/r2/cost?dry_run=true", refuse, times=1)
    shown.page.click(".actions button:has-text('Change'):enabled")
    shown.page.keyboard.press("Enter")
    shown.wait("document.querySelector('.would')")
