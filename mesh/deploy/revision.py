"""The committed revision of a mesh: the number and the hash of the topology that its nodes run, and start with again.

    .amqpmesh/<mesh>/run/topology.yml     the text of the committed topology
    .amqpmesh/<mesh>/run/revision.json    its number and hash

The hash is that of all values of the topology, defaults included, without passwords: two hosts with the same topology
have the same hash, and nobody can try passwords against it. A second sum tells whether a password has changed; its key
stays in the file, in a folder that only the owner can read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from addressing.topology.plain import RevisionMark
from mesh.deploy.workdir import WorkDir

if TYPE_CHECKING:
    from addressing.topology.model import Topology

_PASSWORD: Final = "password"
_URL: Final = "url"
SHORT_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Revision:
    """A committed topology. ``number``: 1, 2, ...; ``digest``: SHA-256 in hexadecimal digits, without secrets.

    ``seal`` and ``key``: HMAC-SHA-256 of the secrets, and its key, both in hexadecimal digits.
    """

    number: int
    digest: str
    seal: str
    key: str

    def __str__(self) -> str:
        return f"revision {self.number} ({self.digest[:SHORT_DIGITS]})"

    @property
    def mark(self) -> RevisionMark:
        """The revision as nodes know it."""
        return self.number, self.digest

    def to_map(self) -> dict[str, Any]:
        """Return what everybody may know."""
        return {"number": self.number, "hash": self.digest}


def next_revision(before: Revision | None, topology: Topology) -> Revision:
    """Return the revision of ``topology``: ``before`` if this has the same values and secrets, else the next number."""
    values = topology.model_dump(mode="json")
    hidden: list[str] = []
    digest = hashlib.sha256(_text(_without_secrets(values, hidden))).hexdigest()
    key = before.key if before is not None else secrets.token_hex(32)
    seal = hmac.digest(bytes.fromhex(key), _text(hidden), "sha256").hex()
    if before is not None and (digest, seal) == (before.digest, before.seal):
        return before
    return Revision(before.number + 1 if before is not None else 1, digest, seal, key)


def read_revision(workdir: WorkDir) -> Revision | None:
    """Return the revision that was committed last; None if there is none, or its file is not whole."""
    try:
        found = json.loads(workdir.revision_file.read_text())
        return Revision(int(found["number"]), str(found["hash"]), str(found["seal"]), str(found["key"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def commit_revision(workdir: WorkDir, revision: Revision, text: str) -> None:
    """Write the text of a topology as the committed one, then its revision; each file is the old or the new one."""
    replace_file(workdir.running_topology, text)
    replace_file(workdir.revision_file, json.dumps({**revision.to_map(), "seal": revision.seal, "key": revision.key}))


def replace_file(file: Path, text: str) -> None:
    """Have ``file`` hold ``text``, on the disk; it has the old text or the new one at any moment.

    Raises OSError, which names ``file``.
    """
    new = file.with_name(f"{file.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        new.replace(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(file)) from None


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _without_secrets(value: Any, hidden: list[str], name: str = "") -> Any:
    """Return a value of a topology without its secrets, which are added to ``hidden``."""
    if isinstance(value, Mapping):
        return {key: _without_secrets(value[key], hidden, key) for key in sorted(value)}
    if isinstance(value, list):
        return [_without_secrets(each, hidden) for each in value]
    if isinstance(value, str) and name == _PASSWORD:
        hidden.append(value)
        return True
    if isinstance(value, str) and name == _URL:
        scheme, _, rest = value.rpartition("://")
        login, _, place = rest.rpartition("@")
        hidden.append(login)
        return f"{scheme}://{place}"
    return value
