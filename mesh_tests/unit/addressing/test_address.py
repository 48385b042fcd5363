"""Normal form of addresses, internal addresses, dynamic reply addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(
    st.lists(st.sampled_from(["amqp:", "amqps:", "AMQP:", "//", "/", "host", "a", "x.y", ":", "é"]), max_size=8).map(
        "".join
    )
)
def test_the_normal_form_of_a_normal_form_is_the_same(address: str) -> None:
    assert normalize(normalize(address)) == normalize(address)


@pytest.mark.parametrize("address", ["amqp:amqp:x", "amqp:/amqps://host/x", "amqps:AMQP:/x"])
def test_an_address_loses_all_schemes(address: str) -> None:
    assert normalize(address) == "x"
