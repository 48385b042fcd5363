"""Pages of a mesh on two hosts, of which one cannot be asked: what is unknown, since when, why, and the last state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.tabs import SOON_S, Tab
from mesh_tests.unit.mesh.watch.console_host import ConsoleHost
from mesh_tests.unit.mesh.watch.memory_link import MemoryHost, MemoryMesh
from mesh_tests.unit.mesh.watch.sample_host import SampleHost, attach, connect, queue
from mesh_tests.waiting import wait_until

ROLES = {"r1": "router", "r2": "router", "r3": "router", "b1": "broker"}
LISTS = (
    "/", "/addresses", "/addresses?pattern=rpc.%23", "/address?address=rpc.tea", "/clients", "/clients?by=user",
    "/clients?by=connection", "/clients?by=other", "/links", "/queues", "/nodes", "/nodes?show=neighbors",
    "/nodes?show=paths",
)  # fmt: skip
SINGLE = (
    "/connection?id=r3/1", "/link?id=r3/10", "/neighbor?id=r3/r1", "/node?name=r3",
    "/queue?node=b1&address=orders&subscriber=",
)  # fmt: skip
LINES = "[...document.querySelectorAll('.missing li')].map(it => it.textContent).join(' | ')"


class TwoHosts:
    """r1 and r2 run on the host of the console; r3 and b1 on h2, which can be lost."""

    def __init__(self) -> None:
        self.mesh = MemoryMesh()
        sample = SampleHost({"rpc.#": "anycast", "orders": "queue"}, lambda _: "rpc.#")
        r3, b1 = sample.node("r3"), sample.node("b1", "broker")
        connect(r3, 1, "bob")
        attach(r3, 10, "producer", "rpc.tea")
        queue(b1, 1, "orders", 7)
        self.elsewhere = MemoryHost(self.mesh, "h2", sample.model, ROLES)
        self.served = ServedConsole(neighbor=self.elsewhere)
        self.served.change(start)
        self.served.run(self._join())

    async def _join(self) -> None:
        await self.elsewhere.serve()
        own = self.served.host.seen
        assert own is not None
        await own.join()

    def lose(self) -> None:
        def cut(_: ConsoleHost) -> None:
            self.elsewhere.link.is_up = False
            self.mesh.now_s += 42.0

        self.served.change(cut)

    def find(self) -> None:
        def mend(_: ConsoleHost) -> None:
            self.elsewhere.link.is_up = True
            self.mesh.now_s += 5.0

        self.served.change(mend)


def start(host: ConsoleHost) -> None:
    for name in ("r1", "r2"):
        host.start(name)
    host.connect("r1", 2, "alice")
    host.produce("r1", 1, 2, "rpc.tea")


@pytest.fixture
def two() -> Iterator[TwoHosts]:
    hosts = TwoHosts()
    yield hosts
    hosts.served.close()


def test_every_list_names_the_host_that_cannot_be_asked_and_says_since_when_and_why(
    two: TwoHosts, tab: Callable[..., Tab]
) -> None:
    # The summary tells which nodes the host has.
    assert tab(two.served, "/nodes").page.evaluate(LINES) == ""
    two.lose()
    for view in LISTS:
        shown = tab(two.served, view, viewport={"width": 360, "height": 740})
        wait_until(lambda shown=shown: "Unknown: host h2 (r3, b1)" in shown.page.evaluate(LINES), SOON_S, view)  # type: ignore[misc]
        said = shown.page.evaluate(LINES)
        assert "last heard 42 s ago, at " in said, view
        assert "nobody answers at" in said, view
        assert shown.page.evaluate("document.querySelector('.missing').getClientRects().length") > 0
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360, view
        assert shown.wrongs == [], view
        assert shown.axe() == [], view
        shown.close()


def test_rows_of_a_host_that_is_lost_stay_as_old_and_are_fresh_again_once_it_answers(
    two: TwoHosts, tab: Callable[..., Tab]
) -> None:
    shown = tab(two.served, "/links?fields=node,address,user&sort=id")
    wait_until(lambda: shown.rows() == ["r1", "r3"], SOON_S, "the links of both hosts")
    two.lose()
    wait_until(lambda: shown.text(".counts") == "1, and 1 old", SOON_S, "the count")
    shown.wait("document.querySelector('tr.stale td')?.textContent.startsWith('r3 unknown, as of')")
    assert shown.rows(2) == ["alice", "bob"]
    two.find()
    wait_until(lambda: shown.text(".counts") == "2", SOON_S, "the count of both")
    wait_until(lambda: shown.page.locator("tr.stale").count() == 0, SOON_S, "no old row")
    assert shown.page.evaluate(LINES) == ""


def test_another_filter_shows_no_old_rows_that_may_not_match(two: TwoHosts, tab: Callable[..., Tab]) -> None:
    shown = tab(two.served, "/links?fields=node,user&sort=id")
    wait_until(lambda: len(shown.rows()) == 2, SOON_S, "the links of both hosts")
    two.lose()
    wait_until(lambda: shown.page.locator("tr.stale").count() == 1, SOON_S, "the old row")
    shown.page.fill("input.filter", "user=alice")
    wait_until(lambda: shown.rows() == ["r1"], SOON_S, "the filter")


@pytest.mark.parametrize("view", SINGLE)
def test_a_page_of_something_at_a_lost_host_does_not_say_that_it_is_gone(
    view: str, two: TwoHosts, tab: Callable[..., Tab]
) -> None:
    shown = tab(two.served, view)
    two.lose()
    wait_until(lambda: shown.text(".summary").startswith("Unknown: "), SOON_S, "the state")
    assert "nobody answers at" in shown.text(".summary")
    two.find()
    wait_until(lambda: not shown.text(".summary").startswith("Unknown: "), SOON_S, "the state of the host again")
    # Messages of a broker on another host are read there.
    assert [each for each in shown.wrongs if not each.startswith("Failed to load resource")] == []


def test_the_map_does_not_say_that_nothing_is_wrong_where_nobody_can_tell(
    two: TwoHosts, tab: Callable[..., Tab]
) -> None:
    shown = tab(two.served, "/")
    two.lose()
    wait_until(lambda: "r3 is unknown" in shown.text(".troubles"), SOON_S, "the trouble")
    assert "fine" not in str(shown.page.locator(".summary").first.get_attribute("class"))
    box: Any = shown.page.locator("a.box.unknown").first.get_attribute("aria-label")
    assert "unknown, last heard 42 s ago, " in box
