"""Kill -9 at random moments under load: what a broker promised must hold."""

import os
import random
import threading
from pathlib import Path

import pytest

from mesh_tests.crash.broker_process import BrokerProcess
from mesh_tests.crash.ledger import Ledger
from mesh_tests.crash.traffic import Traffic

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "5"))
SEED = int(os.environ.get("CRASH_SEED", random.randrange(1 << 32)))


@pytest.mark.timeout(60 + 15 * ROUNDS)
def test_nothing_accepted_is_lost_and_nothing_confirmed_comes_back(tmp_path: Path) -> None:
    print(f"CRASH_SEED={SEED} CRASH_ROUNDS={ROUNDS}")  # noqa: T201 (pytest shows it with a failure)
    chance = random.Random(SEED)
    broker = BrokerProcess(tmp_path)
    queue, topic, numbers = Ledger(), Ledger(), [0]
    for _ in range(ROUNDS):
        broker.start()
        _load_until_killed(broker, Traffic(broker.port, chance, queue, topic, numbers), chance.uniform(0.2, 2.0))
    broker.start()
    Traffic(broker.port, chance, queue, topic, numbers).empty()
    assert broker.stop() == 0
    for name, ledger in (("queue", queue), ("topic", topic)):
        print(f"{name}: {ledger}")  # noqa: T201
        assert ledger.accepted, "no load at all: the test shows nothing"
        ledger.check()
    assert "Traceback" not in broker.log.read_text()


def _load_until_killed(broker: BrokerProcess, traffic: Traffic, after_s: float) -> None:
    killer = threading.Timer(after_s, broker.kill)
    killer.start()
    try:
        traffic.run(until=lambda: False)
    finally:
        killer.join()
        traffic.close()
