"""The JSON Schema allows what the model allows, as far as a schema can know."""

from __future__ import annotations

import re
from typing import Any

import pytest

from addressing.topology.document import parse_document
from addressing.topology.json_schema import topology_schema

SCHEMA = topology_schema()
HEAD = "mesh: m\nrouters: {r1: }\n"


def allows(value: Any, schema: dict[str, Any] = SCHEMA) -> bool:
    """Check ``value`` by the few words of JSON Schema that our schema uses."""
    if "$ref" in schema:
        return allows(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in schema:
        return any(allows(value, option) for option in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    match schema.get("type"):
        case "object":
            return isinstance(value, dict) and _allows_object(value, schema)
        case "array":
            return isinstance(value, list) and all(allows(item, schema["items"]) for item in value)
        case "string":
            return isinstance(value, str) and bool(re.search(schema.get("pattern", ""), value))
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return is_number and schema.get("minimum", value) <= value <= schema.get("maximum", value)
        case "null":
            return value is None
        case None:
            return True
        case other:
            raise AssertionError(f"the schema uses {other}, this test does not know it")


def _allows_object(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    if not set(schema.get("required", ())) <= set(value) or len(value) < schema.get("minProperties", 0):
        return False
    patterns = schema.get("patternProperties", {})
    for key, item in value.items():
        found = [sub for pattern, sub in patterns.items() if re.search(pattern, key)]
        if key in schema.get("properties", {}):
            found = [schema["properties"][key]]
        if not found:
            other = schema.get("additionalProperties", True)
            if other is False:
                return False
            found = [other] if isinstance(other, dict) else []
        if not all(allows(item, sub) for sub in found):
            return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        HEAD + "x-any: {thing: 1}\n",
        "mesh: m\nrouters: {r1: {listeners: [5672, {port: 1, tls: true}, {tls: {cert: c, key: k}, x-a: 1}]}}\n",
        "mesh: m\nrouters: {r1: {connect: [r2, {to: r3, cost: 4}]}}\n",
        HEAD + "addresses: {a: queue, 'b.#': {type: anycast, distribution: closest}, c: {type: queue, brokers: b1}}\n",
        HEAD + "addresses: {q: queue, a: {type: anycast, fallback: q, priority: 9}}\n",
        HEAD + "brokers: {b1: {data: x, routers: r1}, b2: {url: 'amqp://h', routers: [r1], tls: {ca: x}}}\n",
        HEAD + "users: {a: , b: {send: x, receive: [y]}}\n",
    ],
)
def test_right_files_are_right_in_an_editor_too(text: str) -> None:
    assert allows(parse_document(text).data)


@pytest.mark.parametrize(
    "text",
    [
        "routers: {r1: }\n",
        "mesh: m\nrouters: {}\n",
        HEAD + "adresses: {}\n",
        "mesh: m\nrouters: {r1: {lisetners: []}}\n",
        "mesh: m\nrouters: {-r: }\n",
        "mesh: m\nrouters: {r1: {connect: [{to: r2, cost: 0}]}}\n",
        HEAD + "addresses: {a: topik}\n",
        HEAD + "addresses: {a: {type: anycast, priority: 10}}\n",
        HEAD + "brokers: {b1: {data: x, port: 70000}}\n",
    ],
)
def test_wrong_keys_words_and_ranges_are_wrong_in_an_editor_too(text: str) -> None:
    assert not allows(parse_document(text).data)


def test_every_key_has_a_sentence() -> None:
    objects = [SCHEMA, *SCHEMA["$defs"].values()]
    objects += [option for part in SCHEMA["$defs"].values() for option in part.get("anyOf", ())]
    for part in objects:
        for key, about in part.get("properties", {}).items():
            assert about["description"], key
