"""Requests of commands to a running node of this machine, at its control socket."""

from __future__ import annotations

from typing import Any

import click

from addressing.topology.model import Topology
from mesh.client.errors import Unreachable
from mesh.deploy.control import RequestRefused, ask
from mesh.deploy.node_kinds import node_names
from mesh.deploy.workdir import WorkDir
from mesh.terminal.failure import CommandFailed


def ask_node(topology: Topology, node: str, op: str, **arguments: Any) -> Any:
    """Send a request to ``node``, and return its answer.

    Raises UsageError if the topology has no such node; CommandFailed if the node refuses the request; Unreachable if
    it is silent or does not run on this machine.
    """
    known = node_names(topology)
    if node not in known:
        raise click.UsageError(f"unknown node '{node}' in mesh {topology.mesh}: expected one of {', '.join(known)}")
    try:
        return ask(WorkDir(topology.work_dir).control_socket(node), op, **arguments)
    except RequestRefused as refused:
        raise CommandFailed(f"{node}: {refused}") from None
    except TimeoutError:
        raise Unreachable(
            f"node {node} runs, but does not answer at its control socket",
            fix="`amqpmesh status` shows which nodes run.",
        ) from None
    except OSError:
        raise Unreachable(
            f"node {node} does not run on this machine", fix="`amqpmesh status` shows which nodes run."
        ) from None
