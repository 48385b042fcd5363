"""What does a topology resolve to?"""

from __future__ import annotations

import pytest

from addressing.topology.loader import parse_topology
from mesh.change.resolution import resolve
from mesh.change.resource import Difference, ResourceKind, difference
from mesh.change.source import TopologySource, kept_ports
from mesh_tests.unit.mesh.change.topologies import source_of

TEXT = """\
mesh: m
routers:
  r1: {listeners: [5672], connect: [{to: r2, cost: 3}]}
  r2:
    listeners:
      - {port: 5671, tls: true}
brokers:
  b1: {data: ./b1, routers: [r2]}
addresses:
  orders: {type: queue, max_messages: 5}
  q.#: queue
  q.*.x: anycast
"""


def test_each_resource_has_its_values_nodes_and_line() -> None:
    resources = resolve(source_of(TEXT)).resources
    named = {f"{kind} {name}": (resource.nodes, resource.line) for (kind, name), resource in resources.items()}
    assert {name: found for name, found in named.items() if not name.startswith("settings")} == {
        "router r1": (("r1",), 3),
        "router r2": (("r2",), 4),
        "listener r1 127.0.0.1:5672": (("r1",), 3),
        "listener r2 127.0.0.1:5671": (("r2",), 6),
        "broker b1": (("b1",), 8),
        "connection r1 - r2": (("r1", "r2"), 3),
        "attachment r2 - b1": (("r2", "b1"), 8),
        "address orders": ((), 10),
        "address q.#": ((), 11),
        "address q.*.x": ((), 12),
        "user anonymous": ((), None),
    }
    listener = resources[ResourceKind.LISTENER, "r2 127.0.0.1:5671"]
    assert (listener.values["tls"], listener.values["authentication"]) == (True, "none")
    assert resources[ResourceKind.CONNECTION, "r1 - r2"].values == {
        "dialer": "r1",
        "cost": 3,
        "host": "127.0.0.1",
        "port": 26672,
    }
    orders = resources[ResourceKind.ADDRESS, "orders"].values
    assert (orders["brokers"], orders["max_messages"], orders["when_full"]) == (("b1",), 5, "block")


def test_addresses_in_use_get_the_values_of_the_pattern_that_matches_best() -> None:
    resolved = resolve(source_of(TEXT), ["q.a", "q.a.x", "nobody"])
    assert resolved.value(ResourceKind.ADDRESS, "q.a", "declared_by") == "q.#"
    assert resolved.value(ResourceKind.ADDRESS, "q.a", "max_queues") == 100_000
    assert resolved.value(ResourceKind.ADDRESS, "q.a.x", "type") == "anycast"
    assert (ResourceKind.ADDRESS, "nobody") not in resolved.resources


def test_a_pattern_of_another_file_gets_the_values_of_the_pattern_around() -> None:
    resolved = resolve(source_of(TEXT), ["q.a.#", "q.*", "other.#"])
    assert resolved.value(ResourceKind.ADDRESS, "q.a.#", "declared_by") == "q.#"
    assert resolved.value(ResourceKind.ADDRESS, "q.*", "declared_by") == "q.#"
    assert (ResourceKind.ADDRESS, "other.#") not in resolved.resources


def test_a_name_that_is_spelt_out_makes_no_difference() -> None:
    spelt = TEXT.replace("q.#: queue", "q.#: {type: queue, broker: b1, priority: 4}")
    spelt = spelt.replace("  r1: {", "  r1: {port: 26671, host: 127.0.0.1, ").replace("mesh: m", "# our mesh\nmesh: m")
    before, after = resolve(source_of(TEXT)), resolve(source_of(spelt))
    assert difference(before, after) == ()
    assert before.digest() == after.digest()


def test_the_digest_does_not_tell_the_order_of_a_file_but_every_value() -> None:
    one, other = (
        "mesh: m\nrouters: {r1: {port: 1}, r2: {port: 2}}\n",
        "mesh: m\nrouters: {r2: {port: 2}, r1: {port: 1}}\n",
    )
    assert resolve(source_of(one)).digest() == resolve(source_of(other)).digest()
    assert resolve(source_of(one)).digest() != resolve(source_of(one.replace("port: 2", "port: 3"))).digest()


def test_a_user_has_his_name_in_his_patterns() -> None:
    resolved = resolve(source_of(TEXT + "users: {alice: {send: ['${user}.#', alice.#]}}\n"))
    assert resolved.value(ResourceKind.USER, "alice", "send") == ("alice.#",)
    assert (ResourceKind.USER, "anonymous") not in resolved.resources


def test_a_difference_is_applied_only_to_what_it_was_made_of() -> None:
    before, after = resolve(source_of(TEXT)), resolve(source_of(TEXT.replace("max_messages: 5", "max_messages: 6")))
    (changed,) = difference(before, after)
    assert [(each.name, each.before, each.after) for each in changed.changes] == [("max_messages", 5, 6)]
    assert before.changed([changed]) == after
    with pytest.raises(ValueError, match="address 'orders' is not as the plan expects it before the step"):
        after.changed([changed])
    assert before.changed([Difference(resource, None) for resource in before.resources.values()]).resources == {}


PORTS = "mesh: m\nrouters: {{{}}}\n"


def ports(before: str, after: str) -> dict[str, int]:
    return kept_ports(source_of(PORTS.format(before)), source_of(PORTS.format(after)))


def test_nodes_keep_their_ports_when_a_router_is_inserted_before_them() -> None:
    assert ports("r1: , r2: ", "r0: , r1: , r2: ") == {"r1": 26671, "r2": 26672, "r0": 26673}


def test_a_node_gets_the_port_that_the_file_names() -> None:
    assert ports("r1: , r2: ", "r1: {port: 26680}, r2: ") == {"r1": 26680, "r2": 26672}
    named = ports("r1: , r2: ", "r0: {port: 26690}, r1: , r3: {port: 26671}")
    assert named == {"r0": 26690, "r3": 26671, "r1": 26673}


def test_a_new_node_gets_no_port_that_is_in_use_on_the_way() -> None:
    assert ports("r1: , r2: ", "r3: , r2: ") == {"r2": 26672, "r3": 26673}
    assert ports("r1: {listeners: [26672]}", "r1: , r2: ") == {"r1": 26671, "r2": 26673}


def test_ports_of_a_topology_without_a_file_are_those_that_it_has() -> None:
    before, after = parse_topology(PORTS.format("r1: ")), parse_topology(PORTS.format("r0: , r1: "))
    assert kept_ports(TopologySource(before), TopologySource(after)) == {"r0": 26671, "r1": 26672}
