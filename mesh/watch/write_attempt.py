"""A request for a change on its way, from its form to its line in the audit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mesh.watch.write_request import EditedMessage, WriteRequest
from recording.entities import ADDRESS, CONNECTION, LINK, NEIGHBOR, NODE, QUEUE, Entity

if TYPE_CHECKING:
    from mesh.watch.access import Requester
    from mesh.watch.write_operations import WriteOperation

FIELDS_TOLD: Final[dict[Entity, tuple[str, ...]]] = {
    QUEUE: ("address", "subscriber"),
    CONNECTION: ("user", "container", "remote_address"),
    LINK: ("address", "user", "name"),
    NEIGHBOR: ("neighbor",),
    NODE: ("role",),
    ADDRESS: ("pattern",),
}
"""By entity, the fields by which a line of the audit says what the id stood for."""


@dataclass(slots=True)
class WriteAttempt:
    """A request for a change on its way, with what its line of the audit says so far.

    ``asked_at``: the other host that was asked, and has carried the request here. ``host``: the other host that the
    request was carried to. ``is_one_end``: of a cost, only that at the node itself; of a recording, that of one host.
    """

    operation: WriteOperation
    id: str
    requester: Requester
    asked_at: str | None = None
    is_one_end: bool = False
    host: str | None = None
    outcome: str = "refused"
    request: WriteRequest | None = None
    what: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None

    @property
    def node(self) -> str:
        """The node that the id names; empty for an address, which is not of one node."""
        if self.operation.entity is ADDRESS:
            return ""
        return self.id.partition("/")[0]

    def entry(self) -> dict[str, Any]:
        """Return the members of the line that are known by now, but for the outcome."""
        request, requester = self.request, self.requester
        entry = {
            "at": time.time(),
            "who": requester.operator.name,
            "is_owner": requester.operator.is_owner,
            "login": requester.login.value,
            "from": requester.peer,
            "asked_at": self.asked_at,
            "host": self.host,
            "operation": self.operation.name,
            "target": self.id,
            "what": self.what,
            "arguments": None if request is None else _without_bodies(request.arguments),
            "dry_run": None if request is None else request.is_dry_run,
            "key": None if request is None else request.key,
            "before": self.before,
            "after": self.after,
        }
        return {name: value for name, value in entry.items() if value is not None}


def _without_bodies(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``arguments`` as the audit shows them: of a message only its size, as it may have secrets."""
    return {
        name: {"bytes": len(value.encoded)} if isinstance(value, EditedMessage) else value
        for name, value in arguments.items()
    }
