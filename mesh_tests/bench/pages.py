"""How long do the console's pages take to load, and do they stay smooth? `python -m mesh_tests.bench.pages --help`

A console over a model with many routers, and many addresses, each with a producer and a queue, in Debian's chromium on
the same machine. While a page is shown, every second a part of the links waits for credit or no longer does, so rows
change. Figures: time to the first contentful paint, time until all tables have rows, the longest task of the browser's
main thread, and the JavaScript heap after garbage collection, at the begin and at the end.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from typing import Any

import click

from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.tabs import Tab
from mesh_tests.unit.mesh.watch.console_host import ConsoleHost
from recording.columns import RecordEvent, RecordKind

VIEWS = (
    "/",
    "/addresses",
    "/address?address=p.7",
    "/clients",
    "/links",
    "/queues",
    "/nodes",
    "/node?name=r1",
    "/events",
)
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
CLIENTS = 1000
CHANGED = 50
"""Links that change in a second."""
MEASURED = """
window.longTasks = [];
new PerformanceObserver(list => window.longTasks.push(...list.getEntries().map(each => each.duration)))
    .observe({type: "longtask", buffered: true});
const isLoaded = () => document.querySelector("#curl")?.textContent && !document.querySelector("[aria-busy=true]") &&
    ![...document.querySelectorAll(".summary")].some(it => it.textContent.startsWith("Reading"));
const timer = setInterval(() => {
    if (!isLoaded()) return;
    window.loadedAt = performance.now();
    clearInterval(timer);
}, 20);
"""


def topology(routers: int) -> str:
    """A mesh in which each router connects to the one before, and to the one ten before."""
    lines = ["mesh: large", "routers:"]
    for number in range(1, routers + 1):
        others = [f"r{other}" for other in (number - 1, number - 10) if other > 0]
        lines.append(f"  r{number}: {{connect: [{', '.join(others)}]}}" if others else f"  r{number}: {{}}")
    return "\n".join([*lines, "brokers: {b1: {data: ./b1, routers: [r1]}}", "addresses: {'p.#': queue}", ""])


def fill(host: ConsoleHost, routers: int, addresses: int) -> None:
    names = [f"r{number}" for number in range(1, routers + 1)]
    for name in names:
        host.start(name)
    host.start("b1", "broker")
    host.add("r1", RecordKind.CONNECTION, connection=1, role="broker", container="b1")
    for planned in host.plan.connections:
        if planned.is_link_state:
            host.add(planned.one, RecordKind.NEIGHBOR, neighbor=planned.other, cost=1)
            host.add(planned.other, RecordKind.NEIGHBOR, neighbor=planned.one, cost=1)
    for number in range(CLIENTS):
        host.connect(names[number % routers], 2 + number, f"user{number % 40}", f"app-{number}")
    for number in range(addresses):
        client = number % CLIENTS
        host.produce(names[client % routers], 10 + number, 2 + client, f"p.{number}")
        host.add("b1", RecordKind.QUEUE, queue=number + 1, address=f"p.{number}", depth_count=number % 3)


class Changes:
    """Changes the credit of some links each second, so that rows on the pages change."""

    def __init__(self, routers: int, addresses: int) -> None:
        self._routers, self._addresses, self._turn = routers, addresses, 0

    def apply(self, host: ConsoleHost) -> None:
        self._turn += 1
        for number in range(min(CHANGED, self._addresses)):
            node = f"r{number % CLIENTS % self._routers + 1}"
            if (number + self._turn) % 2:
                host.starve(node, 10 + number, "takers")
            else:
                host.add(node, RecordKind.CREDIT, RecordEvent.CHANGED, link=10 + number, credit=5)


def heap_bytes(shown: Tab) -> int:
    session = shown.page.context.new_cdp_session(shown.page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return int(used)


def load(browser: Any, served: ServedConsole, view: str, changes: Changes, seconds: float) -> dict[str, float]:
    """Open ``view`` in a new tab and look at it for ``seconds``; times are in ms, the heap in bytes."""
    shown = Tab(browser, served.url, served.cookie())
    try:
        shown.page.add_init_script(MEASURED)
        shown.page.goto(served.url + view)
        shown.wait("window.loadedAt")
        loaded_ms = shown.page.evaluate("window.loadedAt")
        paint_ms = shown.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        before = heap_bytes(shown)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            served.change(changes.apply)
            shown.page.wait_for_timeout(1000)
        longest_ms = shown.page.evaluate("Math.max(0, ...window.longTasks)")
        if shown.wrongs:
            raise click.ClickException(f"{view}: {shown.wrongs[0]}")
        return {"paint_ms": paint_ms, "loaded_ms": loaded_ms, "longest_task_ms": longest_ms,
                "heap_bytes": before, "heap_growth_bytes": heap_bytes(shown) - before}  # fmt: skip
    finally:
        shown.close()


@click.command()
@click.option("--routers", default=1000, help="Number of routers.", show_default=True)
@click.option("--addresses", default=100_000, help="Number of addresses.", show_default=True)
@click.option("--runs", default=5, help="Number of loads of each page.", show_default=True)
@click.option("--seconds", default=3.0, help="Time for which each page is looked at.", show_default=True)
@click.option("--view", "views", multiple=True, default=VIEWS, help="Page to load; may be repeated.")
def main(routers: int, addresses: int, runs: int, seconds: float, views: tuple[str, ...]) -> None:
    """Print for each page the median, the least and the largest figure, as JSON."""
    from playwright.sync_api import sync_playwright

    served = ServedConsole(topology(routers))
    served.change(lambda host: fill(host, routers, addresses))
    changes = Changes(routers, addresses)
    said = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        for view in views:
            found = [load(browser, served, view, changes, seconds) for _ in range(runs)]
            said[view] = {
                name: [round(pick([each[name] for each in found])) for pick in (statistics.median, min, max)]
                for name in found[0]
            }
        browser.close()
    served.close()
    click.echo(json.dumps({"routers": routers, "addresses": addresses, "runs": runs, "pages": said}, indent=2))


if __name__ == "__main__":
    main()
