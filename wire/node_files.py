"""Where one node finds its certificate and keeps its data: the paths that whoever starts it decided.

The work directory of a mesh lies beside its topology file, in `.amqpmesh/<mesh>/`:

    pki/               certificates of the mesh
    run/<node>.sock    control socket: one JSON line in, one JSON line out
    run/<node>.pid     locked for as long as the node lives
    log/<node>.jsonl   one JSON object per event
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NodeCertificate:
    """What a node shows to other nodes, and whom it believes. PEM files."""

    certificate: Path
    key: Path
    ca: Path


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """``certificate`` is None when the topology says `node_tls: false`; ``data`` is where a broker keeps its store."""

    certificate: NodeCertificate | None
    data: Path
    control_socket: Path
    rings: Path
    """For records of the link log that are not in a file yet."""
