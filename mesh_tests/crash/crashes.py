"""A broker through one crash after the other, under load with all outcomes, expiry, dead letters and a topic."""

from __future__ import annotations

import random
import threading
import time
from itertools import count
from pathlib import Path

from broker.store.failpoints import StoreFailpoint
from mesh_tests.crash.broker_process import BrokerProcess
from mesh_tests.crash.ledger import Ledger
from mesh_tests.crash.traffic import Traffic

Way = StoreFailpoint | None
"""How it dies: at that line, or at a random moment."""

OPENING = (StoreFailpoint.RECOVERY_WRITTEN, StoreFailpoint.RECOVERY_COMMITTED)
"""Passed before it listens, in a store that is neither new nor of an older format."""
UNDER_LOAD = {
    StoreFailpoint.PIECES_WRITTEN: 10,
    StoreFailpoint.BODIES_SYNCED: 10,
    StoreFailpoint.ROWS_WRITTEN: 300,
    StoreFailpoint.ROWS_COMMITTED: 300,
    StoreFailpoint.BODIES_UNLINKED: 10,
}
"""The first so many times that each is passed come within seconds."""
WAYS: tuple[Way, ...] = (*OPENING, *UNDER_LOAD, *(None,) * 3)
PASSED_S = 30.0


class Crashes:
    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.broker = BrokerProcess(directory)
        self.ledgers = {"queue": Ledger(has_ways_out=True), "topic": Ledger()}
        self._chance = chance
        self._numbers = count(1)

    def crash(self, way: Way) -> None:
        """One round: start it, and let it die under load; ``way`` may have it die before that too."""
        if way is None or way in OPENING:
            if way is not None:
                self.broker.start_in_vain(way)
            self.broker.start()
            self._load(self._chance.uniform(0.2, 2.0))
            assert self.broker.was_killed, "it ended by itself"
        else:
            self.broker.start((way, self._chance.randint(1, UNDER_LOAD[way])))
            self._load(PASSED_S)
            assert self.broker.has_killed_itself(), f"{way} was not passed within {PASSED_S:g} s"

    def finish(self) -> None:
        """Empty it, and compare what clients were told with what there is."""
        self.broker.start()
        self._traffic().empty()
        self._traffic().empty_ways_out()
        assert self.broker.stop() == 0
        for ledger in self.ledgers.values():
            assert ledger.accepted, "no load at all: this shows nothing"
            assert not ledger.has_ways_out or (ledger.dead and ledger.late), "nothing was moved: this shows nothing"
            ledger.check(time.time())
        assert "Traceback" not in self.broker.log.read_text()

    def _traffic(self) -> Traffic:
        return Traffic(self.broker.port, self._chance, self.ledgers["queue"], self.ledgers["topic"], self._numbers)

    def _load(self, at_most_s: float) -> None:
        traffic = self._traffic()
        killer = threading.Timer(at_most_s, self.broker.kill)
        killer.start()
        try:
            traffic.run(until=lambda: False)
        finally:
            killer.cancel()
            killer.join()
            traffic.close()
