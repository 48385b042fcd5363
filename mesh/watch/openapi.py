"""The description of the REST interface in OpenAPI 3.1, made of the entities and their fields."""

from __future__ import annotations

from typing import Any, Final

from mesh.watch.mesh_pages import SUMMED
from mesh.watch.openapi_operations import errors, operation_paths, operation_schemas
from mesh.watch.query import DEFAULT_LIMIT, MAX_LIMIT
from recording.entities import ENTITIES, LISTS, MODEL_VERSION, Entity, EntityField, EntityFieldType

_TYPES: Final = {EntityFieldType.TEXT: "string", EntityFieldType.NUMBER: "number", EntityFieldType.FLAG: "boolean",
          EntityFieldType.MAP: "object"}  # fmt: skip


def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document. ``version``: the version of amqpmesh."""
    paths: dict[str, Any] = {}
    for entity in ENTITIES:
        paths[f"/api/{entity.plural}"] = {"get": _list(entity)}
        paths[f"/api/{entity.plural}/{{id}}"] = {"get": _one(entity)}
    for path, operations in operation_paths().items():
        paths.setdefault(path, {}).update(operations)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "amqpmesh observer",
            "version": f"{version}, model {MODEL_VERSION}",
            "description": "Entities made of what the nodes of a mesh record. Numbers are read from the nodes' rings "
            "once a second or more often. Rows are those that the login may see.",
        },
        "security": [{}, {"token": []}, {"password": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "the token of the mesh's owner"},
                "password": {"type": "http", "scheme": "basic", "description": "a user of the mesh"},
            },
            "schemas": {
                "error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {
                        "error": {"type": "string"},
                        "place": {"type": "string", "description": "the parameter that is wrong"},
                        "allowed": {"type": "array", "items": {"type": "string"}},
                    },
                },
                **operation_schemas(),
                "missing": {
                    "type": "object",
                    "required": ["host", "nodes", "age_s", "why"],
                    "properties": {
                        "host": {"type": ["string", "null"], "description": "none for nodes that nobody told of"},
                        "nodes": {"type": "array", "items": {"type": "string"}},
                        "age_s": {"type": ["number", "null"], "description": "time since the host was last heard of"},
                        "why": {"type": "string"},
                    },
                },
                **{entity.name: _schema(entity) for entity in (*ENTITIES, *LISTS)},
            },
        },
    }


def _schema(entity: Entity) -> dict[str, Any]:
    return {
        "type": "object",
        "description": entity.meaning,
        "properties": {field.name: _property(field) for field in entity.fields},
    }


def _property(field: EntityField) -> dict[str, Any]:
    unit = f"; {field.unit}" if field.unit else ""
    kind = ", only grows" if field.is_counter else ""
    return {
        "type": [_TYPES[field.type], "null"],
        "description": f"{field.meaning}{unit}{kind} (from: {field.source})",
        **({"x-unit": str(field.unit)} if field.unit else {}),
    }


def _list(entity: Entity) -> dict[str, Any]:
    def parameter(name: str, meaning: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "in": "query", "description": meaning, "schema": schema}

    sorts = [sign + name for name in entity.names for sign in ("", "-")]
    return {
        "summary": f"Lists {entity.plural}. {entity.meaning}",
        "operationId": f"list_{entity.plural}",
        "parameters": [
            parameter(
                "filter",
                "FIELD, one of = != < <= > >= ~ (text that contains the value), and a value; several filters all have "
                "to hold",
                {"type": "array", "items": {"type": "string"}},
            ),
            parameter("sort", "field to sort by, with - before it for the largest first", {"enum": sorts}),
            parameter(
                "limit",
                "most entities of a page",
                {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
            ),
            parameter("after", "the `next` of the page before", {"type": "string"}),
            parameter("fields", "names of fields with commas between; without it, all fields", {"type": "string"}),
            parameter("scope", "mesh: of all hosts; host: of this host", {"enum": ["mesh", "host"], "default": "mesh"}),
            *([] if entity in SUMMED else [parameter("node", "only of this node", {"type": "string"})]),
        ],
        "responses": {
            "200": {
                "description": "A page.",
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "required": ["at", "total", "matched", "items", "next", "missing"],
                            "properties": {
                                "at": {"type": "number", "description": "time of the numbers, seconds since 1970, UTC"},
                                "total": {"type": "integer", "description": f"{entity.plural} there are"},
                                "matched": {"type": "integer", "description": "those for which the filters hold"},
                                "items": {
                                    "type": "array",
                                    "items": {"$ref": f"#/components/schemas/{entity.name}"},
                                },
                                "next": {"type": ["string", "null"], "description": "cursor of the next page"},
                                "missing": {
                                    "type": "array",
                                    "description": "hosts that are not in the page",
                                    "items": {"$ref": "#/components/schemas/missing"},
                                },
                                "counts_are": {
                                    "enum": ["at most"],
                                    "description": "there if `total` and `matched` may be smaller: several hosts have "
                                    "many, and what two hosts have counts twice",
                                },
                            },
                        }
                    }
                },
            },
            **errors("400", "401", "403", "429"),
        },
    }


def _one(entity: Entity) -> dict[str, Any]:
    return {
        "summary": f"Shows one of the {entity.plural}.",
        "operationId": f"get_{entity.name}",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}, "description": "its `id`"}
        ],
        "responses": {
            "200": {
                "description": entity.meaning,
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{entity.name}"}}},
            },
            **errors("401", "403", "404", "429", "503"),
        },
    }
