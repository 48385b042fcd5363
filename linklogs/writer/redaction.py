"""Redacts personal columns of records: each value becomes a keyed hash.

Equal values have equal hashes, and without the key nobody can find a value by hashing guesses.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from addressing.address import BROKER_PREFIX, MESH_PREFIX, Address
from addressing.records import BY_PEER, KNOWN_CONDITION, PERSONAL_COLUMNS
from linklogs.writer.rows import Row
from recording.columns import RecordKind

REDACTABLE: Final = (*PERSONAL_COLUMNS, "ingress", "egress", "path", "neighbor", "cause")
"""The columns that may be redacted: other columns have nothing secret, such as the kind of a record."""

NODES: Final = ("router", "edge", "broker")
"""The roles of connections to nodes of the mesh, whose names are not personal."""
_DIGITS: Final = 16
_REMEMBERED: Final = 1 << 16


class Redactor:
    """Redacts rows of text records. ``key`` None: rows stay as they are. The key never leaves this object."""

    def __init__(self, key: bytes | None = None, columns: Collection[str] = PERSONAL_COLUMNS) -> None:
        """Take ``key`` for the redaction of ``columns``. Raises ValueError for a column that is not in REDACTABLE."""
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
        """Return the row with the values of the redacted columns hashed; without a key, the row as it is.

        The container-id of another node of the mesh stays plain, unless column `neighbor` is redacted.
        """
        if self._key is None:
            return row
        plain = None if "neighbor" in self._columns else _node_in(row)
        return {
            name: self._redacted(name, str(value)) if name in self._columns and name != plain else value
            for name, value in self._with_our_words(row).items()
        }

    def _with_our_words(self, row: Row) -> Row:
        """Return the row with the condition in column `cause` hashed, if a peer invented the condition.

        Such a condition may be personal; known conditions stay.
        """
        how, by_peer, condition = str(row.get("cause") or "").partition(BY_PEER)
        if not by_peer or KNOWN_CONDITION.fullmatch(condition):
            return row
        return row | {"cause": how + by_peer + self._hashed(condition)}

    def _redacted(self, name: str, value: str) -> str:
        """Return the hash of a value.

        Host and port are hashed separately, so that connections of a host share a hash. An internal address of the mesh
        keeps its prefix, so that reports can still tell internal addresses from clients' addresses.
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


def _is_of_mesh(text: str) -> bool:
    """Whether the mesh uses the address internally; False for temporary queues, which belong to clients."""
    address = Address.parse(text).name
    node, _, last = address.removeprefix(BROKER_PREFIX).partition("/")
    is_temporary = address.startswith(BROKER_PREFIX) and node and last.startswith(("temp.", "temp-topic."))
    return address.startswith(MESH_PREFIX) and not is_temporary


def _node_in(row: Row) -> str | None:
    """Return `container` if the row is of a connection to another node of the mesh, whose name is in this column; else
    None.

    The caller leaves the name plain, unless column `neighbor`, which has the same names, is redacted.
    """
    return "container" if row.get("kind") == RecordKind.CONNECTION and row.get("role") in NODES else None
