"""TLS contexts for each kind of connection, and the identity of a peer by its certificate.

Identity in a mesh certificate is a URI among its alternative names:

    amqpmesh:<mesh>/<role>/<name>      role: router, broker, operator, client; each part percent-encoded

A client context of the mesh does not check host names: the connector compares the name in the certificate with the
name of the node to reach, so a node that moves to another host needs no new certificate.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from wire.transport.certificate_files import NodeCertificate

_SCHEME = "amqpmesh:"


class TlsSetupError(Exception):
    """A certificate, key or CA file cannot be used; the text names the file."""


class Role(StrEnum):
    ROUTER = "router"
    BROKER = "broker"
    OPERATOR = "operator"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class MeshIdentity:
    """Mesh, role and name that a certificate gives; proved only if the mesh's authority signed the certificate."""

    mesh: str
    role: Role
    name: str


@dataclass(frozen=True, slots=True)
class TlsAgreement:
    """What the handshake of a TLS session agreed on, in OpenSSL's words: `TLSv1.3`, `TLS_AES_256_GCM_SHA384`."""

    version: str
    cipher: str


@dataclass(frozen=True, slots=True)
class PeerIdentity:
    """Identity of a peer by its verified certificate.

    ``user``: the common name, for SASL EXTERNAL. ``mesh``: the identity in a mesh, None if the certificate has none.
    """

    user: str | None
    mesh: MeshIdentity | None

    @property
    def is_node_or_operator(self) -> bool:
        return self.mesh is not None and self.mesh.role is not Role.CLIENT


def format_identity(identity: MeshIdentity) -> str:
    parts = (quote(part, safe="") for part in (identity.mesh, identity.role, identity.name))
    return _SCHEME + "/".join(parts)


def parse_identity(uri: str) -> MeshIdentity | None:
    """Return the identity that a URI `amqpmesh:<mesh>/<role>/<name>` names; None for any other URI."""
    if not uri.startswith(_SCHEME):
        return None
    parts = [unquote(part) for part in uri.removeprefix(_SCHEME).split("/")]
    if len(parts) != 3 or parts[1] not in set(Role):
        return None
    return MeshIdentity(parts[0], Role(parts[1]), parts[2])


def peer_identity(connection: ssl.SSLObject | ssl.SSLSocket) -> PeerIdentity | None:
    """Return the identity in the peer's certificate; None without a certificate, or if TLS did not verify it."""
    certificate = connection.getpeercert()
    if not certificate:
        return None
    return PeerIdentity(_common_name(certificate), _mesh_identity(certificate))


def stale_certificate(connection: ssl.SSLObject | ssl.SSLSocket) -> str | None:
    """Return why the peer's certificate is expired, or not yet valid; None if it is valid now, or if there is none.

    For a resumed TLS session, whose certificate OpenSSL verified only when the session began.
    """
    certificate = connection.getpeercert()
    if not certificate:
        return None
    now_s = time.time()
    if "notAfter" in certificate and ssl.cert_time_to_seconds(str(certificate["notAfter"])) < now_s:
        return f"certificate has expired on {certificate['notAfter']}"
    if "notBefore" in certificate and ssl.cert_time_to_seconds(str(certificate["notBefore"])) > now_s:
        return f"certificate is not yet valid: it is valid from {certificate['notBefore']} on"
    return None


def _common_name(certificate: dict[str, Any]) -> str | None:
    for group in certificate.get("subject", ()):
        for key, value in group:
            if key == "commonName" and value:
                return str(value)
    return None


def _mesh_identity(certificate: dict[str, Any]) -> MeshIdentity | None:
    uris = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
    identities = [identity for identity in map(parse_identity, uris) if identity is not None]
    return identities[0] if len(identities) == 1 else None


def listener_context(
    certificate: Path, key: Path, ca: Path | None = None, *, is_required: bool = False
) -> ssl.SSLContext:
    """Return the TLS context of a listener for clients, with the server's ``certificate`` and ``key``.

    With ``ca``, a client may show a certificate signed by that authority (and must, when ``is_required``). Then the
    context issues no session tickets of TLS 1.3, so that each connection verifies the certificate anew. A session of
    TLS 1.2 can still be resumed; then `TlsSession` checks the dates of the certificate. The session is in a ticket,
    which the client keeps: only for a client that takes no tickets, OpenSSL keeps the session (11 KB, for two hours).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_certificate(context, certificate, key)
    if ca is not None:
        _load_ca(context, ca)
        context.num_tickets = 0
        context.verify_mode = ssl.CERT_REQUIRED if is_required else ssl.CERT_OPTIONAL
    return context


def mesh_listener_context(files: NodeCertificate) -> ssl.SSLContext:
    """Return the TLS context of a listener for nodes and operators: peers need a certificate of its authority."""
    context = listener_context(files.certificate, files.key, files.ca, is_required=True)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def mesh_connector_context(files: NodeCertificate) -> ssl.SSLContext:
    """Return the TLS context for dialing other nodes, which trusts the mesh's own authority only.

    Host names are not checked: the connector compares the node's name in the certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    _load_certificate(context, files.certificate, files.key)
    _load_ca(context, files.ca)
    return context


def client_context(
    ca: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    *,
    verifies_host: bool = True,
    verifies_certificate: bool = True,
) -> ssl.SSLContext:
    """Return the TLS context for dialing a server by an amqps URL; without ``ca``, it trusts the machine's authorities.

    Without ``verifies_certificate``, the context accepts any server, without ``verifies_host`` a certificate of any
    host.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = verifies_host and verifies_certificate
    context.verify_mode = ssl.CERT_REQUIRED if verifies_certificate else ssl.CERT_NONE
    if ca is not None:
        _load_ca(context, ca)
    elif verifies_certificate:
        context.load_default_certs()
    if certificate is not None:
        _load_certificate(context, certificate, key or certificate)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    for path in (certificate, key):
        _check_readable(path)
    try:
        # The empty password makes an encrypted key an error: OpenSSL would ask for its password on the terminal, and
        # the node would hang.
        context.load_cert_chain(certificate, key, password=b"")
    except (ssl.SSLError, OSError) as error:
        raise TlsSetupError(f"{certificate} and {key} are not a valid certificate and its key: {error}") from None


def _load_ca(context: ssl.SSLContext, ca: Path) -> None:
    _check_readable(ca)
    try:
        context.load_verify_locations(cafile=ca)
    except (ssl.SSLError, OSError) as error:
        raise TlsSetupError(f"{ca} is not a valid file of CA certificates: {error}") from None


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise TlsSetupError(f"cannot read the certificate, key or CA file {path}: {error.strerror}") from None
