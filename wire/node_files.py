"""Paths of one node's certificate, data, control socket and rings, as the process that starts the node chooses them.

A broker's data lie in the folder that the topology names. All else lies in the work directory of the mesh, which is
`.amqpmesh/<mesh>/` beside the topology file:

    pki/               certificates of the mesh
    run/<node>.sock    control socket: one JSON line in, one JSON line out
    rings/             records of link logs that are not in files yet
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wire.transport.certificate_files import NodeCertificate


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """Paths of a node's files. ``certificate`` is None with `node_tls: false`; only brokers use ``data``, the store."""

    certificate: NodeCertificate | None
    data: Path
    control_socket: Path
    rings: Path
    """Folder of the node's rings: records of the link log that the writer has not put into a file yet."""
