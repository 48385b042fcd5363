"""Paths of one node's certificate, data and control socket, as the process that starts the node chooses them.

The work directory of a mesh lies beside its topology file, in `.amqpmesh/<mesh>/`:

    pki/               certificates of the mesh
    run/<node>.sock    control socket: one JSON line in, one JSON line out
    run/<node>.pid     locked for as long as the node lives
    log/<node>.jsonl   one JSON object per event
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wire.transport.certificate_files import NodeCertificate


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """Paths of a node's files. ``certificate`` is None with `node_tls: false`; ``data`` is a broker's store folder."""

    certificate: NodeCertificate | None
    data: Path
    control_socket: Path
    rings: Path
    """Folder of the node's rings: records of the link log that the writer has not put into a file yet."""
