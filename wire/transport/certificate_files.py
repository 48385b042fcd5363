"""Paths of a node's files: certificate, private key, and the certificate of the authority that the node trusts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KEY_SUFFIX = "-key.pem"


@dataclass(frozen=True, slots=True)
class NodeCertificate:
    """Paths of a node's PEM files: certificate and key to show other nodes, and the authority that the node trusts."""

    certificate: Path
    key: Path
    ca: Path


def key_path_of(certificate: Path) -> Path:
    return certificate.with_name(certificate.stem + KEY_SUFFIX)
