"""The id of a host among the hosts of a mesh: the machine's name, and letters that stay with the work directory."""

from __future__ import annotations

import json
import re
import secrets
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mesh.deploy.workdir import OBSERVER

if TYPE_CHECKING:
    from pathlib import Path

    from mesh.deploy.workdir import WorkDir

_NAME_CHARS: Final = 40
_ID: Final = re.compile(r"[A-Za-z0-9.-]{1,60}")


def host_id(workdir: WorkDir) -> str:
    """Return the id of the host that has ``workdir``, and make the id first if there is none.

    Machines may have equal names, and a machine may have several work directories of a mesh. So the id has random
    letters, which are kept in a file. A work directory that was copied to another machine or place gets another id.
    """
    machine = socket.gethostname()
    place = f"{machine}:{workdir.root.resolve()}"
    path = workdir.root / "run" / f"{OBSERVER}.host"
    found = _read(path)
    if found is not None and found[1] == place:
        return found[0]
    name = re.sub(r"[^A-Za-z0-9.-]", "-", machine)[:_NAME_CHARS] or "host"
    new = f"{name}-{secrets.token_hex(3)}"
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps({"id": new, "place": place}) + "\n")
    unfinished.rename(path)
    return new


def _read(path: Path) -> tuple[str, str] | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(path.read_text())
        if _ID.fullmatch(found["id"]):
            return found["id"], found["place"]
    return None
