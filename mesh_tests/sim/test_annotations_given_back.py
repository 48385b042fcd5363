"""What a consumer says of a message that it gives back reaches the next consumer, by whatever way it comes. [3.4.5]"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_broker_routes import mesh_of
from wire.codec.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Pairs,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from wire.codec.values import decode as decode_value
from wire.codec.values import encode as encode_value
from wire.delivery import RELEASED, Outcome, OutcomeCode, rejected
from wire.sections import scan

MESH = {
    "mesh": "mesh",
    "node_tls": False,
    "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
    "addresses": {"jobs": "anycast"},
}
OUTCOMES = {
    "released": RELEASED,
    "rejected": rejected("amqp:decode-error", "no"),
    "modified": Outcome(OutcomeCode.MODIFIED, annotations={"x-why": "no"}),
    "failed": Outcome(OutcomeCode.MODIFIED, delivery_failed=True, annotations={"x-why": "no"}),
    "not here": Outcome(OutcomeCode.MODIFIED, undeliverable_here=True, annotations={"x-why": "no"}),
    "failed here": Outcome(
        OutcomeCode.MODIFIED, delivery_failed=True, undeliverable_here=True, annotations={"x-why": "no"}
    ),
}
AGAIN = {
    "released": (0, {}),
    "modified": (0, {"x-why": "no"}),
    "failed": (1, {"x-why": "no"}),
    "not here": (0, {"x-why": "no"}),
    "failed here": (1, {"x-why": "no"}),
}


def seen(receiver: SimReceiver) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for data in receiver.messages:
        message = Message()
        message.decode(data)
        found.append((message.delivery_count, dict(message.annotations or {})))
    return found


def send_one(mesh: SimMesh, address: str) -> None:
    sender = mesh.client("r2", "producer").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(body="1", durable=True).encode())
    mesh.run_until(lambda: len(sender.outcomes) == 1)


def given_back(folder: Path, address: str, outcome: Outcome) -> SimMesh:
    """One message of ``address`` had a consumer at r1 that gave ``outcome``, and has none now."""
    mesh = mesh_of(folder, b1=["r1"], b2=["r3"])
    first = mesh.client("r1", "first").receiver(address, credit=1)
    mesh.run_until(lambda: first.link.is_open)
    first.accepts = False
    send_one(mesh, address)
    mesh.run_until(lambda: bool(first.held))
    first.settle(outcome)
    mesh.run(5.0)
    return mesh


@pytest.mark.parametrize("at", [("r1", "r1"), ("r1", "r3")], ids=" and ".join)
@pytest.mark.parametrize("address", ["orders", "sharded"])
@pytest.mark.parametrize("said", OUTCOMES)
def test_an_outcome_at_a_sharded_queue_is_that_at_a_plain_one(
    tmp_path: Path, address: str, at: tuple[str, str], said: str
) -> None:
    """The next consumer is there already."""
    mesh = mesh_of(tmp_path, b1=["r1"], b2=["r3"])
    first = mesh.client(at[0], "first").receiver(address, credit=1)
    mesh.run_until(lambda: first.link.is_open)
    first.accepts = False
    send_one(mesh, address)
    mesh.run_until(lambda: bool(first.held))
    second = mesh.client(at[1], "second").receiver(address, credit=1)
    mesh.run(1.0)
    first.settle(OUTCOMES[said])
    mesh.run(5.0)
    assert seen(second) == ([AGAIN[said]] if said in AGAIN else [])
    assert len(first.messages) == 1


@pytest.mark.parametrize("address", ["orders", "sharded"])
@pytest.mark.parametrize("said", AGAIN)
def test_who_comes_later_gets_what_was_given_back(tmp_path: Path, address: str, said: str) -> None:
    mesh = given_back(tmp_path, address, OUTCOMES[said])
    second = mesh.client("r1", "second").receiver(address, credit=1)
    mesh.run(5.0)
    assert seen(second) == [AGAIN[said]]


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


EVERY_TYPE: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "ubyte": UByte(1),
    "ushort": UShort(1),
    "uint": UInt(1),
    "ulong": ULong(1),
    "byte": Byte(-1),
    "short": Short(-1),
    "int": Int(-1),
    "long": -1,
    "float": Float(0.5),
    "double": 0.5,
    "decimal32": Decimal32(bytes(4)),
    "decimal64": Decimal64(bytes(8)),
    "decimal128": Decimal128(bytes(16)),
    "char": Char("\u00e9"),
    "timestamp": Timestamp(1),
    "uuid": UUID(int=1),
    "binary": b"\x00",
    "string": "\u00e9",
    "symbol": Symbol("a"),
    "list": [1, UInt(2), []],
    "map": {Symbol("a"): {1: None}},
    "map of like keys": Pairs(((1, None), (UInt(1), None))),
    "array": Array(0x70, (UInt(1), UInt(2))),
    "described": Described(Symbol("a"), [1]),
    "deep": nested(24),
}


@pytest.mark.parametrize("address", ["orders", "sharded"])
def test_annotations_of_every_type_come_as_they_were_given(tmp_path: Path, address: str) -> None:
    mesh = given_back(tmp_path, address, Outcome(OutcomeCode.MODIFIED, undeliverable_here=True, annotations=EVERY_TYPE))
    second = mesh.client("r1", "second").receiver(address, credit=1)
    mesh.run_until(lambda: bool(second.messages))
    head = scan(second.messages[0])
    section = decode_value(second.messages[0][head.annotations_start : head.annotations_end])
    assert encode_value(section) == encode_value(
        Described(ULong(0x72), {Symbol(name): value for name, value in EVERY_TYPE.items()})
    )


@pytest.mark.parametrize("said", ["modified", "failed", "not here", "failed here"])
@pytest.mark.parametrize("at", ["r1", "r3"])
def test_annotations_of_a_consumer_reach_the_producer_of_an_anycast_address(at: str, said: str) -> None:
    mesh = SimMesh(MESH)
    mesh.converge()
    receiver = mesh.client(at, "consumer").receiver("jobs")
    receiver.accepts = False
    sender = mesh.client("r1", "producer").sender("jobs")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(body="1").encode())
    mesh.run_until(lambda: bool(receiver.held))
    receiver.settle(OUTCOMES[said])
    mesh.run_until(lambda: len(sender.outcomes) == 1)
    outcome = sender.outcomes[1]
    assert (outcome.kind, dict(outcome.annotations)) == (OutcomeCode.MODIFIED, {"x-why": "no"})
    assert (outcome.delivery_failed, outcome.undeliverable_here) == ("failed" in said, "here" in said)
