"""Each key of the topology's model has a change class, and each resolved value has the class of a key."""

from __future__ import annotations

from random import Random

import pytest

from addressing.topology.shapes import PARTS
from mesh.change.key_classes import KEY_CLASSES
from mesh.change.resolution import FIELD_KEYS, field_key, resolve
from mesh_tests.unit.mesh.change.topologies import random_data, source_of_data

KEYS = {(part.__name__, key) for part in PARTS.values() for key in part.model_fields}
OF_SECTIONS = {
    ("Topology", "routers"),
    ("Topology", "brokers"),
    ("Topology", "users"),
    ("Topology", "link_logs"),
    ("Topology", "metrics"),
    ("Topology", "watch"),
    ("Topology", "logs"),
    ("Router", "listeners"),
    ("Router", "connect"),
    ("Broker", "tls"),
    ("LinkLogs", "redact"),
}
"""Keys whose values are mappings with keys of their own."""
IN_NAMES = {("Listener", "host"), ("Listener", "port")}
"""Keys that are part of a resource's name: another value is another resource."""
ELSEWHERE = {("DeclaredAddress", "broker")}
"""A key that resolves to the value of another, `brokers`."""


def test_every_key_of_the_model_has_a_class() -> None:
    assert set(KEY_CLASSES) == KEYS


def test_every_key_resolves_to_a_value_of_a_resource() -> None:
    assert KEYS - set(FIELD_KEYS.values()) == OF_SECTIONS | IN_NAMES | ELSEWHERE


@pytest.mark.parametrize("seed", range(20))
def test_every_value_of_a_resource_has_the_class_of_a_key(seed: int) -> None:
    source = source_of_data(random_data(Random(seed)))
    assert source is not None
    for resource in resolve(source).resources.values():
        for value in resource.values:
            assert field_key(resource.kind, resource.name, value) in KEY_CLASSES
