"""Is a backup, made while clients send and settle, of one moment and whole?"""

import random
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

from broker.store.check_report import CheckReport
from broker.store.copying import back_up
from broker.store.dump import stored_messages
from broker.store.read_store import reading
from mesh_tests.crash.broker_process import BrokerProcess
from mesh_tests.crash.ledger import Ledger
from mesh_tests.crash.traffic import Traffic
from wire.message import decode

BEFORE, BACKUPS = 2000, 3


def test_a_backup_under_load_has_what_was_accepted_and_not_what_was_settled(tmp_path: Path) -> None:
    broker, queue = BrokerProcess(tmp_path), Ledger()
    broker.start()
    traffic = Traffic(broker.port, random.Random(1), queue, Ledger(), count(1))
    traffic.run(until=lambda: len(queue.confirmed) > BEFORE)
    # Not a thread: it would keep the clients from going on, not the broker.
    with ProcessPoolExecutor(1) as process:
        for number in range(BACKUPS):
            accepted, confirmed = set(queue.accepted), set(queue.confirmed)
            backup = process.submit(back_up, broker.data, tmp_path / f"copy{number}")
            # Of a short queue it takes a moment: the broker goes on during it, or after it.
            traffic.run(until=partial(has_gone_on, backup, queue, len(confirmed)))
            assert backup.result().findings == []
            kept = orders_in(tmp_path / f"copy{number}")
            assert accepted - queue.settled - queue.dies_at.keys() <= kept
            assert not kept & confirmed
            assert len(queue.confirmed) > len(confirmed), "the broker is gone"
    traffic.close()
    assert broker.stop() == 0


def has_gone_on(backup: Future[CheckReport], queue: Ledger, confirmed: int) -> bool:
    return backup.done() and len(queue.confirmed) > confirmed


def orders_in(directory: Path) -> set[int]:
    with reading(directory) as store:
        bodies = [stored.body for stored in stored_messages(store, "orders")]
        return {decode(body.read_bytes() if isinstance(body, Path) else body).message_id for body in bodies}
