"""Do entities and states agree: has each declared field a value, and each value a declared field?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mesh.watch.host_model import HostModel, NodeRecords
from mesh.watch.slots import RingRecords
from mesh.watch.states import GETTERS, row_of
from recording.entities import BY_PLURAL, ENTITIES, Entity, EntityFieldType, FieldUnit

TYPES = {EntityFieldType.TEXT: str, EntityFieldType.NUMBER: (int, float), EntityFieldType.FLAG: bool}


def of_every_kind() -> HostModel:
    host = HostModel(lambda address: ("orders.#", "queue"), [("orders.#", "queue")])
    host.on_time(100.0)
    records = NodeRecords(host, host.node("r1"), 99.0)
    rows: list[dict[str, Any]] = [
        {"kind": "connection", "event": "opened", "connection": 1, "role": "client", "user": "alice"},
        {"kind": "link", "event": "opened", "connection": 1, "link": 2, "role": "producer", "address": "orders.1"},
        {"kind": "queue", "event": "opened", "queue": 3, "address": "orders.1"},
        {"kind": "neighbor", "event": "opened", "neighbor": "r2", "cost": 1},
        {"kind": "path", "event": "opened", "egress": "r2", "path": "r1>r2", "cost": 1},
    ]
    records.add(RingRecords(rows=[(0, row) for row in rows]))
    return host


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.name)
def test_every_field_of_an_entity_has_a_value_of_its_type_or_none(entity: Entity):
    assert tuple(GETTERS[entity]) == entity.names
    states = list(of_every_kind().states(entity))
    assert states
    for state in states:
        for name, value in row_of(entity, state).items():
            field = entity.field(name)
            assert field is not None
            assert value is None or isinstance(value, TYPES[field.type]), name


def test_getters_are_of_the_declared_entities_and_of_no_others():
    assert set(GETTERS) == set(ENTITIES)
    assert set(BY_PLURAL.values()) == set(ENTITIES)
    assert len(BY_PLURAL) == len({entity.name for entity in ENTITIES}) == len(ENTITIES)


def texts() -> Iterator[tuple[str, str]]:
    for entity in ENTITIES:
        yield entity.name, entity.meaning
        for field in entity.fields:
            yield f"{entity.name}.{field.name}", field.meaning


def test_everything_has_a_meaning_and_every_name_is_said_once():
    found = list(texts())
    assert [name for name, meaning in found if not meaning.strip()] == []
    names = [name for name, _ in found]
    assert sorted(set(names)) == sorted(names)


def test_numbers_have_units_and_nothing_else_has_and_counters_are_numbers():
    for entity in ENTITIES:
        for field in entity.fields:
            is_plain = (entity.name, field.name) == ("pattern", "addresses")
            assert (field.unit is not FieldUnit.NONE) == (field.type is EntityFieldType.NUMBER and not is_plain), (
                field.name
            )
            assert not field.is_counter or field.type is EntityFieldType.NUMBER


def test_each_entity_is_identified_by_its_first_field():
    assert {entity.names[0] for entity in ENTITIES} == {"id"}
    host = of_every_kind()
    for entity in ENTITIES:
        ids = [row_of(entity, state, ("id",))["id"] for state in host.states(entity)]
        assert len(set(ids)) == len(ids)
        assert all(isinstance(each, str) and each for each in ids)
