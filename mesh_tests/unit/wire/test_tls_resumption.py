"""Is the certificate of a client judged at each login, also where the client resumes its TLS session?"""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mesh.certs import Certificate, NodeRequest, ensure_pki, issue_client, issue_operator
from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sites import LOOPBACK, Site, site
from wire.sasl import SaslServerSettings
from wire.sasl.headers import AMQP
from wire.transport.log_events import ConnectionRefused
from wire.transport.tls import Role, listener_context, mesh_listener_context

VERSIONS = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}
VALID_S = 2.5


def expiring_soon() -> datetime:
    """The time of making for a certificate of a year that has ``VALID_S`` left."""
    return datetime.now(UTC) - timedelta(days=365) + timedelta(seconds=VALID_S)


def resumable(certificate: Certificate, version: ssl.TLSVersion) -> ssl.SSLContext:
    """Not the context of our own connectors, which never resume: that of an ordinary client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.minimum_version = context.maximum_version = version
    context.load_verify_locations(certificate.files.ca)
    context.load_cert_chain(certificate.path, certificate.key_path)
    return context


def log_in(context: ssl.SSLContext, port: int, session: ssl.SSLSession | None = None) -> tuple[bytes, ssl.SSLSession]:
    """What the server answers to a header of AMQP, and the session that the next login may resume."""
    with (
        socket.create_connection((LOOPBACK, port), timeout=5) as plain,
        context.wrap_socket(plain, session=session) as tls,
    ):
        tls.sendall(AMQP)
        answer = tls.recv(8)  # tickets come before it
        assert tls.session is not None
        return answer, tls.session


async def assert_expired_is_refused(server: Site, context: ssl.SSLContext, expires: datetime) -> None:
    answer, session = await asyncio.to_thread(log_in, context, server.port)
    assert answer == AMQP
    await asyncio.sleep((expires + timedelta(seconds=1) - datetime.now(UTC)).total_seconds())
    try:
        answer, _ = await asyncio.to_thread(log_in, context, server.port, session)
    except OSError:
        answer = b""
    assert answer == b""
    # The first login left without an OPEN, and was refused for that.
    await server.log.wait_for(ConnectionRefused, 2)
    (_, refused) = server.log.of(ConnectionRefused)
    assert refused.reason.startswith("certificate not trusted: certificate has expired")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    (made,) = ensure_pki(tmp_path_factory.mktemp("pki"), "m", [NodeRequest("r1", Role.ROUTER)])
    return made


def folder_of(node: Certificate) -> Path:
    return node.ca_path.parent


@pytest.mark.parametrize("is_required", [False, True], ids=["optional", "required"])
@pytest.mark.parametrize("version", VERSIONS)
def test_an_expired_client_certificate_does_not_log_in_by_a_resumed_session(
    node: Certificate, version: str, is_required: bool
) -> None:
    made_at = expiring_soon()
    alice = issue_client(folder_of(node), f"alice-{version}-{is_required}", now=made_at)
    files = node.files
    tls = listener_context(files.certificate, files.key, files.ca, is_required=is_required)

    async def scenario() -> None:
        async with site("r1", tls=tls, sasl=SaslServerSettings()) as server:
            expires = made_at + timedelta(days=365)
            await assert_expired_is_refused(server, resumable(alice, VERSIONS[version]), expires)

    run(scenario)


def test_an_expired_operator_does_not_get_into_the_node_port_by_a_resumed_session(node: Certificate) -> None:
    made_at = expiring_soon()
    operator = issue_operator(folder_of(node), "leaving", now=made_at)
    sasl = SaslServerSettings(is_required=True, is_tls_enough=True)

    async def scenario() -> None:
        async with site("r1", tls=mesh_listener_context(node.files), mesh="m", sasl=sasl) as server:
            expires = made_at + timedelta(days=365)
            await assert_expired_is_refused(server, resumable(operator, ssl.TLSVersion.TLSv1_3), expires)

    run(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_valid_client_certificate_logs_in_again_with_the_session_that_it_has(node: Certificate, version: str) -> None:
    bob = issue_client(folder_of(node), f"bob-{version}")
    files = node.files
    tls = listener_context(files.certificate, files.key, files.ca)
    context = resumable(bob, VERSIONS[version])

    async def scenario() -> None:
        async with site("r1", tls=tls, sasl=SaslServerSettings()) as server:
            _, session = await asyncio.to_thread(log_in, context, server.port)
            answer, _ = await asyncio.to_thread(log_in, context, server.port, session)
            assert answer == AMQP

    run(scenario)
