"""The console in a real browser: it shows what is there, follows what changes, and nobody's names run in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest

from mesh.watch.console import PAGES
from mesh_tests.browser.faked_mesh import WritingConsoleHost, json_body, message
from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.tabs import HOSTILE, SOON_S, Tab
from mesh_tests.unit.mesh.watch.console_host import ConsoleHost
from mesh_tests.waiting import wait_until
from recording.columns import RecordEvent, RecordKind

TOKEN = "the-token-of-the-owner"
VIEWS = (
    "/", "/addresses", "/addresses?pattern=rpc.%23", "/address?address=rpc.tea", "/clients", "/clients?by=user",
    "/clients?by=connection", "/links", "/queues", "/nodes", "/nodes?show=neighbors", "/nodes?show=paths",
    "/queue?node=b1&address=orders&subscriber=", "/queue?node=b1&address=orders&subscriber=&open=2&select=1,2",
    "/queue?node=b1&address=gone&subscriber=", "/connection?id=r1/2", "/connection?id=r1/999", "/link?id=r1/1",
    "/node?name=r1", "/node?name=nobody", "/neighbor?id=r1/r2", "/events", "/events?show=audit",
    "/events?event=neighbor_down", "/reports",
)  # fmt: skip
WATCH_ROWS = """() => {
    const body = document.querySelector("tbody");
    window.before = body.firstElementChild;
    window.made = 0;
    new MutationObserver(all => {
        window.made += all.filter(each => each.addedNodes[0]?.nodeType === 1).length;
    }).observe(body, {childList: true, subtree: true});
}"""
EVERY_VIEW = pytest.mark.parametrize("view", VIEWS)


@pytest.fixture(scope="module")
def console(browser: Any) -> Iterator[ServedConsole]:
    """Everything runs; alice has 130 producers, of which three wait; one queue is old."""
    served = ServedConsole()
    served.change(fill)
    served.mesh.queues["orders"] = [
        message(number, json_body('{"a": [1, {"b": 2}]}') if number == 2 else None) for number in range(1, 61)
    ]
    yield served
    served.close()


def fill(host: WritingConsoleHost) -> None:
    host.start_all()
    host.log("b1", "store_opened", "info", queue_count=3)
    host.log("r1", "neighbor_down", router="r2", reason="reset")
    for number in range(2, 32):
        host.connect("r1", number, "alice" if number % 2 else "bob", f"web-{number % 3}")
    for number in range(1, 131):
        host.produce("r1", number, 2 + number % 30, f"rpc.{number:03}")
    host.add("r2", RecordKind.CONNECTION, connection=90, role="client", container="desk")
    host.add("r2", RecordKind.LINK, link=1, connection=90, role="consumer", direction="outgoing", address="rpc.tea")
    host.produce("r2", 2, 90, "rpc.tea")
    for link in (1, 2, 3):
        host.starve("r1", link, "takers")
    host.add("b1", RecordKind.QUEUE, queue=1, address="orders", depth_count=14_203, depth_bytes=3_100_000,
             oldest_us=3_600_000_000)  # fmt: skip


@EVERY_VIEW
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_loads_without_a_complaint_and_axe_finds_nothing(
    view: str, scheme: str, console: ServedConsole, tab: Callable[..., Tab]
) -> None:
    shown = tab(console, view, color_scheme=scheme)
    assert shown.wrongs == []
    assert shown.axe() == []


@EVERY_VIEW
def test_a_phone_needs_no_scrolling_to_the_side(view: str, console: ServedConsole, tab: Callable[..., Tab]) -> None:
    shown = tab(console, view, viewport={"width": 360, "height": 740})
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_every_page_of_the_bar_is_there(console: ServedConsole, tab: Callable[..., Tab]) -> None:
    shown = tab(console)
    for place, page in enumerate([page for page in PAGES if page.parent is None], start=1):
        shown.page.keyboard.press(str(place))
        shown.wait(f"document.title.startsWith('{page.title} ')")
        assert shown.href == shown.url + page.path
        assert page.things in shown.text("#curl") or page.path in ("/", "/clients")
        assert shown.text("#command").startswith(f"amqpmesh {page.command[0]}")
    assert shown.wrongs == []


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_a_hostile_name_is_shown_and_does_nothing(
    place: int, own: Callable[..., ServedConsole], tab: Callable[..., Tab]
) -> None:
    name, served = HOSTILE[place], own()

    def name_everything(host: ConsoleHost) -> None:
        host.connect("r1", 2, name, name)
        host.produce("r1", 1, 2, f"rpc.{name}")
        host.starve("r1", 1, "no_taker")
        host.add("b1", RecordKind.QUEUE, queue=1, address=f"rpc.{name}", name=name, depth_count=1, oldest_us=10**9)

    served.change(name_everything)
    for view in ("/", "/addresses", "/clients", "/clients?by=user", "/clients?by=connection", "/links", "/queues"):
        shown = tab(served, view, viewport={"width": 360, "height": 740})
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360, view
        assert shown.page.evaluate("document.images.length + document.querySelectorAll('body script').length") == 0
        assert shown.wrongs == [], view
        assert "owned" not in shown.page.title()
        said = shown.page.evaluate("document.getElementById('main').textContent")
        assert name[:8] in said or "\u27e8U+" in said, view
        assert "\u202e" not in said
        assert "\x00" not in said
        if len(name) < 1000 and view == "/links":
            shown.page.click("tbody a[href^='/address?']")
            shown.wait("document.querySelector('.waits.alarm')")
            assert shown.wrongs == []
        shown.close()


def test_a_filter_narrows_and_is_in_the_url(console: ServedConsole, tab: Callable[..., Tab]) -> None:
    shown = tab(console, "/links")
    assert len(shown.rows()) == 100
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("rpc.01 role=producer")
    # There are as many rows before the second word is typed.
    wait_until(lambda: "role=producer" in shown.href, SOON_S, "the whole filter")
    shown.wait("document.querySelectorAll('tbody tr').length === 10")
    assert {address[:6] for address in shown.rows(2)} == {"rpc.01"}
    assert "filter=address~rpc.01&filter=role=producer" in shown.href.replace("%7E", "~")
    again = tab(console, shown.href.removeprefix(console.url))
    assert again.rows(2) == shown.rows(2)
    assert again.page.input_value("input.filter") == "address~rpc.01 role=producer"


def test_a_filter_that_is_wrong_is_answered_with_a_sentence_and_rows_stay(
    console: ServedConsole, tab: Callable[..., Tab]
) -> None:
    shown = tab(console, "/nodes")
    before = shown.rows()
    shown.page.fill("input.filter", "nothing=1")
    shown.wait("document.querySelector('.error:not([hidden])')")
    assert "nodes have no field 'nothing'" in shown.text(".error")
    assert shown.rows() == before
    shown.page.fill("input.filter", "role=broker")
    shown.wait("document.querySelectorAll('tbody tr').length === 1")
    assert shown.page.is_hidden(".error")


def test_pages_follow_each_other_and_no_row_is_missing(console: ServedConsole, tab: Callable[..., Tab]) -> None:
    shown = tab(console, "/links?filter=role=producer&sort=address&fields=address&limit=50")
    seen = shown.rows()
    while not shown.page.is_hidden("text=Next page"):
        last = shown.rows()[0]
        shown.page.click("text=Next page")
        wait_until(lambda last=last: shown.rows()[0] != last, SOON_S, "another page")
        seen += shown.rows()
    assert seen == [f"rpc.{number:03}" for number in range(1, 131)] + ["rpc.tea"]
    shown.page.click("text=First page")
    wait_until(lambda: shown.rows()[0] == "rpc.001", SOON_S, "the first page")


def test_a_click_on_a_column_sorts_at_the_observer(console: ServedConsole, tab: Callable[..., Tab]) -> None:
    shown = tab(console, "/links?filter=role=producer&sort=address&fields=address")
    shown.page.click("thead button")
    wait_until(lambda: shown.rows()[0] == "rpc.tea", SOON_S, "the last address first")
    assert shown.page.get_attribute("thead th", "aria-sort") == "descending"
    assert "sort=-address" in shown.href


def test_columns_are_chosen_and_stay_in_the_url(console: ServedConsole, tab: Callable[..., Tab]) -> None:
    shown = tab(console, "/queues?fields=address,depth")
    shown.page.click("summary")
    shown.page.check("label:has(span.field:text-is('dead_lettered')) input")
    shown.wait("document.querySelectorAll('thead th').length === 3")
    assert "fields=address,depth,dead_lettered" in shown.href
    assert shown.rows(1) == ["14,203"]


def test_rows_change_in_place_without_a_reload(own: Callable[..., ServedConsole], tab: Callable[..., Tab]) -> None:
    served = own()
    served.change(lambda host: host.add("b1", RecordKind.QUEUE, queue=1, address="orders", depth_count=5))
    shown = tab(served, "/queues?fields=address,depth")
    shown.page.evaluate(WATCH_ROWS)
    served.change(
        lambda host: host.add("b1", RecordKind.QUEUE, RecordEvent.CHANGED, queue=1, address="orders", depth_count=7)
    )
    wait_until(lambda: shown.rows(1) == ["7"], SOON_S, "the new depth")
    assert shown.page.evaluate("window.before === document.querySelector('tbody tr')")
    assert shown.page.evaluate("window.made") == 0
    served.change(lambda host: host.add("b1", RecordKind.QUEUE, queue=2, address="rpc.other", depth_count=9))
    wait_until(lambda: shown.rows(1) == ["9", "7"], SOON_S, "a new row")
    served.change(lambda host: host.add("b1", RecordKind.QUEUE, RecordEvent.CLOSED, queue=2))
    wait_until(lambda: shown.rows(1) == ["7"], SOON_S, "the row to go")
    assert shown.page.evaluate("window.before === document.querySelector('tbody tr')")


def test_paused_pages_stay_as_they_are(own: Callable[..., ServedConsole], tab: Callable[..., Tab]) -> None:
    served = own()
    shown = tab(served, "/nodes")
    shown.page.keyboard.press("p")
    shown.wait("document.querySelector('#pause').ariaPressed === 'true'")
    served.change(lambda host: host.runs["r1"].end("lost"))
    shown.page.keyboard.press("p")
    wait_until(lambda: "\u2715 lost" in shown.rows(2), SOON_S, "the lost node")


def test_a_lost_node_is_lost_on_every_page_with_its_last_values(
    own: Callable[..., ServedConsole], tab: Callable[..., Tab]
) -> None:
    served = own()
    nodes, first = tab(served, "/nodes"), tab(served, "/")
    assert first.text(".summary").startswith("Nothing")

    def lose(host: ConsoleHost) -> None:
        host.model.nodes["r2"].beat_at = host.model.utc_s - 42.0
        host.runs["r2"].end("lost")

    served.change(lose)
    wait_until(lambda: "\u2715 lost" in nodes.rows(2), SOON_S, "the node to be lost")
    nodes.wait("document.querySelector('tr.stale td').textContent === 'r2'")
    wait_until(lambda: "r2 lost" in nodes.text("#health"), SOON_S, "the header")
    wait_until(lambda: "r2 is lost" in first.text(".troubles li.lost"), SOON_S, "the trouble")
    assert first.page.locator("a.box.lost").get_attribute("aria-label").startswith("router r2: lost ")
    first.page.click(".troubles li.lost a")
    first.wait("document.title.startsWith('Node ')")
    wait_until(lambda: first.text(".summary").startswith("Lost for "), SOON_S, "the page of the node")


def test_rows_of_a_silent_node_say_how_old_they_are(own: Callable[..., ServedConsole], tab: Callable[..., Tab]) -> None:
    served = own()
    shown = tab(served, "/queues?fields=node,address,depth")
    served.change(lambda host: host.add("b1", RecordKind.QUEUE, queue=1, address="orders", depth_count=5))

    def hush(host: ConsoleHost) -> None:
        host.model.nodes["b1"].state, host.model.nodes["b1"].age_s = "silent", 61.0

    served.change(hush)
    wait_until(lambda: any(re.match(r"b1 silent, as of 6\d s ago", row) for row in shown.rows()), SOON_S, "the age")
    assert shown.page.locator("tr.stale").count() == 1


def test_an_observer_that_is_gone_leaves_the_last_state_and_comes_back(
    own: Callable[..., ServedConsole], tab: Callable[..., Tab]
) -> None:
    served = own()
    shown = tab(served, "/nodes")
    before = shown.rows()
    served.stop()
    shown.wait("!document.querySelector('#banner').hidden")
    assert "has not answered since" in shown.text("#banner")
    assert shown.rows() == before
    served.start()
    shown.wait("document.querySelector('#banner').hidden")
    served.change(lambda host: host.runs["r1"].end("lost"))
    wait_until(lambda: "\u2715 lost" in shown.rows(2), SOON_S, "to be live again")


def test_a_page_that_opens_before_the_observer_answers_says_so(
    own: Callable[..., ServedConsole], tab: Callable[..., Tab]
) -> None:
    shown = tab(own())
    shown.page.route("**/console/map", lambda route: route.abort())
    shown.wait("!document.querySelector('#banner').hidden")


def test_keys_reach_the_filter_and_the_help(console: ServedConsole, tab: Callable[..., Tab]) -> None:
    shown = tab(console, "/links")
    shown.page.keyboard.press("/")
    assert shown.page.evaluate("document.activeElement.className") == "filter"
    shown.page.keyboard.press("Escape")
    shown.page.keyboard.press("?")
    shown.wait("document.querySelector('dialog').open")
    shown.page.keyboard.press("Escape")
    shown.wait("!document.querySelector('dialog').open")
    assert shown.wrongs == []


def test_the_back_button_goes_back(console: ServedConsole, tab: Callable[..., Tab]) -> None:
    shown = tab(console, "/nodes")
    shown.page.click("#pages a:text-is('Queues')")
    shown.wait("document.title.startsWith('Queues')")
    shown.page.go_back()
    shown.wait("document.title.startsWith('Nodes')")
    wait_until(lambda: shown.rows() == ["b1", "r1", "r2", "r3"], SOON_S, "the nodes")


def test_an_address_says_who_waits_and_draws_its_rates(
    own: Callable[..., ServedConsole], tab: Callable[..., Tab]
) -> None:
    served = own()
    served.change(fill_waiting)
    shown = tab(served, "/address?address=rpc.tea")
    shown.wait("document.querySelector('.chart canvas')")
    shown.wait("document.querySelector('.waits.alarm')")
    assert shown.text(".waits").startswith("1 producer at r1: No consumer takes messages")
    assert shown.wrongs == []


def once_of(served: ServedConsole) -> str:
    """Return the path and fragment that `amqpmesh console` prints."""
    request = Request(f"{served.url}/login/once", method="POST", headers={"Authorization": f"Bearer {TOKEN}"})
    with urlopen(request) as answer:
        return str(json.load(answer)["path"])


def fill_waiting(host: ConsoleHost) -> None:
    host.connect("r1", 2, "alice")
    host.produce("r1", 1, 2, "rpc.tea")
    host.starve("r1", 1, "no_taker")


def test_a_login_works_once_and_needs_the_fragment_only(
    own: Callable[..., ServedConsole], tab: Callable[..., Tab]
) -> None:
    served = own(token=TOKEN)
    once = once_of(served)
    shown = tab(served, None, login=False)
    shown.page.goto(served.url)
    assert "amqpmesh console" in shown.text("main")
    shown.page.goto(served.url + once)
    shown.wait("document.title.startsWith('Map')")
    assert not any("#" in url or once.partition("#")[2] in url for url in shown.requests[1:])
    assert once.partition("#")[2] not in shown.href
    (cookie,) = shown.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert shown.page.evaluate("document.cookie") == ""
    shown.page.context.clear_cookies()
    shown.page.goto(served.url + once)
    shown.wait("document.querySelector('#said').textContent.includes('refused')")


def test_a_login_that_ends_leaves_the_last_state_and_says_what_to_do(
    own: Callable[..., ServedConsole], tab: Callable[..., Tab]
) -> None:
    served = own(token=TOKEN)
    shown = tab(served, None, login=False)
    shown.page.goto(served.url + once_of(served))
    shown.wait("document.title.startsWith('Map')")
    shown.open("/nodes")
    shown.page.context.clear_cookies()
    served.stop()
    served.start()
    shown.wait("document.querySelector('#banner').textContent.includes('amqpmesh console')")
    assert len(shown.rows()) == 4
