"""JSON Schema of the topology file, made from the model, by which editors check and complete the file."""

from __future__ import annotations

from typing import Any

from addressing.topology.descriptions import describe
from addressing.topology.model import Topology

SCHEMA_ID = "amqpmesh.schema.json"

# Schemas of the short forms that these mappings may have in a topology file: pydantic's schema has the long forms only.
_SHORTHANDS: dict[str, dict[str, Any]] = {
    "DeclaredAddress": {"$ref": "#/$defs/AddressKind"},
    "Connection": {"type": "string", "description": "Router to connect to, at cost 1."},
    "Listener": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "Port on 127.0.0.1."},
    "LinkLogs": {"$ref": "#/$defs/Level"},
    "ListenerTls": {"type": "boolean", "description": "true: with a certificate of the mesh. false: no TLS."},
    "Redaction": {"type": "string", "description": "File whose bytes are the key of the hashes."},
}
# Classes of the mappings that may be empty, so that `name:` with nothing after it is valid.
_MAY_BE_EMPTY = ("Router", "User")
_ONE_FOR_LIST = (
    ("User", "send"),
    ("User", "receive"),
    ("Broker", "routers"),
    ("DeclaredAddress", "brokers"),
    ("Redaction", "columns"),
)


def topology_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the topology file, with the short forms of its mappings."""
    schema = Topology.model_json_schema()
    parts = schema["$defs"]
    for name, part in {**parts, "Topology": schema}.items():
        for key, about in part.get("properties", {}).items():
            about["description"] = describe(name, key)
    for part, key in _ONE_FOR_LIST:
        parts[part]["properties"][key] = _one_or_list(parts[part]["properties"][key])
    for name, short in _SHORTHANDS.items():
        parts[name] = {"title": name, "anyOf": [short, parts[name]]}
    for name in _MAY_BE_EMPTY:
        parts[name] = {"title": name, "anyOf": [parts[name], {"type": "null"}]}
    for names in ("routers", "brokers", "users"):
        schema["properties"][names]["additionalProperties"] = False
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID}
    found = {**head, **schema, "title": "amqpmesh topology"}
    _drop_noise(found)
    return found


def _one_or_list(schema: dict[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    array = {key: value for key, value in schema.items() if key not in about}
    return {**about, "anyOf": [array, array["items"]]}


def _drop_noise(schema: Any) -> None:
    """Remove from ``schema`` the noise that an editor would show: pydantic's format `path`, and empty defaults."""
    if isinstance(schema, list):
        for item in schema:
            _drop_noise(item)
    if not isinstance(schema, dict):
        return
    if schema.get("format") == "path":
        del schema["format"]
    if "default" in schema and schema["default"] in (None, "", [], {}):
        del schema["default"]
    for item in schema.values():
        _drop_noise(item)
