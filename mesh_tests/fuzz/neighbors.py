"""What a hostile router or edge router says at a node port: its OPEN, control links, circuits and control messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from mesh_tests.fuzz import encodings as amqp
from mesh_tests.fuzz.encodings import NULL, Maker, hostile_value

CONTROL, CIRCUIT = "amqpmesh.control", "amqpmesh.circuit"
OPCODES = ("HELLO", "HELLO", "HELLO", "RA", "LSR", "LSU", "LSU", "MAU", "MAU", "MAR", "ASK", "REACH", "X")
ROUTERS = ("r9", "r9", "r1", "r2", "e1", "r" * 300, "")
KEYS = ("M0work.fuzz", "X0prices.fuzz", "B:b1", "E:e1", "M1shards.fuzz", "", "Z", "M", "M0" + "k" * 300, "B:", "M9x")
KINDS = ("anycast", "stream", "multicast", "multicast-settled", "multicast-stream", "route", "x")


@dataclass(frozen=True)
class Voice:
    """What a peer says differently from a client. ``attach``: makers of fields of its attaches, by their names."""

    opening: Callable[[Random], bytes] | None = None
    attach: Callable[[Random], dict[str, bytes]] = lambda random: {}
    payload: Maker | None = None


def _opening(role: str) -> Callable[[Random], bytes]:
    def make(random: Random) -> bytes:
        properties = {
            "product": amqp.string("amqpmesh"),
            "version": amqp.string("0.1.0"),
            "amqpmesh.role": amqp.string(role) if random.random() < 0.9 else hostile_value(random),
            "amqpmesh.instance": amqp.ulong(5) if random.random() < 0.9 else hostile_value(random),
        }
        pairs = (part for name, value in properties.items() for part in (amqp.symbol(name), value))
        name = random.choice(ROUTERS) if random.random() < 0.3 else random.choice(("r9", "e9"))
        fields = [amqp.string(name), NULL, amqp.uint(16_384), NULL, NULL, NULL, NULL, NULL, NULL, amqp.map_of(*pairs)]
        return amqp.described(0x10, amqp.list_of(*fields))

    return make


def _attach(random: Random) -> dict[str, bytes]:
    """Two attaches in three are the control link's, the others are circuits."""
    if random.random() < 0.66:
        capabilities = amqp.symbol(CONTROL)
        return {"target": amqp.described(0x29, amqp.list_of(*[NULL] * 6, capabilities)), "role": amqp.FALSE}
    return {"properties": amqp.map_of(amqp.symbol(CIRCUIT), amqp.string(_circuit(random)))}


def _circuit(random: Random) -> str:
    spec: dict[str, Any] = {
        "kind": random.choice(KINDS),
        "address": random.choice(("work.fuzz", "prices.fuzz", "orders.fuzz", "unknown", "closed")),
        "ingress": random.choice(ROUTERS),
        "path": random.choice((["r9", "r2"], ["r9", "r2", "r1"], ["r2"], [], ["r9", "r2"] * 50)),
        "tree": random.choice(({}, {"r2": {}}, {"r2": {"r1": {}}}, {"r1": {"r2": {"r1": {}}}})),
        "broker": random.choice(("b1", "b2", "x")),
        "client": "c",
        "link_name": "l",
        "phase": random.choice((0, 1, 7)),
        "priority": random.choice((0, 4, 9, 10, -1)),
    }
    for _ in range(random.choice((0, 0, 1, 2))):
        spec[random.choice(list(spec))] = _any_json(random)
    text = json.dumps(spec)
    return text if random.random() < 0.9 else text[: random.randrange(len(text))]


def _any_json(random: Random) -> Any:
    return random.choice((None, True, -1, 1 << 70, 1.5, "", "x" * 5000, [], [[]], {}, {"a": {"a": []}}, ["r9", 3]))


def _number(random: Random) -> bytes:
    return random.choice((amqp.ulong(1), amqp.uint(3), amqp.ulong((1 << 64) - 1), b"\x54\xff", hostile_value(random)))


def _texts(random: Random) -> bytes:
    values: list[Any] = random.choices(KEYS, k=random.randrange(6))
    if random.random() < 0.2:
        values.append(_any_json(random))
    match random.randrange(4):
        case 0:
            return amqp.list_of(*(amqp.string(str(value)) for value in values))
        case 1:
            return amqp.string("[" * 3000)
        case _:
            return amqp.string(json.dumps(values))


def _costs(random: Random) -> bytes:
    value = random.choice(({"r1": 1}, {"r9": 1, "r2": 1 << 40}, {"r2": 0}, {"": 1}, {"r2": "x"}, [], {"r2": [1, 2, 3]}))
    return amqp.string(json.dumps(value))


def control_message(random: Random) -> bytes:
    """An opcode with the keys that it may have, each well-formed, of another type, or hostile."""
    keys: dict[str, bytes] = {
        "id": amqp.string(random.choice(ROUTERS)),
        "pv": amqp.ulong(1),
        "area": amqp.string("0"),
        "instance": _number(random),
        "ls_seq": _number(random),
        "mobile_seq": _number(random),
        "checksum": _number(random),
        "cost": random.choice((amqp.ulong(1), _number(random))),
        "seen": _texts(random),
        "have": _costs(random),
        "ls": amqp.map_of(amqp.string("peers"), _costs(random)),
        "router": amqp.string(random.choice(ROUTERS)),
        "have_seq": _number(random),
    }
    for name in ("add", "del", "exist", "since", "several", "taken", "none", "announced"):
        if random.random() < 0.3:
            keys[name] = _number(random) if name == "since" else _texts(random)
    for _ in range(random.choice((0, 0, 1, 2))):
        keys[random.choice(list(keys))] = amqp.any_value(random)
    if random.random() < 0.1:
        keys.pop(random.choice(list(keys)))
    body = amqp.map_of(*(part for name, value in keys.items() for part in (amqp.string(name), value)))
    opcode = amqp.map_of(amqp.string("opcode"), amqp.string(random.choice(OPCODES)))
    return amqp.described(0x74, opcode) + amqp.described(0x77, body)


def _control_payload(random: Random) -> bytes:
    message = control_message(random)
    if random.random() < 0.1:
        where = random.randrange(len(message))
        return message[:where] + random.randbytes(1) + message[where + 1 :]
    return message


CLIENT = Voice()
ROUTER = Voice(_opening("router"), _attach, _control_payload)
EDGE = Voice(_opening("edge"), _attach, _control_payload)
