"""Requests of commands to a running node of this machine, at its control socket."""

from __future__ import annotations

from typing import Any

import click

from addressing.topology.model import Topology
from mesh.client.errors import Unreachable
from mesh.deploy.control import RequestRefused, ask
from mesh.deploy.node_kinds import node_names
from mesh.deploy.workdir import WorkDir
from mesh.operations.audited_changes import AnswerLost, audited
from mesh.terminal.failure import CommandFailed


def ask_node(topology: Topology, node: str, op: str, **arguments: Any) -> Any:
    """Send a request to ``node``, and return its answer.

    Raises UsageError if the topology has no such node; CommandFailed if the node refuses the request; Unreachable if
    it does not run on this machine, and AnswerLost if it is silent, or ends before its answer.
    """
    known = node_names(topology)
    if node not in known:
        raise click.UsageError(f"unknown node '{node}' in mesh {topology.mesh}: expected one of {', '.join(known)}")
    try:
        return ask(WorkDir(topology.work_dir).control_socket(node), op, **arguments)
    except RequestRefused as refused:
        raise CommandFailed(f"{node}: {refused}") from None
    except TimeoutError:
        raise AnswerLost(
            f"node {node} runs, but does not answer at its control socket",
            fix="`amqpmesh status` shows which nodes run.",
        ) from None
    except (FileNotFoundError, ConnectionRefusedError):
        raise Unreachable(
            f"node {node} does not run on this machine", fix="`amqpmesh status` shows which nodes run."
        ) from None
    except OSError:
        raise AnswerLost(
            f"node {node} ended before its answer", fix="`amqpmesh status` shows which nodes run."
        ) from None


def change_node(topology: Topology, node: str, op: str, target: str, **arguments: Any) -> Any:
    """As `ask_node`, for a request that changes something: it is in the audit, as a change of ``target``, an id."""
    with audited(topology, op.replace("_", "-"), target, arguments) as change:
        answer = ask_node(topology, node, op, **arguments)
        if isinstance(answer, dict):
            change.told["done"] = answer
        return answer
