"""The OpenAPI document: each operation of it exists, and each that exists is in it."""

from __future__ import annotations

from pathlib import Path

from starlette.routing import Route

from mesh.watch.openapi import document
from mesh.watch.write_operations import WRITES
from mesh_tests.unit.mesh.watch.writing_host import WritingHost
from recording.entities import BY_PLURAL

CONSOLES_OWN = ("/console/", "/login", "/logout")


def served(host: WritingHost) -> set[tuple[str, str]]:
    """The operations of the routes; an entity's id is `{id}`, whatever its segments."""
    found = set()
    pages = {route.path for route in host.console.routes()}
    for route in host.routes:
        assert isinstance(route, Route)
        if route.path in pages or route.path.startswith(CONSOLES_OWN):
            continue
        plurals = BY_PLURAL if "{things}" in route.path else [""]
        for plural in plurals:
            path = route.path.replace("{things}", plural).replace("{id:path}", "{id}").replace("{address:path}", "{id}")
            path = path.replace("{node}/{of_node}", "{id}").replace("{node}", "{id}")
            found |= {(method, path) for method in route.methods or () if method != "HEAD"}
    return found


def test_each_documented_operation_exists_and_the_other_way_round(tmp_path: Path) -> None:
    documented = {
        (method.upper(), path) for path, operations in document("1.0")["paths"].items() for method in operations
    }
    assert documented == served(WritingHost(tmp_path))


def test_each_operation_has_an_id_of_its_own_and_each_parameter_a_meaning() -> None:
    operations = [each for path in document("1.0")["paths"].values() for each in path.values()]
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names)
    for each in operations:
        assert each["summary"].endswith(".")
        assert all(parameter["description"] for parameter in each["parameters"])


def test_each_change_is_documented_with_its_members_and_its_key() -> None:
    paths = document("1.0")["paths"]
    for operation in WRITES:
        told = paths[operation.path][operation.method.lower()]
        schema = told["requestBody"]["content"]["application/json"]["schema"]
        assert set(schema["properties"]) == {member.name for member in operation.members} | {"expect"}
        assert schema.get("required", []) == [member.name for member in operation.members if member.is_needed]
        assert "Idempotency-Key" in {each["name"] for each in told["parameters"]}


def test_each_reference_leads_to_a_schema() -> None:
    described = document("1.0")
    schemas = described["components"]["schemas"]
    found = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                found.add(value["$ref"].removeprefix("#/components/schemas/"))
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(described["paths"])
    assert {"change", "message", "error", "queue"} <= found
    assert found <= set(schemas)
