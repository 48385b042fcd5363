"""What certificates does a mesh need now, and which must be made or renewed?

Every function here may run in several processes at once: whoever comes second finds the work done.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from mesh.certs.authority import KeyPair, check_name, host_name, make_authority, make_leaf, mesh_uri
from mesh.certs.errors import CertsError
from mesh.certs.stored import Certificate, alternative_names, describe, load, locked, save
from wire.tls import MeshIdentity, Role

CA_FILE = "ca.pem"
RENEW_BEFORE = timedelta(days=30)
# Certificates end with their CA at the latest, so it is renewed while a year's one still fits.
RENEW_CA_BEFORE = timedelta(days=400)
DEFAULT_OPERATOR = "operator"

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::", "", "*")


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A node that needs a certificate. ``hosts``: where its listeners and its node port are reached."""

    name: str
    role: Role
    hosts: tuple[str, ...] = ()


def ensure_pki(
    folder: Path, mesh: str, nodes: Iterable[NodeRequest], *, now: datetime | None = None
) -> list[Certificate]:
    """Make what is missing, renew what ends within 30 days or lacks a host; return the nodes' certificates in order.

    Raises CertsError.
    """
    now = now or datetime.now(UTC)
    with locked(folder):
        authority = _ensure_authority(folder, mesh, now)
        return [_ensure(folder, authority, MeshIdentity(mesh, node.role, node.name), node.hosts, now) for node in nodes]


def ensure_operator(folder: Path, name: str = DEFAULT_OPERATOR, *, now: datetime | None = None) -> Certificate:
    """The certificate by which commands on this machine act on the mesh. Raises CertsError."""
    now = now or datetime.now(UTC)
    with locked(folder):
        authority, mesh = _authority(folder)
        return _ensure(folder, authority, MeshIdentity(mesh, Role.OPERATOR, name), (), now)


def issue_operator(folder: Path, name: str, *, now: datetime | None = None) -> Certificate:
    """For somebody who may manage the mesh. Raises CertsError, also when there is one already: renew it."""
    return _issue(folder, Role.OPERATOR, name, now)


def issue_client(folder: Path, name: str, *, now: datetime | None = None) -> Certificate:
    """For a client that logs in as user ``name`` by EXTERNAL. Raises CertsError, also when there is one already."""
    return _issue(folder, Role.CLIENT, name, now)


def renew(folder: Path, name: str | None = None, *, now: datetime | None = None) -> list[Certificate]:
    """New keys and a new year for the certificates called ``name``, or for all but the CA's. Raises CertsError."""
    now = now or datetime.now(UTC)
    with locked(folder):
        authority, _ = _authority(folder)
        found = [c for c in list_certificates(folder) if c.identity is not None and name in (None, c.name)]
        if not found:
            raise CertsError(f"there is no certificate of {name!r}" if name else "there are no certificates to renew")
        return [_make(folder, authority, c.identity, c.hosts, now) for c in found if c.identity is not None]


def list_certificates(folder: Path) -> list[Certificate]:
    """The CA first, then by role and name; empty before the first ``ensure_pki``. Raises CertsError."""
    ca_path = folder / CA_FILE
    paths = [ca_path, *(path for role in Role for path in sorted((folder / role).glob("*.pem")))]
    return [
        describe(path, ca_path, pair.certificate)
        for path in paths
        if not path.name.endswith("-key.pem") and (pair := load(path)) is not None
    ]


def _ensure_authority(folder: Path, mesh: str, now: datetime) -> KeyPair:
    path = folder / CA_FILE
    authority = load(path)
    if authority is not None and _mesh_of(authority) != mesh_uri(mesh):
        raise CertsError(f"{path} is the CA of another mesh than {mesh!r}")
    if authority is not None and authority.certificate.not_valid_after_utc - now > RENEW_CA_BEFORE:
        return authority
    authority = make_authority(mesh, now, authority.key if authority is not None else None)
    save(path, authority)
    return authority


def _authority(folder: Path) -> tuple[KeyPair, str]:
    """The CA that is there, and the name of its mesh."""
    authority = load(folder / CA_FILE)
    if authority is None:
        raise CertsError(f"there is no mesh CA in {folder} yet: `amqpmesh certs make` makes it")
    return authority, _unquote_mesh(_mesh_of(authority))


def _mesh_of(authority: KeyPair) -> str:
    uris = alternative_names(authority.certificate).get_values_for_type(x509.UniformResourceIdentifier)
    return uris[0] if uris else ""


def _unquote_mesh(uri: str) -> str:
    return unquote(uri.partition(":")[2])


def _issue(folder: Path, role: Role, name: str, now: datetime | None) -> Certificate:
    with locked(folder):
        authority, mesh = _authority(folder)
        if load(_path(folder, role, name)) is not None:
            raise CertsError(f"{role} {name!r} has a certificate already: renew it with `amqpmesh certs renew {name}`")
        return _make(folder, authority, MeshIdentity(mesh, role, name), (), now or datetime.now(UTC))


def _ensure(
    folder: Path, authority: KeyPair, identity: MeshIdentity, hosts: Sequence[str], now: datetime
) -> Certificate:
    wanted = [host for host in hosts if host not in _EVERYWHERE]
    path = _path(folder, identity.role, identity.name)
    pair = load(path)
    if pair is not None and _is_good(pair, authority, wanted, now):
        return describe(path, folder / CA_FILE, pair.certificate)
    if identity.role in (Role.ROUTER, Role.BROKER):
        wanted = [*wanted, *_LOOPBACK]
        if len(wanted) - len(_LOOPBACK) < len(hosts):
            wanted.append(socket.gethostname())
    return _make(folder, authority, identity, wanted, now)


def _is_good(pair: KeyPair, authority: KeyPair, hosts: Sequence[str], now: datetime) -> bool:
    if pair.certificate.not_valid_after_utc - now <= RENEW_BEFORE:
        return False
    try:
        pair.certificate.verify_directly_issued_by(authority.certificate)
    except (InvalidSignature, ValueError):
        return False
    named = set(alternative_names(pair.certificate))
    return named.issuperset(host_name(host) for host in hosts)


def _make(folder: Path, authority: KeyPair, identity: MeshIdentity, hosts: Sequence[str], now: datetime) -> Certificate:
    path = _path(folder, identity.role, identity.name)
    pair = make_leaf(authority, identity, list(dict.fromkeys(hosts)), now)
    save(path, pair)
    return describe(path, folder / CA_FILE, pair.certificate)


def _path(folder: Path, role: Role, name: str) -> Path:
    check_name(name)
    return folder / role / f"{name}.pem"
