"""Do the heaps of the console's pages stay as they are? A random life: `python -m mesh_tests.browser.page_heaps -h`.

Every page of the console is open in a tab of its own, over a model of many routers and addresses, which random changes
of credit, depth and connections reach each second. Each minute the tabs collect garbage and tell the size of their
heap. A heap grows if its last sizes are larger than its first by more than GROWTH_SHARE; the first minute, in which
pages fill, does not count.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

from mesh_tests.bench.pages import CLIENTS, FLAGS, fill, heap_bytes, topology
from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.tabs import Tab
from mesh_tests.unit.mesh.watch.console_host import ConsoleHost
from recording.columns import RecordEvent, RecordKind

ROUTERS: Final = 500
ADDRESSES: Final = 10_000
VIEWS: Final = (
    "/",
    "/addresses",
    "/address?address=p.7",
    "/clients",
    "/links",
    "/queues",
    "/nodes",
    "/events",
    "/reports",
    "/queue?node=b1&address=p.7&subscriber=",
    "/connection?id=r6/7",
    "/link?id=r8/17",
    "/node?name=r1",
    "/neighbor?id=r2/r1",
)
CHANGED: Final = 50
"""The most links, and the most queues, that change in a second."""
LOOK_S: Final = 60.0
GROWTH_SHARE: Final = 0.1
FEWEST_LOOKS: Final = 3


class RandomChanges:
    """Changes of links, queues and clients of `mesh_tests.bench.pages.fill`, from ``seed``."""

    def __init__(self, seed: int, routers: int, addresses: int) -> None:
        self._random = random.Random(seed)
        self._routers, self._addresses = routers, addresses
        self._next = 10 * (CLIENTS + addresses)
        """The number of the next new client; numbers are used once."""
        self.count = 0

    def apply(self, host: ConsoleHost) -> None:
        for number in self._random.sample(range(self._addresses), self._random.randint(1, CHANGED)):
            node = f"r{number % CLIENTS % self._routers + 1}"
            if self._random.random() < 0.5:
                host.starve(node, 10 + number, "takers")
            else:
                host.add(node, RecordKind.CREDIT, RecordEvent.CHANGED, link=10 + number, credit=5)
            self.count += 1
        for number in self._random.sample(range(self._addresses), self._random.randint(1, CHANGED)):
            depth = self._random.randint(0, 1000)
            host.add("b1", RecordKind.QUEUE, queue=number + 1, address=f"p.{number}", depth_count=depth)
            self.count += 1
        node, self._next = f"r{self._random.randint(1, self._routers)}", self._next + 1
        host.connect(node, self._next, f"user{self._random.randint(0, 50)}", f"app-{self._next}")
        host.add(node, RecordKind.CONNECTION, RecordEvent.CLOSED, connection=self._next)
        self.count += 1


def has_grown(sizes: Sequence[int]) -> bool:
    """Whether the last third of ``sizes`` is larger than the first, each by its median."""
    part = max(1, len(sizes) // 3)
    first, last = statistics.median(sizes[:part]), statistics.median(sizes[-part:])
    return last > first * (1 + GROWTH_SHARE)


def look_for(
    seed: int,
    seconds: float,
    tell: Callable[[Mapping[str, Sequence[int]]], None] = lambda _: None,
    views: Sequence[str] = VIEWS,
    look_s: float = LOOK_S,
    size: tuple[int, int] = (ROUTERS, ADDRESSES),
) -> tuple[dict[str, list[int]], int]:
    """Return the sizes of each page's heap in bytes, from the second look on, and the number of changes.

    Looks go on for ``seconds``, and until there are FEWEST_LOOKS; ``tell`` gets the sizes after each of them. Raises
    AssertionError if a page complains.
    """
    from playwright.sync_api import sync_playwright

    changes = RandomChanges(seed, *size)
    sizes: dict[str, list[int]] = {view: [] for view in views}
    with ExitStack() as stack:
        served = stack.enter_context(closing(ServedConsole(topology(size[0]))))
        served.change(lambda host: fill(host, *size))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        stack.callback(browser.close)
        tabs = {view: Tab(browser, served.url, served.cookie()).open(view) for view in views}
        began, is_warm = time.monotonic(), False
        while time.monotonic() - began < seconds or len(sizes[views[0]]) < FEWEST_LOOKS:
            until = time.monotonic() + look_s
            while time.monotonic() < until:
                served.change(changes.apply)
                tabs[views[0]].page.wait_for_timeout(1000)
            for view, tab in tabs.items():
                assert not tab.wrongs, f"{view}: {tab.wrongs[0]}"
                tab.requests.clear()
                if is_warm:
                    sizes[view].append(heap_bytes(tab))
            is_warm = True
            tell(sizes)
    return sizes, changes.count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--report", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, Any] = {"seed": given.seed, "seconds": given.seconds, "state": "running"}

    def tell(sizes: Mapping[str, Sequence[int]]) -> None:
        given.report.write_text(json.dumps({**found, "heaps": sizes}))

    tell({})
    began = time.monotonic()
    try:
        sizes, changes = look_for(given.seed, given.seconds, tell)
        found |= {"heaps": sizes, "pages": len(sizes), "changes": changes}
        found |= {"seconds watched": round(time.monotonic() - began)}
        found |= {"bytes at first": sum(each[0] for each in sizes.values())}
        found |= {"bytes at last": sum(each[-1] for each in sizes.values())}
        grown = {view: each for view, each in sizes.items() if has_grown(each)}
        found |= {"state": "failed", "why": f"heaps that grew: {grown}"} if grown else {"state": "passed"}
    except Exception:  # noqa: BLE001 - the report tells it
        found |= {"state": "failed", "why": traceback.format_exc()[-4000:]}
    given.report.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
