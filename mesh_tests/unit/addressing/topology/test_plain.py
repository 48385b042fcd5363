"""A topology that was handed over answers as the one that was read, and takes no library for it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from addressing.topology import plain
from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from addressing.topology.part import TopologyPart
from addressing.topology.queries import BrokerQueries, RouterQueries, TopologyQueries
from mesh_tests.programs import IMPORT_PATH

ROOT = Path(__file__).parents[4]
EXAMPLES = sorted((ROOT / "topologies").glob("*.yml"))
EVERYTHING = """
mesh: m
routers:
  r1: {listeners: [5672, {port: 5671, tls: true, authentication: optional}], connect: [{to: r2, cost: 3, port: 9}]}
  r2: {host: 10.0.0.2}
  e1: {mode: edge, connect: [{to: r2, cost: 5}, r1]}
brokers:
  b1: {data: ./data, routers: [r2]}
  b2: {url: "amqps://user:word@example.org:5671", subscriptions: by_user, share_connections: true, tls: {ca: ./ca.pem}}
default_broker: b1
addresses:
  orders: queue
  jobs.x: {type: anycast, distribution: closest, spill: true, fallback: orders}
  news.#: {type: topic, broker: b2, link_log: full}
link_logs: {level: "off", redact: {key: ./key, columns: [user]}}
"""


def parts_of(value: Any, other: Any) -> list[tuple[Any, Any]]:
    """All parts of a topology, each with the plain part in its place; fails where another value differs."""
    if isinstance(value, TopologyPart):
        assert type(other).__name__.startswith("Plain")
        names = type(value).model_fields
        return [
            (value, other),
            *(pair for name in names for pair in parts_of(getattr(value, name), getattr(other, name))),
        ]
    if isinstance(value, dict):
        assert list(value) == list(other)
        return [pair for key in value for pair in parts_of(value[key], other[key])]
    if isinstance(value, tuple):
        assert len(value) == len(other)
        return [pair for each in zip(value, other, strict=True) for pair in parts_of(*each)]
    assert (type(value), value) == (type(other), other)
    return []


def answers(part: Any) -> dict[str, Any]:
    """What a part answers to all questions that take no argument, or the name of a router or broker."""
    queries = next((kind for kind in (TopologyQueries, RouterQueries, BrokerQueries) if isinstance(part, kind)), None)
    found = {}
    for name, member in vars(queries).items() if queries is not None else ():
        if isinstance(member, property):
            found[name] = getattr(part, name)
    if isinstance(part, TopologyQueries):
        found["edges"] = list(part.edges())
        found["costs"] = {router: part.costs_at(router) for router in part.routers}
        found["brokers at"] = {router: part.brokers_at(router) for router in part.routers}
        found["routers of"] = {broker: part.routers_of(broker) for broker in part.brokers}
        found["brokers of"] = {name: part.brokers_of(each) for name, each in part.addresses.items()}
        found["place"] = part.locate(Path("data")), part.locate(Path("~/data"))
    return found


def load(tmp_path: Path, text: str) -> Topology:
    (tmp_path / "amqpmesh.yml").write_text(text)
    return load_topology(tmp_path / "amqpmesh.yml")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_a_plain_topology_has_all_values_and_answers_of_the_model(file: Path) -> None:
    check_same(load_topology(file))


def test_a_plain_topology_has_values_of_every_kind(tmp_path: Path) -> None:
    check_same(load(tmp_path, EVERYTHING))


def check_same(topology: Topology) -> None:
    found = plain.read(plain.written(topology))
    assert found.file == topology.file
    pairs = parts_of(topology, found)
    assert len(pairs) > len(topology.routers)
    for part, other in pairs:
        assert answers(part) == answers(other)


def test_a_plain_topology_does_not_change(tmp_path: Path) -> None:
    found: Any = plain.read(plain.written(load(tmp_path, EVERYTHING)))
    with pytest.raises(AttributeError, match="a topology does not change"):
        found.routers["r1"].port = 1


def test_parts_with_equal_values_are_equal(tmp_path: Path) -> None:
    found = plain.read(plain.written(load(tmp_path, EVERYTHING)))
    assert found.brokers["b1"].tls != found.brokers["b2"].tls
    assert found == plain.read(plain.written(load(tmp_path, EVERYTHING)))
    assert hash(found.routers["r1"]) == hash(found.routers["r2"])


def test_whoever_reads_a_plain_topology_imports_no_model_and_no_reader(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(plain.written(load(tmp_path, EVERYTHING)))
    code = (
        "import sys; from pathlib import Path; from addressing.topology import plain; "
        "topology = plain.read(Path(sys.argv[1]).read_bytes()); topology.brokers['b2'].location; "
        "sys.exit(any(name.partition('.')[0] in ('pydantic', 'pydantic_core', 'ruamel') for name in sys.modules))"
    )
    command = [sys.executable, "-P", "-c", code, str(tmp_path / "plain")]
    assert subprocess.run(command, env=os.environ | IMPORT_PATH, check=False).returncode == 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nothing",
        pickle.dumps({"orders": os.system}),
        pickle.dumps({"orders": Path("orders")}),
        b"\x80\x04caddressing.topology.plain\nio.BytesIO\n.",
        b"\x80\x04\x8c\x19addressing.topology.plain\x8c\x0aio.BytesIO\x93)R.",
        b"\x80\x04\x8c\x19addressing.topology.plain\x8c\x07nothing\x93)R.",
        b"\x80\x04caddressing.topology.plain\nwritten\n(tR.",
        b"\x80\x04caddressing.nowhere\nX\n(tR.",
    ],
)
def test_bytes_that_are_no_declarations_are_refused_and_call_nothing(data: bytes) -> None:
    with pytest.raises(ValueError, match="the declarations of addresses cannot be read"):
        plain.read_addresses(data)


def test_declarations_are_read_as_they_were_written(tmp_path: Path) -> None:
    addresses = load(tmp_path, EVERYTHING).addresses
    found = plain.read_addresses(plain.written_addresses(addresses))
    assert list(found) == list(addresses)
    for name, entry in addresses.items():
        assert parts_of(entry, found[name])
