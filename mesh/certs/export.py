"""Exports a certificate of the mesh, with its key and the CA, in forms that other programs read: PEM and PKCS #12."""

from __future__ import annotations

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from mesh.certs.errors import CertsError
from mesh.certs.stored import Certificate, load, load_certificate


def export_pem(certificate: Certificate) -> bytes:
    """Return the content of one PEM file: certificate, private key and CA certificate. Raises CertsError if one of the
    three files cannot be read.
    """
    try:
        paths = (certificate.path, certificate.key_path, certificate.ca_path)
        return b"".join(path.read_bytes() for path in paths)
    except OSError as error:
        raise CertsError(f"cannot read {error.filename} for the export: {error.strerror}") from None


def export_pkcs12(certificate: Certificate, password: str) -> bytes:
    """Return certificate, private key and CA certificate as a PKCS #12 key store, for Java and Windows.

    The key store is encrypted with ``password``. Raises CertsError if the password is empty, or the certificate or its
    key, or the CA certificate, is missing or damaged.
    """
    pair = load(certificate.path)
    if pair is None:
        raise CertsError(f"cannot export {certificate.path}: this file, or the key that belongs to it, is missing")
    if not password:
        raise CertsError("a PKCS #12 key store needs a password, and the password given is empty")
    ca = load_certificate(certificate.ca_path)
    if ca is None:
        raise CertsError(f"cannot export {certificate.path}: the CA certificate {certificate.ca_path} is missing")
    encryption = BestAvailableEncryption(password.encode())
    return serialize_key_and_certificates(certificate.name.encode(), pair.key, pair.certificate, [ca], encryption)
