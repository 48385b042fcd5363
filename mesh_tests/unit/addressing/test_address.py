"""Normal form of addresses, internal addresses, dynamic reply addresses."""

import pytest

from addressing.address import dynamic_address, is_dynamic, is_internal, normalize, router_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("orders", "orders"),
        ("amqp:orders", "orders"),
        ("amqp:/orders", "orders"),
        ("amqp://host/orders", "orders"),
        ("amqps://host:5671/a/b", "a/b"),
        ("AMQP:/orders", "orders"),
        ("amqp:///orders", "orders"),
        ("amqp:////queues/orders", "/queues/orders"),
        ("/queues/orders", "/queues/orders"),
        ("amqp", "amqp"),
        ("amqplike:/x", "amqplike:/x"),
        ("amqp://host", ""),
        ("", ""),
    ],
)
def test_scheme_and_host_are_no_part_of_an_address(text: str, address: str) -> None:
    assert normalize(text) == address


def test_a_dynamic_address_names_its_router() -> None:
    address = dynamic_address("r1", "h5Zq")
    assert address == "amqp:/_topo/0/r1/temp.h5Zq"
    assert router_of(address) == "r1"
    assert router_of("_topo/0/r1/temp.h5Zq") == "r1"
    assert is_dynamic(address)


@pytest.mark.parametrize(
    "address", ["orders", "_topo/0/r1/temp.", "_topo/0//temp.x", "_topo/0/r1/$management", "_topo/"]
)
def test_other_addresses_have_no_router(address: str) -> None:
    assert router_of(address) is None
    assert not is_dynamic(address)


@pytest.mark.parametrize("address", ["_topo/0/r1/temp.x", "_amqpmesh/probe/1", "_topo", "_amqpmesh", "_topo/"])
def test_addresses_of_the_mesh_itself_are_internal(address: str) -> None:
    assert is_internal(address)


@pytest.mark.parametrize("address", ["orders", "_topology", "_amqpmesh.x", "a/_topo/0", "/_topo/0"])
def test_addresses_that_only_look_alike_are_not_internal(address: str) -> None:
    assert not is_internal(address)
