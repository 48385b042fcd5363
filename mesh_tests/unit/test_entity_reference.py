"""The reference of entities is current, and has all of them.

``REWRITE=1 pytest mesh_tests/unit/test_entity_reference.py`` makes it anew; the diff is for review.
"""

from __future__ import annotations

from collections.abc import Iterator

from addressing.topology.descriptions import meanings_of
from mesh_tests.unit.addressing.topology.test_generated_files import ROOT, assert_current
from recording.entities import ENTITIES, LISTS, MODEL_VERSION, Entity, EntityField, FieldSource

REFERENCE = ROOT / "docs" / "reference" / "entities.md"
HEAD = f"""\
# Entities: what operators see of a mesh

Version {MODEL_VERSION} of the model, made from `recording/entities.py`; a test compares. Whatever shows a mesh names
these fields and no others. Fields are added within a version; a field that is renamed, removed or changes its meaning
raises the version. Any value may be missing: it is unknown, or does not apply.

Counters count from when the observer first saw the node, or from the node's start if the observer read all records
since (`counted_since` of a node), and only grow while the observer runs. When a link, an address or a node ends, its
counts remain in the sums of its pattern and its user. Messages of a client without a fixed address that share links, as
those to a pattern of queues or topics do, count for the pattern, and for an address that is named like the pattern.
Messages that a router refused to such a client count for the router only.

Sources of values:

| source | from |
|---|---|
"""


def test_the_reference_has_every_entity_and_every_field() -> None:
    assert_current(REFERENCE, "\n".join(reference()))


def reference() -> Iterator[str]:
    meanings = meanings_of(FieldSource)
    yield HEAD + "\n".join(f"| {source} | {meanings[source.name]} |" for source in FieldSource)
    yield ""
    for entity in (*ENTITIES, *LISTS):
        yield from section(entity)


def section(entity: Entity) -> Iterator[str]:
    yield from (f"## {entity.plural.capitalize()}", "", entity.meaning, "")
    yield from ("| field | type | unit | source | meaning |", "|---|---|---|---|---|")
    for field in entity.fields:
        unit = f" {field.unit} " if field.unit else " "
        yield f"| `{field.name}` | {kind_of(field)} |{unit}| {field.source} | {field.meaning} |"
    yield ""


def kind_of(field: EntityField) -> str:
    return "counter" if field.is_counter else str(field.type)
