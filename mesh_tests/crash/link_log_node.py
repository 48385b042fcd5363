"""A node as far as its ring goes, as a process: `python -m mesh_tests.crash.link_log_node RINGS`, until SIGTERM.

Deliveries have consecutive numbers as their sizes; what finds no room is counted, and its number given to the next. At
the end it prints how many deliveries and links there are in the ring, and how many records found no room.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from pathlib import Path

from mesh_tests.unit.linklogs.rings import RingWriter

CAPACITY = 8192
BURST = 30
PAUSE_S = 0.001


def main(rings: Path) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    now_us, monotonic_us = time.time_ns() // 1000, time.monotonic_ns() // 1000
    node = RingWriter(rings, run=now_us, capacity=CAPACITY, clock_us=now_us - monotonic_us)
    deliveries = links = 0
    while not stop.wait(PAUSE_S):
        at_us = time.monotonic_ns() // 1000
        for _ in range(BURST):
            deliveries += node.delivery(deliveries, at_us, took_us=0)
        links += node.text(at_us, kind="link", event="opened", link=links, name="n" * (links % 150))
    sys.stdout.write(json.dumps({"deliveries": deliveries, "links": links, "dropped": node.dropped}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
