"""A full queue among hundreds, over sockets: one sender without an address reaches all, and nodes are killed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import pytest

from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh
from wire.delivery import ACCEPTED, OutcomeCode
from wire.message import Message, decode, encode

LIMIT = 20
QUEUES = 200
FULL = "jobs.full"
TOPOLOGY = f"""
mesh: queues
node_tls: false
routers:
  r1: {{connect: [r2]}}
  r2: {{connect: [r3]}}
  r3:
brokers:
  b1: {{routers: [r3]}}
addresses:
  jobs.#: {{type: queue, max_messages: {LIMIT}}}
"""
KILLS = ("b1", "r2", "r3")


@pytest.fixture
def mesh(start_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_mesh(TOPOLOGY)


def test_a_full_queue_among_others_stops_none_of_them_and_loses_nothing_when_nodes_are_killed(
    mesh: RunningMesh,
) -> None:
    sent: dict[int, tuple[str, int]] = {}
    with WireClient(mesh.port("r1"), container_id="devices") as devices:
        sender = devices.sender(None)

        def send(address: str) -> int:
            devices.wait(lambda: sender.credit > 0, "credit")
            number = devices.send_bytes(sender, encode(Message(to=address, body=len(sent))))
            sent[number] = (address, len(sent))
            return number

        stuck: list[int] = []
        for turn, victim in enumerate((None, *KILLS)):
            if victim is not None:
                mesh.kill(victim)
                mesh.wait_linked()
            others: list[int] = []
            for queue in range(QUEUES):
                if queue % 8 == 0:
                    stuck.append(send(FULL))
                others.append(send(f"jobs.{queue}"))
            kinds = Counter(devices.wait_outcome(number).kind for number in others)
            if turn == 0:
                assert kinds == {OutcomeCode.ACCEPTED: QUEUES}
            assert kinds[OutcomeCode.ACCEPTED] == QUEUES, "no message was under way at the kill"
        with WireClient(mesh.port("r2"), container_id="worker") as worker:
            seen: dict[str, list[int]] = defaultdict(list)

            def take() -> None:
                for arrived in worker.settle_all():
                    message = decode(arrived.data)
                    seen[str(message.to)].append(message.body)

            for address in (FULL, *(f"jobs.{queue}" for queue in range(QUEUES))):
                worker.receiver(address, credit=1_000)

            def is_over() -> bool:
                take()
                if any(number not in devices.outcomes for number in sent):
                    return False
                return all(
                    body in seen[address]
                    for number, (address, body) in sent.items()
                    if devices.outcomes[number] == ACCEPTED
                )

            wait_with([devices, worker], is_over, "every outcome, and every accepted message")
    assert sum(devices.outcomes[number] == ACCEPTED for number in stuck) >= LIMIT
    for address, numbers in seen.items():
        assert {name for name, body in sent.values() if body in numbers} == {address}
        firsts = list(dict.fromkeys(numbers))
        assert firsts == sorted(firsts)
