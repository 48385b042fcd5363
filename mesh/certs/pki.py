"""Makes and renews the certificates that a mesh needs, as files in a folder.

The mesh's authority, its CA, is made once, on one machine, in a folder without certificates. On a machine with some
certificates of a mesh, but not the authority's key, nothing is made or replaced, and a certificate that is missing or
due for renewal raises CertsError: nodes with certificates of a second authority would not trust the others.

Functions that write may run in several processes at once: each locks the folder until its files are written.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from mesh.certs.authority import KeyPair, check_name, host_name, make_authority, make_leaf, mesh_uri
from mesh.certs.errors import CertsError
from mesh.certs.stored import (
    Certificate,
    alternative_names,
    describe,
    load,
    load_certificate,
    load_key,
    locked,
    save,
)
from wire.transport.certificate_files import key_path_of
from wire.transport.tls import MeshIdentity, Role

CA_FILE = "ca.pem"
RENEW_BEFORE = timedelta(days=30)
# A CA with no more time left than this gets a new certificate for the same key, if the key is here: certificates end
# with their CA at the latest, and new certificates are to last a year.
RENEW_CA_BEFORE = timedelta(days=400)
DEFAULT_OPERATOR = "operator"

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::", "", "*")


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A node that needs a certificate. ``hosts`` are the hosts of the node's listeners and of the node port."""

    name: str
    role: Role
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Authority:
    """The mesh's CA as this machine has it; ``key`` is None without the key of the CA's certificate, as on a machine
    with a copy of the certificate only.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | None
    path: Path

    @property
    def mesh(self) -> str:
        """Return the URI of the mesh, from the CA's certificate; empty if the certificate has no URI."""
        uris = alternative_names(self.certificate).get_values_for_type(x509.UniformResourceIdentifier)
        return uris[0] if uris else ""

    def signing(self, name: str) -> KeyPair:
        """Return the CA's certificate and key to sign a certificate of ``name``; raises CertsError without a key."""
        if self.key is None:
            raise CertsError(
                f"the certificate of {name!r} cannot be made here: the key of the mesh CA is missing, or does not fit "
                f"the CA's certificate ({key_path_of(self.path)}). Run `amqpmesh certs make` (for a node), or `certs "
                "issue`, on the machine that keeps the key, and copy the two files of the certificate"
            )
        return KeyPair(self.key, self.certificate)


def ensure_pki(
    folder: Path, mesh: str, nodes: Iterable[NodeRequest], *, now: datetime | None = None
) -> list[Certificate]:
    """Make the nodes' missing certificates in ``folder``, and the CA if there is none.

    A node's certificate is made anew if it ends within 30 days (without the CA's key here: if it has ended), lacks one
    of the node's hosts, or was issued by another CA; the CA gets a new certificate for its key if it ends within 400
    days and its key is here. Returns the certificates in the order of ``nodes``. Raises CertsError if the folder has
    another mesh's CA, a certificate has to be made and the CA's key is not here, or a file cannot be read or written.
    """
    now = now or datetime.now(UTC)
    with locked(folder):
        authority = _ensure_authority(folder, mesh, now)
        return [_ensure(folder, authority, MeshIdentity(mesh, node.role, node.name), node.hosts, now) for node in nodes]


def ensure_operator(folder: Path, name: str = DEFAULT_OPERATOR, *, now: datetime | None = None) -> Certificate:
    """Return operator ``name``'s certificate, with which commands log in to nodes.

    The certificate is made if it is missing, ends within 30 days (without the CA's key here: if it has ended), or was
    issued by another CA. Raises CertsError if there is no CA, or the certificate has to be made and the CA's key is not
    here.
    """
    now = now or datetime.now(UTC)
    with locked(folder):
        authority, mesh = _authority(folder)
        return _ensure(folder, authority, MeshIdentity(mesh, Role.OPERATOR, name), (), now)


def issue_operator(folder: Path, name: str, *, now: datetime | None = None) -> Certificate:
    """Issue a certificate for operator ``name``. Raises CertsError, also if the operator has a certificate already."""
    return _issue(folder, Role.OPERATOR, name, now)


def issue_client(folder: Path, name: str, *, now: datetime | None = None) -> Certificate:
    """Issue a certificate by which a client logs in as user ``name`` with SASL EXTERNAL.

    Raises CertsError, also if the user has a certificate already.
    """
    return _issue(folder, Role.CLIENT, name, now)


def renew(folder: Path, name: str | None = None, *, now: datetime | None = None) -> list[Certificate]:
    """Issue certificates named ``name``, of any role, again with new keys for a year; None renews all but the CA's.

    Raises CertsError, also if there is nothing to renew.
    """
    now = now or datetime.now(UTC)
    with locked(folder):
        authority, _ = _authority(folder)
        found = [c for c in list_certificates(folder) if c.identity is not None and name in (None, c.name)]
        if not found:
            raise CertsError(f"there is no certificate of {name!r}" if name else "there are no certificates to renew")
        return [_make(folder, authority, c.identity, c.hosts, now) for c in found if c.identity is not None]


def list_certificates(folder: Path) -> list[Certificate]:
    """Return the CA, then all certificates in ``folder`` by role and name; an empty list before ``ensure_pki`` ran.

    Any certificate but the CA's is left out if its key is missing or does not belong to the certificate. Raises
    CertsError for an unreadable or damaged file.
    """
    ca_path = folder / CA_FILE
    authority = _load_authority(folder)
    leaves = [path for path in _leaves(folder) if not path.name.endswith("-key.pem")]
    return [
        *([describe(ca_path, ca_path, authority.certificate)] if authority is not None else []),
        *(describe(path, ca_path, pair.certificate) for path in leaves if (pair := load(path)) is not None),
    ]


def _ensure_authority(folder: Path, mesh: str, now: datetime) -> _Authority:
    """Return the CA of ``mesh``; a folder without certificates gets a new CA.

    A CA that ends within 400 days gets a new certificate for the same key, if the key is here. Raises CertsError if the
    folder has another mesh's CA, or has certificates of nodes, operators or clients but neither CA nor CA key.
    """
    path = folder / CA_FILE
    authority = _load_authority(folder)
    if authority is not None and authority.mesh != mesh_uri(mesh):
        raise CertsError(f"{path} is the CA of another mesh, expected the CA of {mesh!r}")
    if authority is not None and (
        authority.key is None or authority.certificate.not_valid_after_utc - now > RENEW_CA_BEFORE
    ):
        return authority
    key = authority.key if authority is not None else load_key(key_path_of(path))
    if key is None and (stray := next(_leaves(folder), None)) is not None:
        raise CertsError(
            f"{path} is missing, although {stray} exists: copy ca.pem from the machine that keeps the authority of "
            f"mesh {mesh}. To begin with a new authority, remove {folder}"
        )
    made = make_authority(mesh, now, key)
    save(path, made)
    return _Authority(made.certificate, made.key, path)


def _authority(folder: Path) -> tuple[_Authority, str]:
    """Return the CA in ``folder``, and the name of its mesh. Raises CertsError if there is no CA."""
    authority = _load_authority(folder)
    if authority is None:
        raise CertsError(f"there is no mesh CA in {folder} yet: `amqpmesh certs make` makes it")
    return authority, _unquote_mesh(authority.mesh)


def _load_authority(folder: Path) -> _Authority | None:
    path = folder / CA_FILE
    if (pair := load(path)) is not None:
        return _Authority(pair.certificate, pair.key, path)
    certificate = load_certificate(path)
    return _Authority(certificate, None, path) if certificate is not None else None


def _leaves(folder: Path) -> Iterator[Path]:
    return (path for role in Role for path in sorted((folder / role).glob("*.pem")))


def _unquote_mesh(uri: str) -> str:
    return unquote(uri.partition(":")[2])


def _issue(folder: Path, role: Role, name: str, now: datetime | None) -> Certificate:
    with locked(folder):
        authority, mesh = _authority(folder)
        if load(_path(folder, role, name)) is not None:
            raise CertsError(f"{role} {name!r} has a certificate already: renew it with `amqpmesh certs renew {name}`")
        return _make(folder, authority, MeshIdentity(mesh, role, name), (), now or datetime.now(UTC))


def _ensure(
    folder: Path, authority: _Authority, identity: MeshIdentity, hosts: Sequence[str], now: datetime
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


def _is_good(pair: KeyPair, authority: _Authority, hosts: Sequence[str], now: datetime) -> bool:
    # A machine without the CA's key cannot renew a certificate, and uses it to the end.
    renew_before = RENEW_BEFORE if authority.key is not None else timedelta(0)
    if pair.certificate.not_valid_after_utc - now <= renew_before:
        return False
    try:
        pair.certificate.verify_directly_issued_by(authority.certificate)
    except (InvalidSignature, ValueError):
        return False
    named = set(alternative_names(pair.certificate))
    return named.issuperset(host_name(host) for host in hosts)


def _make(
    folder: Path, authority: _Authority, identity: MeshIdentity, hosts: Sequence[str], now: datetime
) -> Certificate:
    path = _path(folder, identity.role, identity.name)
    pair = make_leaf(authority.signing(identity.name), identity, list(dict.fromkeys(hosts)), now)
    save(path, pair)
    return describe(path, folder / CA_FILE, pair.certificate)


def _path(folder: Path, role: Role, name: str) -> Path:
    check_name(name)
    return folder / role / f"{name}.pem"
