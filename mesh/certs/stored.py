"""Stores the certificates and keys of a mesh as files: layout, reading and replacing.

    pki/                       0700
      lock                     held while any file here changes
      ca.pem       ca-key.pem  0600, as all keys
      router/r1.pem            router/r1-key.pem
      broker/  operator/  client/

A file is replaced by rename. A certificate and its key are two files: if a crash leaves a node's certificate and a key
that do not belong together, the certificate counts as missing, and is made again at the next ``ensure_pki``.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mesh.certs.authority import KeyPair
from mesh.certs.errors import CertsError
from wire.transport.certificate_files import KEY_SUFFIX, NodeCertificate, key_path_of
from wire.transport.tls import MeshIdentity, parse_identity


@dataclass(frozen=True, slots=True)
class Certificate:
    """The description of a certificate in a file. ``identity``, its mesh, role and name, comes from its URI.

    ``identity`` is None for the CA, and for a certificate without such a URI.
    """

    name: str
    identity: MeshIdentity | None
    path: Path
    key_path: Path
    ca_path: Path
    hosts: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    serial: int
    fingerprint: str
    """The certificate's SHA-256, in hexadecimal."""

    @property
    def role(self) -> str:
        return "ca" if self.identity is None else str(self.identity.role)

    @property
    def files(self) -> NodeCertificate:
        return NodeCertificate(self.path, self.key_path, self.ca_path)

    def left(self, now: datetime) -> timedelta:
        return self.not_after - now


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the certificates' ``folder`` while the block runs, after waiting for other holders of the lock. The folder
    is made if missing, and gets mode 0700. Raises CertsError if the folder or its lock file cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CertsError(f"cannot keep certificates in {folder}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def save(path: Path, pair: KeyPair) -> None:
    """Replace the key's file, then the certificate's: a reader of the new certificate finds the new key."""
    path.parent.mkdir(exist_ok=True, mode=0o700)
    key = pair.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _replace(key_path_of(path), key, 0o600)
    _replace(path, pair.certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def load(path: Path) -> KeyPair | None:
    """Read the certificate at ``path`` and its key; None if a file is missing or the two do not belong together.

    Raises CertsError if a file cannot be read or is damaged.
    """
    certificate, key = load_certificate(path), load_key(key_path_of(path))
    if certificate is None or key is None or key.public_key() != certificate.public_key():
        return None
    return KeyPair(key, certificate)


def load_certificate(path: Path) -> x509.Certificate | None:
    """Read the certificate at ``path``, None without a file. Raises CertsError for an unreadable or damaged file."""
    content = _read(path)
    try:
        return x509.load_pem_x509_certificate(content) if content is not None else None
    except ValueError:
        raise _damaged(path, key_path_of(path)) from None


def load_key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    """Read the private key at ``path``; None if there is no file, or the key is not an elliptic-curve key.

    Raises CertsError for an unreadable or damaged file.
    """
    content = _read(path)
    try:
        key = serialization.load_pem_private_key(content, None) if content is not None else None
    except (ValueError, TypeError):
        raise _damaged(path.with_name(path.name.replace(KEY_SUFFIX, ".pem")), path) from None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CertsError(f"cannot read the certificate or key {error.filename}: {error.strerror}") from None


def _damaged(path: Path, key_path: Path) -> CertsError:
    return CertsError(f"{path} or {key_path} is damaged: remove both files, and amqpmesh makes new ones")


def describe(path: Path, ca_path: Path, certificate: x509.Certificate) -> Certificate:
    names = alternative_names(certificate)
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    identities = [identity for identity in map(parse_identity, uris) if identity is not None]
    common_names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return Certificate(
        name=str(common_names[0].value) if common_names else path.stem,
        identity=identities[0] if identities else None,
        path=path,
        key_path=key_path_of(path),
        ca_path=ca_path,
        hosts=(*names.get_values_for_type(x509.DNSName), *addresses),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        serial=certificate.serial_number,
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(),
    )


def alternative_names(certificate: x509.Certificate) -> x509.SubjectAlternativeName:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])


def _replace(path: Path, data: bytes, mode: int) -> None:
    new = path.with_name(path.name + ".new")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    except OSError as error:
        raise CertsError(f"cannot write the certificate or key {path}: {error.strerror}") from None
