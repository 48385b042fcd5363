"""The driver behind TLS: who gets in, who is let on, and what each mistake leaves in the log."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from mesh.certs import Certificate, NodeRequest, ensure_operator, ensure_pki, issue_client
from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sasl.secrets import USERS
from mesh_tests.unit.wire.sites import LOOPBACK, exchange, site
from wire.log_events import ConnectionOpened
from wire.node import ConnectorSpec
from wire.sasl import SaslClientSettings, SaslServerSettings
from wire.sasl.headers import AMQP
from wire.transport.log_events import ConnectionRefused, ConnectorDown
from wire.transport.tls import (
    MeshIdentity,
    Role,
    TlsSetupError,
    client_context,
    format_identity,
    listener_context,
    mesh_connector_context,
    mesh_listener_context,
    parse_identity,
)

pytestmark = pytest.mark.usefixtures("every_loop")

NODE_SASL = SaslServerSettings(is_required=True, is_tls_enough=True)


class Pki:
    def __init__(self, folder: Path, mesh: str) -> None:
        self.folder = folder
        self.r1, self.r2, self.b1 = ensure_pki(
            folder,
            mesh,
            [NodeRequest("r1", Role.ROUTER), NodeRequest("r2", Role.ROUTER), NodeRequest("b1", Role.BROKER)],
        )
        self.operator = ensure_operator(folder)
        self.alice = issue_client(folder, "alice")

    @property
    def node_listener(self) -> dict[str, object]:
        return {"tls": mesh_listener_context(self.r1.files), "mesh": "m", "sasl": NODE_SASL}

    def client_listener(self, *, is_required: bool = False) -> dict[str, object]:
        files = self.r1.files
        return {
            "tls": listener_context(files.certificate, files.key, files.ca),
            "sasl": SaslServerSettings(USERS, is_required=is_required),
        }


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"), "m")


@pytest.fixture(scope="module")
def other_pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("other"), "m")


def node_spec(certificate: Certificate, port: int, expected: str = "r1", **more: object) -> ConnectorSpec:
    identity = MeshIdentity("m", Role.ROUTER, expected)
    context = mesh_connector_context(certificate.files)
    return ConnectorSpec("up", LOOPBACK, port, context, expected=identity, is_mesh=True, **more)  # type: ignore[arg-type]


def ssl_ciphers() -> list[Any]:
    return ssl.create_default_context().get_ciphers()


def test_nodes_find_each_other_by_certificate(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.node_listener) as server, site("r2") as client:
            client.driver.connect(node_spec(pki.r2, server.port))
            await client.node.wait(lambda: client.node.opened)
            await server.node.wait(lambda: server.node.opened)
            (peer,) = server.node.peers
            assert (peer.is_mesh, peer.mesh_name, peer.user) == (True, "r2", "r2")
            assert peer.mesh_role is Role.ROUTER
            agreed = peer.tls
            assert agreed is not None
            assert (agreed.version, agreed.cipher) in {("TLSv1.3", each["name"]) for each in ssl_ciphers()}
            (peer,) = client.node.peers
            assert (peer.is_mesh, peer.mesh_name, peer.mechanism, peer.tls) == (True, "r1", None, agreed)
            assert server.log.of(ConnectionOpened)[0].tls

    run(scenario)


def test_an_operator_gets_into_the_node_port_with_a_sasl_layer_too(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.node_listener) as server, site("op") as client:
            client.driver.connect(node_spec(pki.operator, server.port, sasl=SaslClientSettings(has_certificate=True)))
            await server.node.wait(lambda: server.node.opened)
            assert server.node.peers[0].mesh_name == "operator"
            assert server.node.peers[0].mesh_role is Role.OPERATOR
            assert server.log.of(ConnectionOpened)[0].mechanism == "EXTERNAL"
            await client.node.wait(lambda: client.node.opened)
            assert [node.peers[0].mechanism for node in (server.node, client.node)] == ["EXTERNAL", "EXTERNAL"]

    run(scenario)


def test_a_client_certificate_of_the_mesh_does_not_open_the_node_port(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.node_listener) as server, site("mallory") as client:
            client.driver.connect(node_spec(pki.alice, server.port))
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert (
                refused.reason == "certificate of client 'alice' of mesh 'm', expected a node or operator of mesh 'm'"
            )
            assert server.node.endpoints == []

    run(scenario)


def test_a_certificate_of_another_ca_does_not_open_the_node_port(pki: Pki, other_pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.node_listener) as server:
            context = mesh_connector_context(other_pki.r2.files)
            context.load_verify_locations(pki.r1.ca_path)
            reader, writer = await asyncio.open_connection(LOOPBACK, server.port, ssl=context)
            writer.write(AMQP)
            with pytest.raises(ssl.SSLError):
                await reader.read()
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason.startswith("certificate not trusted: ")

    run(scenario)


def test_no_certificate_does_not_open_the_node_port(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.node_listener) as server, site("client") as client:
            context = client_context(pki.r1.ca_path)
            client.driver.connect(ConnectorSpec("up", LOOPBACK, server.port, context))
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason == "TLS: peer did not return a certificate"
            (down,) = await client.log.wait_for(ConnectorDown)
            assert down.reason.startswith("TLS: ")
            assert "certificate required" in down.reason

    run(scenario)


def test_a_node_is_not_mistaken_for_another(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.node_listener) as server, site("r2") as client:
            client.driver.connect(node_spec(pki.r2, server.port, expected="r3"))
            await client.node.wait(lambda: client.node.failed)
            reason = "the certificate is of router 'r1' of mesh 'm', expected router 'r3' of mesh 'm'"
            assert client.node.failed[0] == ("up", reason)

    run(scenario)


def test_a_connector_does_not_trust_another_ca(pki: Pki, other_pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **other_pki.node_listener) as server, site("r2") as client:
            client.driver.connect(node_spec(pki.r2, server.port))
            await client.node.wait(lambda: client.node.failed)
            assert client.node.failed[0][1].startswith("certificate not trusted: ")
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason.startswith("TLS: ")

    run(scenario)


def test_a_client_certificate_logs_in_by_external_and_is_not_of_the_mesh(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.client_listener(is_required=True)) as server, site("c") as client:
            context = client_context(pki.r1.ca_path, pki.operator.path, pki.operator.key_path)
            client.dial(server.port, tls=context, sasl=SaslClientSettings(has_certificate=True))
            await server.node.wait(lambda: server.node.opened)
            (peer,) = server.node.peers
            assert (peer.user, peer.is_mesh, peer.mesh_name) == ("operator", False, None)

    run(scenario)


def test_a_password_works_without_a_client_certificate(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.client_listener(is_required=True)) as server, site("c") as client:
            client.dial(server.port, tls=client_context(pki.r1.ca_path), sasl=SaslClientSettings("alice", "wonder"))
            await server.node.wait(lambda: server.node.opened)
            assert server.node.peers[0].user == "alice"

    run(scenario)


def test_the_host_name_is_verified_unless_the_user_says_otherwise(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.client_listener()) as server, site("c") as client:
            strict = client_context(pki.r1.ca_path)
            client.dial(server.port, tls=strict, server_hostname="elsewhere.example")
            await client.node.wait(lambda: client.node.failed)
            assert "elsewhere.example" in client.node.failed[0][1]
            lax = client_context(pki.r1.ca_path, verifies_host=False)
            client.dial(server.port, tls=lax, server_hostname="elsewhere.example")
            await client.node.wait(lambda: client.node.opened)

    run(scenario)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (AMQP, "not TLS: AMQP 1.0 without a SASL layer"),
        (b"GET / HTTP/1.1\r\n\r\n", "not TLS: HTTP: GET / HTTP/1.1"),
        (b"\x8f\x01\x02\x03\x04\x05\x06\x07", "not TLS: 8 bytes that begin 8f 01"),
    ],
)
def test_plain_text_on_a_tls_port_is_named_and_closed(pki: Pki, data: bytes, reason: str) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.client_listener()) as server:
            await exchange(server.port, data)
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason.startswith(reason)

    run(scenario)


def test_a_silent_tls_client_is_closed_in_time(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", handshake_timeout_s=0.1, **pki.client_listener()) as server:
            await exchange(server.port, b"")
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason == "no TLS handshake within 0.1 s"

    run(scenario)


def test_a_tls_listener_behind_plain_text_is_named_by_the_connector(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("plain") as server, site("c") as client:
            client.dial(server.port, tls=client_context(pki.r1.ca_path))
            await client.node.wait(lambda: client.node.failed)
            assert client.node.failed[0][1] == "not TLS: AMQP 1.0 without a SASL layer"
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason == "not AMQP 1.0: a TLS ClientHello"

    run(scenario)


def test_much_output_goes_through_tls_in_bounded_pieces(pki: Pki) -> None:
    async def scenario() -> None:
        async with site("r1", **pki.client_listener()) as server, site("c") as client:
            client.dial(server.port, tls=client_context(pki.r1.ca_path))
            await client.node.wait(lambda: client.node.opened)
            await server.node.wait(lambda: server.node.opened)
            seen = []
            server.node.on_link = lambda link: (seen.append(link), link.accept_as_proposed())[0]
            session = client.node.opened[0].begin()
            for count in range(3000):
                session.sender("x" * 1000 + str(count)).open()
            client.driver.wake()
            await server.node.wait(lambda: len(seen) == 3000, timeout_s=15)

    run(scenario)


def test_identities_survive_any_name() -> None:
    identity = MeshIdentity("a/b c", Role.CLIENT, "zoë/:%")
    assert parse_identity(format_identity(identity)) == identity
    assert parse_identity("amqpmesh:m/king/x") is None
    assert parse_identity("https://example.com/a/b") is None


def test_a_file_that_cannot_be_used_is_named(pki: Pki, tmp_path: Path) -> None:
    missing = tmp_path / "none.pem"
    with pytest.raises(TlsSetupError, match=r"cannot read the certificate, key or CA file .*none\.pem"):
        listener_context(missing, missing)
    with pytest.raises(TlsSetupError, match="are not a valid certificate and its key"):
        listener_context(pki.r1.path, pki.r2.key_path)
    missing.write_text("x")
    with pytest.raises(TlsSetupError, match=r"none\.pem is not a valid file of CA certificates"):
        client_context(missing)


def test_nodes_without_tls_are_of_the_mesh_because_the_topology_says_so() -> None:
    async def scenario() -> None:
        async with site("r1", mesh="m") as server, site("r2") as client:
            client.driver.connect(ConnectorSpec("up", LOOPBACK, server.port, is_mesh=True))
            await server.node.wait(lambda: server.node.opened)
            await client.node.wait(lambda: client.node.opened)
            assert server.node.peers[0].is_mesh
            assert client.node.peers[0].is_mesh

    run(scenario)
