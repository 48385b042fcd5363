"""Makes the certificates of a mesh in memory: ECDSA on P-256, signed by the mesh's own CA.

    CA        10 years    signs certificates and CRLs only              URI amqpmesh:<mesh>
    node      1 year      server and client; names the node's hosts     URI amqpmesh:<mesh>/router/<name> (or broker)
    operator  1 year      client                                        URI amqpmesh:<mesh>/operator/<name>
    client    1 year      client; common name: user of SASL EXTERNAL    URI amqpmesh:<mesh>/client/<name>
No certificate ends later than the CA that signed the certificate.

Spec: X.509 profile [RFC 5280].
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mesh.certs.errors import CertsError
from wire.transport.tls import MeshIdentity, Role, format_identity

CA_DAYS = 3650
LEAF_DAYS = 365
# A certificate is valid from this time before it is made, for machines whose clocks are behind.
_CLOCK_SKEW = timedelta(hours=1)
# The longest common name in a certificate: ub-common-name of [RFC 5280].
_MAX_NAME_LENGTH = 64


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its private key."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def make_authority(mesh: str, now: datetime, key: ec.EllipticCurvePrivateKey | None = None) -> KeyPair:
    """Make a CA for ``mesh``. If ``key`` is the key of an earlier CA of the mesh, the certificates that the earlier CA
    has issued stay valid; None makes a new key.
    """
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = _name(f"{mesh} mesh CA"[:_MAX_NAME_LENGTH])
    builder = (
        _builder(name, name, key.public_key(), now, now + timedelta(days=CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_ca=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([_uri(mesh_uri(mesh))]), critical=False)
    )
    return KeyPair(key, builder.sign(key, hashes.SHA256()))


def make_leaf(authority: KeyPair, identity: MeshIdentity, hosts: Sequence[str], now: datetime) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    ca = authority.certificate
    # A certificate ends with its CA at the latest: peers refuse the certificate once the CA has ended, and a later end
    # of the certificate would give the warning of its expiry too late.
    until = min(now + timedelta(days=LEAF_DAYS), ca.not_valid_after_utc)
    names = [_uri(format_identity(identity)), *[host_name(host) for host in hosts]]
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if identity.role in (Role.ROUTER, Role.BROKER):
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
    builder = (
        _builder(_name(identity.name), ca.subject, key.public_key(), now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(is_ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    return KeyPair(key, builder.sign(authority.key, hashes.SHA256()))


def mesh_uri(mesh: str) -> str:
    """Return the URI that names the mesh in the CA's certificate."""
    return f"amqpmesh:{quote(mesh, safe='')}"


def host_name(host: str) -> x509.GeneralName:
    """Return ``host`` as a certificate's alternative name; raises CertsError if ``host`` is neither an IP address nor a
    host name.
    """
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host.encode("idna").decode("ascii"))
    except (UnicodeError, ValueError):
        raise CertsError(f"{host!r} is not a valid IP address or host name for a certificate") from None


def check_name(name: str) -> None:
    """Raise CertsError unless ``name`` can be a file name and the common name of a certificate."""
    if not name or len(name) > _MAX_NAME_LENGTH:
        raise CertsError(
            f"expected a certificate's name of 1 to {_MAX_NAME_LENGTH} characters, {name!r} has {len(name)}"
        )
    if name.startswith(".") or any(c in "/\\\0" or not c.isprintable() for c in name):
        raise CertsError(
            f"{name!r} is not a valid name of a certificate's file: expected printable characters, no '/' or '\\', and "
            "no '.' at the beginning"
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(until)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _uri(uri: str) -> x509.UniformResourceIdentifier:
    return x509.UniformResourceIdentifier(uri)


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )
