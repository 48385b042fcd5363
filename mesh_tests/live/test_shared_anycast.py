"""Devices that get commands over a shared circuit, over sockets: one of them takes none, and routers are killed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import pytest

from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh
from wire.delivery import ACCEPTED, OutcomeCode
from wire.message import Message, decode, encode

DEVICES = 200
STUCK = "cmd.stuck"
TOPOLOGY = """
mesh: devices
node_tls: false
routers:
  r1: {connect: [r2]}
  r2: {connect: [r3]}
  r3:
addresses:
  cmd.#: anycast
"""


@pytest.fixture
def mesh(start_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_mesh(TOPOLOGY)


def attach(mesh: RunningMesh) -> WireClient:
    devices = WireClient(mesh.port("r3"), container_id="devices")
    for number in range(DEVICES):
        devices.receiver(f"cmd.{number}", credit=1_000)
    devices.receiver(STUCK, credit=0)
    return devices


def test_each_command_arrives_at_most_once_in_order_while_routers_are_killed(mesh: RunningMesh) -> None:
    sent: dict[int, tuple[str, int]] = {}
    seen: dict[str, list[int]] = defaultdict(list)
    devices = attach(mesh)
    with WireClient(mesh.port("r1"), container_id="control") as control:
        sender = control.sender(None)

        def take() -> None:
            for arrived in devices.settle_all():
                message = decode(arrived.data)
                seen[str(message.to)].append(message.body)

        def send(address: str) -> int:
            def has_credit() -> bool:
                take()
                return sender.credit > 0

            wait_with([control, devices], has_credit, "credit")
            number = control.send_bytes(sender, encode(Message(to=address, body=len(sent))))
            sent[number] = (address, len(sent))
            return number

        def outcomes_of(numbers: list[int]) -> Counter[OutcomeCode]:
            def are_there() -> bool:
                take()
                return all(number in control.outcomes for number in numbers)

            wait_with([control, devices], are_there, "every outcome")
            return Counter(outcome.kind for number in numbers if (outcome := control.outcomes[number]) is not None)

        for victim in (None, "r2", "r3", None):
            others: list[int] = []
            for turn in range(2):
                send(STUCK)
                others += [send(f"cmd.{number}") for number in range(DEVICES)]
                if victim is not None and turn == 0:
                    mesh.kill(victim)
                    if victim == "r3":
                        devices.kill()
                    mesh.wait_linked()
                    if victim == "r3":
                        devices = attach(mesh)
            kinds = outcomes_of(others)
            if victim is None:
                assert kinds == {OutcomeCode.ACCEPTED: 2 * DEVICES}
        take()
        devices.kill()
    accepted = {body for number, (_, body) in sent.items() if control.outcomes.get(number) == ACCEPTED}
    assert len(accepted) > 4 * DEVICES
    bodies = [body for each in seen.values() for body in each]
    assert len(bodies) == len(set(bodies))
    assert accepted <= set(bodies)
    assert STUCK not in seen
    for address, numbers in seen.items():
        assert {name for name, body in sent.values() if body in numbers} == {address}
        assert numbers == sorted(numbers)
