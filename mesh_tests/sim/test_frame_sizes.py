"""Does every frame fit its reader, whatever clients say, and however small the frames are that a node or client takes?

Each case puts one large thing into the mesh, at sizes around the limit of the connections on its way. A bystander sends
over the same connections: none of his messages is lost, and no connection between nodes ends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from proton import Message

import broker.node
import mesh.simulation.sim_mesh
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from wire import frame_size
from wire.delivery import ACCEPTED, Outcome, OutcomeCode
from wire.endpoint import Endpoint
from wire.errors import AmqpError
from wire.terminus import Durability, Expiry

LISTENER_BYTES = 1 << 20
LIMITS = (512, 4096, 16384)
MESSAGE = Message(body="x").encode()
TOO_SMALL = "amqp:frame-size-too-small"
DURABLE = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}


def around(limit: int) -> list[int]:
    """Sizes of what is to be passed on; the frame that has it is somewhat larger."""
    near = (-600, -300, -200, -150, -100, -60, -30, 0)
    return sorted({limit + each for each in near if limit + each > 0} | {2 * limit, 70_000})


@pytest.fixture(autouse=True)
def oversized(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Frames that were larger than their reader takes. [2.7.1]"""
    found: list[str] = []
    rests: dict[int, bytes] = {}
    receive = Endpoint.receive

    def look(endpoint: Endpoint, chunk: bytes) -> None:
        data = rests.pop(id(endpoint), b"") + bytes(chunk)
        while len(data) >= 8:
            if data[:4] == b"AMQP":
                data = data[8:]
                continue
            (size,) = struct.unpack(">I", data[:4])
            if size > endpoint.settings.max_frame_bytes:
                found.append(f"{size} bytes for {endpoint.settings.container_id}: {data[8:60]!r}")
            if len(data) < size:
                break
            data = data[size:]
        rests[id(endpoint)] = data
        receive(endpoint, chunk)

    monkeypatch.setattr(Endpoint, "receive", look)
    yield found
    assert found == []


class World:
    """r1 - r2 - r3 with a broker; nodes take frames of ``limit`` bytes, listeners of LISTENER_BYTES."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, limit: int) -> None:
        settings_of = mesh.simulation.sim_mesh.node_endpoint_settings
        monkeypatch.setattr(
            mesh.simulation.sim_mesh,
            "node_endpoint_settings",
            lambda *told, **more: replace(settings_of(*told, **more), max_frame_bytes=limit),
        )
        monkeypatch.setattr(
            broker.node,
            "Endpoint",
            lambda settings, peer, dirty: Endpoint(replace(settings, max_frame_bytes=limit), peer, dirty),
        )
        listeners = [{"max_frame_bytes": LISTENER_BYTES}]
        self.mesh = SimMesh(
            {
                "mesh": "frames",
                "node_tls": False,
                "routers": {
                    "r1": {"connect": ["r2"], "listeners": listeners},
                    "r2": {"connect": ["r3"], "listeners": listeners},
                    "r3": {"listeners": listeners},
                },
                "brokers": {name: {"data": name, "routers": ["r3"]} for name in ("b1", "b2")},
                "addresses": {
                    "orders": {"type": "queue", "broker": "b1"},
                    "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
                    "news.#": {"type": "topic", "broker": "b1"},
                    "rpc.#": "anycast",
                    "prices.#": "multicast",
                    "by": "anycast",
                    "kept": {"type": "queue", "broker": "b1"},
                },
            },
            folder,
        )
        self.mesh.converge()
        self.mesh.run_until(lambda: all(each.is_up for each in self.mesh.routers["r3"].snapshot().brokers))
        self.mesh.run(0.2)
        self._count = 0
        self._taking = [self.client("r3").receiver(address, credit=1000) for address in ("by", "kept")]
        self._sending = [self.client("r1").sender(address) for address in ("by", "kept")]
        self.nodes = self._between_nodes()

    def client(self, router: str, container_id: str = "", takes: int = LISTENER_BYTES) -> SimClient:
        self._count += 1
        client = self.mesh.client(router, container_id or f"c{self._count}", max_frame_bytes=takes)
        self.mesh.run_until(lambda: client.endpoint.is_open)
        return client

    def _between_nodes(self) -> set[Any]:
        return {pipe for pipe in self.mesh.pipes if not any(isinstance(node, SimClient) for node, _ in pipe.ends)}

    def check_bystander(self) -> None:
        """What he sent came, and the connections between nodes are those of the beginning."""
        for sender in self._sending:
            self.mesh.send(sender, MESSAGE)
        self.mesh.run_until(lambda: not any(sender.open for sender in self._sending), 5)
        assert [set(sender.outcomes.values()) for sender in self._sending] == [{ACCEPTED}] * 2
        assert [len(taking.messages) for taking in self._taking] == [len(sender.outcomes) for sender in self._sending]
        assert not any(pipe.is_cut or pipe not in self.mesh.pipes for pipe in self.nodes)


# What clients ask for
FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "name": lambda text: {"name": text},
    "filter": lambda text: {"filter": {"why": text}},
    "properties": lambda text: {"properties": {"why": text}},
    "capabilities": lambda text: {"capabilities": tuple(text[at : at + 100] for at in range(0, len(text), 100))},
    "name of a durable one": lambda text: {"name": text, **DURABLE},
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("address", ["orders", "sharded", "news.a", "rpc.a"])
@pytest.mark.parametrize("field", FIELDS)
def test_an_attach_is_answered_or_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, field: str, address: str, limit: int
):
    world = World(monkeypatch, tmp_path, limit)
    told = []
    for size in around(limit):
        client = world.client("r1")
        link = client.receiver(address, **FIELDS[field]("x" * size))
        world.mesh.run_until(lambda link=link: link.error is not None or link.link.is_open, 5)
        told.append((size, getattr(link.error, "condition", None)))
        client.endpoint.close()
        world.check_bystander()
    refused = [size for size, condition in told if condition == TOO_SMALL]
    is_passed_on = address in ("orders", "news.a")
    assert {condition for _, condition in told} <= {None, TOO_SMALL, "amqp:not-implemented"}
    if is_passed_on and (field, address) != ("filter", "sharded"):
        assert refused == [size for size, _ in told if size >= refused[0]]
        assert limit - 600 <= refused[0] <= limit


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_a_container_id_of_any_size_ends_at_the_router(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, role: str, limit: int
):
    world = World(monkeypatch, tmp_path, limit)
    for size in around(limit):
        client = world.client("r1", "c" * size)
        link: Any = client.sender("orders") if role == "sender" else client.receiver("orders")
        world.mesh.run_until(lambda link=link: link.error is not None or link.link.is_open, 5)
        assert size < limit or link.error.condition == TOO_SMALL
        client.endpoint.close()
        world.check_bystander()


def test_the_reason_says_how_many_bytes_are_how_many_too_much(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    world = World(monkeypatch, tmp_path, 16384)
    receiver = world.client("r1").receiver("orders", filter={"why": "x" * 20_000})
    world.mesh.run_until(lambda: receiver.error is not None, 1)
    assert receiver.error.condition == TOO_SMALL
    assert "and r2 takes frames of at most 16384 bytes" in receiver.error.description
    size = int(receiver.error.description.split("has ")[1].split(" ")[0])
    assert 20_000 < size < 20_400


@pytest.mark.parametrize("address", ["rpc.", "prices."])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("letter", ["a", "\u00e9", "\U0001f600", "\x01"])
def test_an_address_of_any_length_has_circuits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, letter: str, limit: int, address: str
):
    world = World(monkeypatch, tmp_path, limit)
    for length in (1, 20, 60, 100, 300, 1000):
        receiver = world.client("r3").receiver(address + letter * length)
        sender = world.client("r1").sender(address + letter * length)
        world.mesh.send(sender, MESSAGE)
        world.mesh.run_until(lambda receiver=receiver: len(receiver.messages) == 1, 5)
        world.check_bystander()


# Answers to clients that take small frames
@pytest.mark.parametrize("takes", [512, 4096])
@pytest.mark.parametrize("address", ["orders", "rpc.a", "nowhere", None])
@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_small_frames_of_a_client_are_heeded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, role: str, address: str | None, takes: int
):
    world = World(monkeypatch, tmp_path, 16384)
    find_excess = frame_size.find_excess

    def unless_a_clients(link: Any) -> tuple[int, int] | None:
        return None if link.endpoint.settings.container_id.startswith("c") else find_excess(link)

    monkeypatch.setattr(frame_size, "find_excess", unless_a_clients)
    for size in [*around(takes), 5_000]:
        client = world.client("r1", takes=takes)
        attach = client.sender if role == "sender" else client.receiver
        link: Any = attach(address, name="n" * size)
        world.mesh.run_until(lambda: link.error is not None or link.link.is_open or client.closed, 5)  # noqa: B023
        assert size < takes or client.closed.condition == TOO_SMALL
        client.endpoint.close()
        world.check_bystander()


# What is said of deliveries
def error_of(text: str) -> dict[str, Outcome]:
    return {
        "description": Outcome(OutcomeCode.REJECTED, AmqpError("app:error", text)),
        "info": Outcome(OutcomeCode.REJECTED, AmqpError("app:error", "no", {"why": text})),
        "all": Outcome(OutcomeCode.REJECTED, AmqpError("app:error", text, {"why": text})),
        # A symbol is ASCII. [1.6.21]
        "condition": Outcome(OutcomeCode.REJECTED, AmqpError(f"app:{'x' * len(text.encode())}", "no")),
        "annotations": Outcome(OutcomeCode.MODIFIED, delivery_failed=True, annotations={"x-why": text}),
    }


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("address", ["rpc.a", "prices.a", "orders", "sharded"])
@pytest.mark.parametrize("what", error_of(""))
def test_what_a_consumer_says_of_a_delivery_is_made_to_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str, address: str, limit: int
):
    world = World(monkeypatch, tmp_path, limit)
    receiver = world.client("r1").receiver(address, credit=100)
    receiver.accepts = False
    sender = world.client("r3").sender(address)
    for size in around(limit):
        sent = world.mesh.send(sender, MESSAGE)
        world.mesh.run_until(lambda: receiver.held)
        outcome = error_of("\u00e4" * (size // 2))[what]
        receiver.settle(outcome)
        world.mesh.run(0.1)
        if address in ("rpc.a", "prices.a"):
            _check_as_much_as_fits(sender.outcomes[sent], outcome, limit, size)
        receiver.held.clear()
        world.check_bystander()


def _check_as_much_as_fits(told: Outcome, given: Outcome, limit: int, size: int) -> None:
    assert told.kind == given.kind
    if given.error is None:
        assert told.delivery_failed
        assert told.annotations in (None, given.annotations)
        assert bool(told.annotations) or size > limit - 200
        return
    assert told.error is not None
    for said, whole in (
        (told.error.condition, given.error.condition),
        (told.error.description, given.error.description),
    ):
        assert said == whole or (said.endswith("...") and whole.startswith(said[:-3]) and len(said) > 3) or not said
    assert told.error.info in (None, given.error.info)
    if size < limit - 300 and told.error.description and not (given.error.info and given.error.description != "no"):
        assert (told.error.description, told.error.info) == (given.error.description, given.error.info)


# How links, sessions and connections end
ENDINGS: dict[str, Callable[[SimClient, Any, AmqpError], None]] = {
    "detach": lambda client, link, error: link.link.detach(error),
    "close of a link": lambda client, link, error: link.link.close(error),
    "end": lambda client, link, error: client.begin().end(error),
    "close": lambda client, link, error: client.endpoint.close(error),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("address", ["orders", "rpc.a"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_error_with_which_a_client_leaves_is_made_to_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ending: str, address: str, limit: int
):
    world = World(monkeypatch, tmp_path, limit)
    for size in around(limit):
        for role in ("sender", "receiver"):
            client = world.client("r1")
            link: SimSender | SimReceiver = client.sender(address) if role == "sender" else client.receiver(address)
            world.mesh.run_until(lambda link=link: link.link.is_open, 5)
            ENDINGS[ending](client, link, AmqpError("app:error", "\u20ac" * (size // 3), {"why": "x" * size}))
            world.mesh.run(0.05)
            client.endpoint.close()
        world.check_bystander()


# What the mesh makes itself
@pytest.mark.parametrize(
    ("kind", "count", "arm"),
    [
        ("multicast", 3, 2),
        ("multicast", 20, 2),
        pytest.param("multicast", 300, 10, marks=pytest.mark.timeout(400)),
        ("anycast", 3, 2),
        ("anycast", 20, 10),
    ],
)
def test_circuits_over_many_routers_with_long_names_fit_small_frames(
    monkeypatch: pytest.MonkeyPatch, kind: str, count: int, arm: int
):
    """Among them LSU, MAU and LSR of all of them, which are transfers."""
    settings_of = mesh.simulation.sim_mesh.node_endpoint_settings
    monkeypatch.setattr(
        mesh.simulation.sim_mesh,
        "node_endpoint_settings",
        lambda *told, **more: replace(settings_of(*told, **more), max_frame_bytes=512),
    )
    names = [f"{number:03}".ljust(64, "x") for number in range(count)]
    # A hub with arms: what lies behind the hub is in the attach that goes there.
    routers: dict[str, Any] = {names[0]: {}, names[1]: {"connect": [names[0]]}}
    routers |= {name: {"connect": [names[0] if at % arm == 0 else names[at + 1]]} for at, name in enumerate(names[2:])}
    world = SimMesh({"mesh": "large", "node_tls": False, "routers": routers, "addresses": {"prices": kind}})
    world.converge()
    takers = {"anycast": names[-1:], "multicast": names[2:] if count < 300 else [*names[arm + 1 :: arm], names[-1]]}
    receivers = [world.client(name).receiver("prices") for name in takers[kind]]
    if count == 300:
        world.run(1)  # one tree of all of them, instead of one for each announcement that comes
    sender = world.client(names[1]).sender("prices")
    world.run(1)
    for _ in range(3):
        world.send(sender, MESSAGE)
    world.run_until(lambda: all(len(receiver.messages) == 3 for receiver in receivers), 5)
    world.run_until(lambda: not sender.open, 5)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert not any(pipe.is_cut for pipe in world.pipes)
