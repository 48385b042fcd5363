"""The addresses to which clients send requests to manage a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.management import managed_node, management_address
from addressing.names import check_node_name


@pytest.mark.parametrize("scheme", ["", "amqp:", "amqp:/", "amqps:", "amqp://host:1/", "AMQP:amqp:"])
@pytest.mark.parametrize(
    ("address", "node"),
    [
        ("$management", "me"),
        ("_topo/0/r2/$management", "r2"),
        ("_topo/all/r2/$management", "r2"),
        ("_edge/e1/$management", "e1"),
        ("_topo/0/r 2\n/$management", "r 2\n"),
    ],
)
def test_an_address_of_management_names_a_node(scheme: str, address: str, node: str) -> None:
    assert managed_node(scheme + address, "me") == node


@pytest.mark.parametrize(
    "address",
    ["", "management", "a$management", "/$management", "$management/", "_topo/0/$management", "_topo/0//$management",
     "_topo//r1/$management", "_topo/0/a/b/$management", "_edge/a/b/$management", "_edge//$management",
     "_topo/0/" + "n" * 256 + "/$management"],
)  # fmt: skip
def test_other_addresses_are_not_of_management(address: str) -> None:
    assert managed_node(address, "me") is None


@given(st.text())
def test_every_text_names_a_node_or_none(text: str) -> None:
    for address in (text, text + "$management", f"_topo/0/{text}/$management"):
        found = managed_node(address, "me")
        assert found is None or (isinstance(found, str) and found)


def test_every_node_name_of_a_topology_can_be_managed() -> None:
    name = check_node_name("n" * 64)
    assert managed_node(f"_topo/0/{name}/$management", "me") == name
    assert management_address(name) == f"_amqpmesh/management/{name}"
