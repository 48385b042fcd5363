"""Adds what commands change in a running mesh to the audit of this host, beside what its observer changes.

The observer need not run. A line says `login: command`, and names the account and the machine of whoever ran the
command; on this machine only the mesh's owner can. A command that is killed between its request and the line leaves
none: the node's answer was lost then, too.
"""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from addressing.operator_rights import OWNER
from mesh.client.errors import MeshError, Unreachable
from mesh.deploy.workdir import WorkDir

if TYPE_CHECKING:
    from addressing.topology.model import Topology

LOGIN: Final = "command"
BROKER_CHANGES: Final = frozenset({"create", "delete", "purge", "remove", "move", "redrive"})
"""Requests to brokers that change something."""


class AnswerLost(Unreachable):
    """A node got a request, and its answer did not come: whether it did as asked is unknown."""


@dataclass(slots=True)
class AuditedChange:
    """A change on its way. ``is_begun``: a failure from now on leaves unknown whether the change, or a part, was made.

    ``told``: members of the line that are known once the change is made, such as `before`, `after` and `done`.
    """

    is_begun: bool = False
    told: dict[str, Any] = field(default_factory=dict)


@contextmanager
def audited(
    topology: Topology, operation: str, target: str, arguments: Mapping[str, Any], what: Mapping[str, Any] | None = None
) -> Iterator[AuditedChange]:
    """Make a change within; add one line to the audit, also if the change fails or Ctrl-C ends it.

    ``target``: the id of the entity, or the broker of a queue, which ``what`` names. A line that cannot be written is a
    warning: the change is made, or not, all the same.
    """
    change = AuditedChange()
    outcome: dict[str, Any] = {"outcome": "done", "status": 200}
    try:
        yield change
    except MeshError as error:
        is_known = not change.is_begun and not isinstance(error, AnswerLost)
        outcome = {"outcome": "refused", "status": 409} if is_known else {"outcome": "uncertain", "status": 504}
        outcome["error"] = error.message
        raise
    except BaseException as error:
        outcome = {"outcome": "uncertain", "status": 500, "error": f"the command ended: {type(error).__name__}"}
        raise
    finally:
        given = {name: value for name, value in arguments.items() if value is not None}
        named = {name: value for name, value in (what or {}).items() if value is not None}
        entry = {"operation": operation, "target": target, "what": named, "arguments": given}
        _add(topology, {**_who(), **entry, **change.told, **outcome})


def _add(topology: Topology, entry: Mapping[str, Any]) -> None:
    from mesh.watch.audit import AuditLog

    try:
        AuditLog(WorkDir(topology.work_dir).audit).append_now(entry)
    except OSError as error:
        place = error.filename or "the audit"
        click.echo(f"warning: the change is not in the audit: {place}: {error.strerror}", err=True)


def _who() -> dict[str, Any]:
    try:
        account = getpass.getuser()
    except (KeyError, OSError):
        account = f"user {os.getuid()}"
    said = {"at": time.time(), "who": OWNER.name, "is_owner": True, "login": LOGIN}
    return {**said, "from": f"{account}@{socket.gethostname()}"}
