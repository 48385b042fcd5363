"""Finds the URL of the console of a running observer, with a one-time token."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mesh.client.errors import Unreachable
from mesh.deploy.running_processes import node_pid
from mesh.deploy.workdir import OBSERVER, WorkDir
from mesh.terminal.failure import CommandFailed
from mesh.watch.observer import observer_file, token_file

if TYPE_CHECKING:
    from addressing.topology.model import Topology

_ANSWER_S: Final = 5.0


def console_url(topology: Topology) -> str:
    """Return a URL that opens the console of ``topology`` in a browser on this host.

    Raises Unreachable if no observer runs here, or it does not answer; CommandFailed if the observer refuses, or if the
    observer's files are those of another local user.
    """
    workdir = WorkDir(topology.work_dir)
    try:
        url = json.loads(observer_file(workdir).read_text())["url"]
        token = token_file(workdir).read_text().strip()
    except PermissionError as error:
        raise CommandFailed(
            f"cannot read {error.filename}: only the owner of mesh {topology.mesh} can open its console",
            fix="run the command as the local user who ran `amqpmesh up`.",
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise _not_there(topology) from None
    if node_pid(workdir, OBSERVER) is None:
        raise _not_there(topology)
    return f"{url}{_path(url, token)}"


def _path(url: str, token: str) -> str:
    """Return what the observer answers to a request for a one-time token: path and fragment of a page."""
    headers = {"Authorization": f"Bearer {token}"}
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=_ANSWER_S)) as connection:
        try:
            connection.request("POST", "/login/once", headers=headers)
            answer = connection.getresponse()
            content = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(
                f"the observer at {url} does not answer: {error}", fix="`amqpmesh status` shows the state of the mesh."
            ) from None
    if answer.status != http.HTTPStatus.OK:
        raise CommandFailed(
            f"the observer at {url} refuses a login: {content.get('error', answer.status)}",
            fix="if the file with the token was changed, end the observer's process; the supervisor starts it again.",
        )
    return str(content["path"])


def _not_there(topology: Topology) -> Unreachable:
    if topology.is_watched:
        fix = "`amqpmesh up` starts the nodes and the observer; beside nodes that run already, run `amqpmesh watch`."
    else:
        fix = "the topology has no observer (`watch` or `link_logs` is off): run `amqpmesh watch`, or change the key."
    return Unreachable(f"no observer of mesh {topology.mesh} runs on this host", fix=fix)
