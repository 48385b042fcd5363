"""The program of a node, which `amqpmesh node` becomes (exec) once it has read the topology, and which `up` starts.

Nothing that reads topology files is imported here: the node gets the checked topology in a file in memory.
"""

from __future__ import annotations

import difflib
import faulthandler
import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from addressing.topology import plain
from mesh.deploy.node_kinds import NODE_KINDS, node_names
from mesh.deploy.node_process import NODE_PROGRAM, TOPOLOGY_FD, command_line, node_environment
from mesh.deploy.sd_notify import SOCKET

if TYPE_CHECKING:
    from addressing.topology.model import Topology


def topology_descriptor(topology: Topology, mark: plain.RevisionMark = plain.NO_REVISION) -> int:
    """Return the descriptor of a file in memory that has ``topology``, committed as the revision ``mark``.

    A program that this process becomes by exec inherits the descriptor. A child process has the descriptor only if the
    start of the child passes the descriptor on.
    """
    return descriptor_of(plain.written(topology, mark))


def descriptor_of(written: bytes) -> int:
    """Return the descriptor of a file in memory: no file on a disk may have the passwords of a topology in it."""
    descriptor = os.memfd_create("topology", 0)
    data = memoryview(written)
    while data:
        data = data[os.write(descriptor, data) :]
    return descriptor


def read_topology(descriptor: int) -> Topology:
    """Return the topology of ``topology_descriptor``, and close the descriptor.

    Several processes may have the file, and with it the position in it, which is neither used nor changed here.
    """
    try:
        return plain.read(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    finally:
        os.close(descriptor)


def check_name(topology: Topology, name: str) -> None:
    known = node_names(topology)
    if name in known:
        return
    for kind in NODE_KINDS.values():
        if name in kind.declared(topology):
            raise click.UsageError(
                f"{kind.name} '{name}' is an existing {kind.name}, expected a node that amqpmesh runs: "
                f"{', '.join(known)}"
            )
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise click.UsageError(f"unknown node '{name}' in mesh {topology.mesh}: {hint}expected one of {', '.join(known)}")


def become_node(topology: Topology, name: str, *, is_json: bool) -> NoReturn:
    """Go on as the program of node ``name``, with this process's id, its socket of systemd, and its fault handler.

    Raises UsageError if the topology has no such node for amqpmesh to run.
    """
    check_name(topology, name)
    environment = node_environment()
    if SOCKET in os.environ:
        environment[SOCKET] = os.environ[SOCKET]
    if faulthandler.is_enabled():
        environment["PYTHONFAULTHANDLER"] = "1"
    arguments = ["node", name, *(("--topology", str(topology.file)) if topology.file is not None else ())]
    arguments += [TOPOLOGY_FD, str(topology_descriptor(topology)), *(("--json",) if is_json else ())]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command_line(*arguments, program=NODE_PROGRAM), environment)
