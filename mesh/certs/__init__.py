"""The certificates of a mesh as files: a CA, one certificate for each node, and some for operators and clients."""

from mesh.certs.errors import CertsError
from mesh.certs.export import export_pem, export_pkcs12
from mesh.certs.pki import (
    NodeRequest,
    ensure_operator,
    ensure_pki,
    issue_client,
    issue_operator,
    list_certificates,
    renew,
)
from mesh.certs.stored import Certificate

__all__ = [
    "Certificate",
    "CertsError",
    "NodeRequest",
    "ensure_operator",
    "ensure_pki",
    "export_pem",
    "export_pkcs12",
    "issue_client",
    "issue_operator",
    "list_certificates",
    "renew",
]
