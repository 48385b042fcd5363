"""Redacts personal columns to keyed hashes: equal values stay equal, and nobody can guess them back."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from addressing.address import BROKER_PREFIX, MESH_PREFIX
from addressing.records import BY_PEER, KNOWN_CONDITION, PERSONAL_COLUMNS
from linklogs.writer.rows import Row
from recording.columns import RecordKind

REDACTABLE: Final = (*PERSONAL_COLUMNS, "ingress", "egress", "path", "neighbor", "cause")
"""Other columns say what a record or its node is, and have no secrets."""

NODES: Final = ("router", "edge", "broker")
"""Roles of connections."""
_DIGITS: Final = 16
_REMEMBERED: Final = 1 << 16


class Redactor:
    """``key`` None: rows stay as they are. The key never leaves this object."""

    def __init__(self, key: bytes | None = None, columns: Collection[str] = PERSONAL_COLUMNS) -> None:
        """Raises ValueError for a column that must stay as it is."""
        for column in columns:
            if column not in REDACTABLE:
                raise ValueError(f"column {column!r} cannot be redacted: expected one of {', '.join(REDACTABLE)}")
        self._key = key
        self._columns = tuple(columns)
        self._hashed = lru_cache(_REMEMBERED)(self._hash)

    @property
    def is_active(self) -> bool:
        return self._key is not None

    def row(self, row: Row) -> Row:
        if self._key is None:
            return row
        plain = None if "neighbor" in self._columns else _node_in(row)
        return {
            name: self._redacted(name, str(value)) if name in self._columns and name != plain else value
            for name, value in self._with_our_words(row).items()
        }

    def _with_our_words(self, row: Row) -> Row:
        """In a cause, hash conditions of a peer's own."""
        how, by_peer, condition = str(row.get("cause") or "").partition(BY_PEER)
        if not by_peer or KNOWN_CONDITION.fullmatch(condition):
            return row
        return row | {"cause": how + by_peer + self._hashed(condition)}

    def _redacted(self, name: str, value: str) -> str:
        """Redact a value.

        Host and port are hashed separately, so that connections of a host share a hash. The prefix of an address on
        which the mesh talks to itself is kept.
        """
        host, colon, port = value.rpartition(":")
        if name == "remote_address" and colon:
            return f"{self._hashed(host)}:{self._hashed(port)}"
        if name == "address" and _is_of_mesh(value):
            return MESH_PREFIX + self._hashed(value)
        return self._hashed(value)

    def _hash(self, value: str) -> str:
        assert self._key is not None
        return hmac.new(self._key, value.encode(), "sha256").hexdigest()[:_DIGITS]


def _is_of_mesh(address: str) -> bool:
    """False for temporary queues, which belong to clients."""
    node, _, last = address.removeprefix(BROKER_PREFIX).partition("/")
    is_temporary = address.startswith(BROKER_PREFIX) and node and last.startswith(("temp.", "temp-topic."))
    return address.startswith(MESH_PREFIX) and not is_temporary


def _node_in(row: Row) -> str | None:
    """The column that names a node of the mesh, kept plain: records of the node's neighbors use the name."""
    return "container" if row.get("kind") == RecordKind.CONNECTION and row.get("role") in NODES else None
