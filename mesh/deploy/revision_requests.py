"""Requests at the control sockets of nodes and of the supervisor that bring them to another revision.

A revision is prepared in parts, since a request is one line of at most 64 KiB. Nothing changes before it is committed.
Both requests may be repeated: who has the revision already says so. ``base`` is the hash of the revision before. With
``"is_decided": true`` nothing is checked: others have the revision already, so that there is no way back.

{"op": "prepare_revision", "number": 2, "hash": "5f...", "base": "31...", "part": 0, "parts": 3, "data": "gASV..."}
                                             ->  {"ok": true, "prepare_revision": {"has": 1, "is_complete": false}}
{"op": "commit_revision", "number": 2, "hash": "5f..."}
                                             ->  {"ok": true, "commit_revision": {"number": 2, "hash": "5f..."}}
{"op": "revision"}                           ->  {"ok": true, "revision": {"number": 2, "hash": "5f..."}}
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from addressing.topology import plain
from mesh.deploy.control import Handler
from wire.log import Emit, LogEvent

MOST_PART_BYTES: Final = 44_000
"""Most bytes of a part: the line of its request has four characters for three bytes."""
NAMES_PER_PART: Final = 40
"""Most declarations of a part, which a node reads in a fraction of a millisecond."""


@dataclass(frozen=True, slots=True)
class RevisionCommitted(LogEvent):
    """The process runs revision `number` of the topology from now on; `hash` has no secrets."""

    number: int
    hash: str


class RevisionTaker(Protocol):
    """Who takes a revision: a node takes the addresses that it adds, the supervisor the topology for its processes."""

    def read(self, part: bytes) -> Any:
        """Return a part as it is kept until the commit. Raises ValueError."""

    def check(self, parts: Sequence[Any]) -> None:
        """Raise ValueError if the revision cannot be committed here."""

    def commit(self, parts: Sequence[Any]) -> None: ...


class GrowingNode(Protocol):
    """A running router or broker, which serves more addresses from one moment to the next."""

    def check_added(self, added: Mapping[str, Any]) -> None: ...

    def add_addresses(self, added: Mapping[str, Any]) -> None: ...


class AddressTaker:
    """Adds the addresses of a revision to a node."""

    def __init__(self, node: GrowingNode) -> None:
        self._node = node

    def read(self, part: bytes) -> Any:
        return plain.read_addresses(part)

    def check(self, parts: Sequence[Any]) -> None:
        self._node.check_added(_together(parts))

    def commit(self, parts: Sequence[Any]) -> None:
        self._node.add_addresses(_together(parts))


@dataclass(slots=True)
class _PreparedRevision:
    number: int
    digest: str
    parts: list[Any]
    is_complete: bool = False


class RevisionRequests:
    """The revision of this process, as ``plain.RevisionMark``, and the one that is prepared."""

    def __init__(self, mark: plain.RevisionMark, taker: RevisionTaker, emit: Emit) -> None:
        self._number, self._digest = mark
        self._taker = taker
        self._emit = emit
        self._prepared: _PreparedRevision | None = None

    def handlers(self) -> dict[str, Handler]:
        return {
            "prepare_revision": self._prepare,
            "commit_revision": self._commit,
            "revision": lambda _: self._told(),
        }

    def _told(self) -> dict[str, Any]:
        return {"number": self._number, "hash": self._digest}

    def _prepare(self, request: Mapping[str, Any]) -> dict[str, Any]:
        number, digest = _revision_in(request)
        if (number, digest) == (self._number, self._digest):
            return {"has": number, "is_complete": True}
        if (number - 1, request.get("base")) != (self._number, self._digest):
            raise ValueError(f"runs revision {self._number}, and revision {number} comes from another one")
        part, parts = request.get("part"), request.get("parts")
        if part == 0:
            self._prepared = _PreparedRevision(number, digest, [])
        prepared = self._prepared
        is_next = prepared is not None and (prepared.number, prepared.digest, len(prepared.parts)) == (
            number,
            digest,
            part,
        )
        if prepared is None or not is_next or prepared.is_complete or not isinstance(parts, int):
            raise ValueError(f"part {part!r:.20} of {parts!r:.20} of revision {number} does not follow the one before")
        prepared.parts.append(self._taker.read(_data_in(request)))
        if len(prepared.parts) == parts:
            if request.get("is_decided") is not True:
                self._taker.check(prepared.parts)
            prepared.is_complete = True
        return {"has": self._number, "is_complete": prepared.is_complete}

    def _commit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        number, digest = _revision_in(request)
        if (number, digest) == (self._number, self._digest):
            return self._told()
        prepared = self._prepared
        if prepared is None or not prepared.is_complete or (prepared.number, prepared.digest) != (number, digest):
            raise ValueError(f"revision {number} is not prepared here")
        self._prepared = None
        self._taker.commit(prepared.parts)
        self._number, self._digest = number, digest
        self._emit(RevisionCommitted(number, digest))
        return self._told()


def node_handlers(mark: plain.RevisionMark, node: GrowingNode, emit: Emit) -> dict[str, Handler]:
    """Return the handlers of a node that has started with the topology of ``mark``."""
    return RevisionRequests(mark, AddressTaker(node), emit).handlers()


def requests_of(parts: Sequence[bytes], mark: plain.RevisionMark, base: str) -> list[dict[str, Any]]:
    """Return the arguments of the requests that prepare a revision in ``parts``."""
    number, digest = mark
    told = {"number": number, "hash": digest, "base": base, "parts": len(parts)}
    return [{**told, "part": at, "data": base64.b64encode(part).decode()} for at, part in enumerate(parts)]


def cut(data: bytes) -> list[bytes]:
    """Return ``data`` in parts of at most MOST_PART_BYTES; one empty part for no data."""
    return [data[at : at + MOST_PART_BYTES] for at in range(0, max(len(data), 1), MOST_PART_BYTES)]


def parts_of_addresses(addresses: Mapping[str, Any]) -> list[bytes]:
    """Return further declarations in parts, each of at most MOST_PART_BYTES and NAMES_PER_PART declarations."""
    names, found = list(addresses), []
    for at in range(0, len(names), NAMES_PER_PART):
        found += _halved({name: addresses[name] for name in names[at : at + NAMES_PER_PART]})
    return found or [plain.written_addresses({})]


def _halved(addresses: Mapping[str, Any]) -> list[bytes]:
    part = plain.written_addresses(addresses)
    if len(part) <= MOST_PART_BYTES or len(addresses) == 1:
        return [part]
    names = list(addresses)
    halves = names[: len(names) // 2], names[len(names) // 2 :]
    return [part for half in halves for part in _halved({name: addresses[name] for name in half})]


def _together(parts: Sequence[Any]) -> dict[str, Any]:
    return {name: entry for part in parts for name, entry in part.items()}


def _revision_in(request: Mapping[str, Any]) -> tuple[int, str]:
    number, digest = request.get("number"), request.get("hash")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1 or not isinstance(digest, str):
        raise ValueError(f"expected the number and the hash of a revision, got {number!r:.20} and {digest!r:.80}")
    return number, digest


def _data_in(request: Mapping[str, Any]) -> bytes:
    data = request.get("data")
    if not isinstance(data, str):
        raise ValueError("data: expected a text in base64")
    return base64.b64decode(data, validate=True)
