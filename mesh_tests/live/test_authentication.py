"""Who gets in, by which proof, and what may they do then? Our own client and proton's, over real ports."""

from __future__ import annotations

import ssl
import subprocess
from functools import partial

import pytest
from proton import ConnectionException, Message
from proton.utils import BlockingConnection, LinkDetached

from addressing.topology.credentials import make_secret
from mesh.certs import NodeRequest, ensure_pki
from mesh_tests.frames import frame
from mesh_tests.live.offender import AMQP, OPEN_BODY, SASL, Offender, complaints
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import AMQPMESH
from mesh_tests.waiting import wait_until
from wire.delivery import OutcomeCode
from wire.transport.tls import Role

REQUIRED, OPTIONAL, NONE, TLS = range(4)
COMMAND_S = 30.0
CONNECT_S = 30.0
LOGGED_S = 30.0

secret = partial(make_secret, iterations=4096)

TOPOLOGY = f"""
mesh: authentication
routers:
  r1:
    listeners:
      - {{authentication: required}}
      - {{authentication: optional}}
      - {{authentication: none}}
      - {{authentication: required, tls: true}}
    connect: [r2]
  r2: {{listeners: []}}
brokers:
  b1: {{routers: [r2]}}
addresses:
  "#": queue
  live.#: anycast
users:
  alice: {{password: "{secret("alice's")}", send: ["${{user}}.#", live], receive: ["${{user}}.#"]}}
  bob: {{password: "{secret("bob's")}", send: ["alice.#"]}}
  carol: {{send: ["${{user}}.#"], receive: ["${{user}}.#"]}}
  dave: {{password: "{secret("dave's")}", max_connections: 2}}
  anonymous: {{send: ["public.#"], receive: ["public.#"]}}
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


def _amqpmesh(mesh, *arguments):
    command = [AMQPMESH, *arguments, "-t", str(mesh.topology_file)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_S, stdin=subprocess.DEVNULL, check=False
    )


def _send(mesh, login, address, *options, listener=REQUIRED, scheme="amqp"):
    url = f"{scheme}://{login + '@' if login else ''}localhost:{mesh.port('r1', listener)}/{address}"
    return _amqpmesh(mesh, "send", url, "-m", "hello", *options)


def _connect(mesh, login, listener=REQUIRED, **options):
    return BlockingConnection(
        f"amqp://{login + '@' if login else ''}127.0.0.1:{mesh.port('r1', listener)}", timeout=CONNECT_S, **options
    )


def _refusals(mesh):
    return [line for line in mesh.log("r1") if line["event"] == "connection_refused"]


# Passwords
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_user_with_the_right_password_may_send(mesh, mechanism):
    done = _send(mesh, "alice:alice's", "alice.inbox", "--sasl-mechanism", mechanism)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("login", ["alice:wrong", "mallory:alice's", "carol:any"])
def test_a_wrong_password_and_an_unknown_user_look_the_same_and_are_logged_once(mesh, mechanism, login):
    before = len(_refusals(mesh))
    done = _send(mesh, login, "alice.inbox", "--sasl-mechanism", mechanism)
    assert done.returncode != 0
    assert "authentication" in done.stderr or "password" in done.stderr, done.stderr
    wait_until(lambda: len(_refusals(mesh)) > before, LOGGED_S, "a line in the log")
    (line,) = _refusals(mesh)[before:]
    assert "wrong user or password" in line["reason"]


def test_the_client_of_proton_logs_in_by_plain(mesh):
    connection = _connect(mesh, "alice:alice's", allowed_mechs="PLAIN")
    connection.create_sender("alice.inbox").send(Message("hello"))
    connection.close()


def test_the_client_of_proton_is_told_of_a_wrong_password(mesh):
    with pytest.raises(ConnectionException, match=r"Authentication failed|unauthorized"):
        _connect(mesh, "alice:wrong", allowed_mechs="PLAIN", reconnect=False)


# Crowds
def test_a_user_with_as_many_connections_as_it_may_have_is_refused_another_and_nobody_else_is(mesh):
    held = [_connect(mesh, "dave:dave's", allowed_mechs="PLAIN") for _ in range(2)]
    with pytest.raises(ConnectionException, match="user 'dave': at most 2 connections to this router are allowed"):
        _connect(mesh, "dave:dave's", allowed_mechs="PLAIN", reconnect=False)
    assert _send(mesh, "alice:alice's", "alice.inbox").returncode == 0
    held.pop().close()
    wait_until(lambda: _gets_in(mesh, "dave:dave's"), LOGGED_S, "room for another")
    held.pop().close()


def _gets_in(mesh, login):
    try:
        _connect(mesh, login, allowed_mechs="PLAIN", reconnect=False).close()
    except ConnectionException:
        return False
    return True


# With and without a SASL layer
def test_where_authentication_is_required_nobody_comes_in_without(mesh):
    offender = Offender(mesh, "r1", mesh.port("r1", REQUIRED))
    offender.send(AMQP, frame(OPEN_BODY))
    assert offender.answer() == SASL
    assert "authentication is required" in offender.wait_one_complaint()["reason"]
    done = _send(mesh, "", "public.news", "--sasl-mechanism", "ANONYMOUS")
    assert done.returncode != 0


@pytest.mark.parametrize("listener", [OPTIONAL, NONE])
def test_one_port_takes_clients_with_and_without_a_sasl_layer(mesh, listener):
    _connect(mesh, "", listener, sasl_enabled=False).close()
    _connect(mesh, "", listener, allowed_mechs="ANONYMOUS").close()
    with WireClient(mesh.port("r1", listener)) as client:
        assert client.sender("public.news").is_open


def test_where_authentication_is_optional_a_password_is_checked_all_the_same(mesh):
    assert _send(mesh, "alice:alice's", "alice.inbox", listener=OPTIONAL).returncode == 0
    assert _send(mesh, "alice:wrong", "alice.inbox", listener=OPTIONAL).returncode != 0


# What a user may do
@pytest.mark.parametrize(
    ("login", "address", "is_allowed"),
    [
        ("alice:alice's", "alice.inbox", True),
        ("alice:alice's", "bob.inbox", False),
        ("bob:bob's", "alice.inbox", True),
        ("bob:bob's", "bob.inbox", False),
        ("bob:bob's", "public.news", False),
    ],
)
def test_a_user_may_send_where_a_pattern_says_so_and_nowhere_else(mesh, login, address, is_allowed):
    connection = _connect(mesh, login)
    if is_allowed:
        connection.create_sender(address).send(Message("hello"))
    else:
        with pytest.raises(LinkDetached) as refused:
            connection.create_sender(address)
        assert refused.value.condition == "amqp:unauthorized-access"
    connection.close()


def test_who_may_send_may_not_receive_because_of_that(mesh):
    connection = _connect(mesh, "bob:bob's")
    with pytest.raises(LinkDetached) as refused:
        connection.create_receiver("alice.inbox")
    assert refused.value.condition == "amqp:unauthorized-access"
    connection.close()


@pytest.mark.parametrize("address", ["alice.inbox", "_amqpmesh/probe/x", "_topo/0/r1/temp.guessed", "$management"])
def test_who_did_not_log_in_has_the_rights_of_anonymous(mesh, address):
    with WireClient(mesh.port("r1", OPTIONAL)) as client:
        receiver = client.receiver(address)
        assert client.wait_detached(receiver).error.condition == "amqp:unauthorized-access"
        (line,) = wait_until(lambda: complaints(mesh, "r1", client.local_name), LOGGED_S, "a line in the log")
        assert line["event"] == "attach_refused"


def test_a_message_of_an_anonymous_sender_to_a_forbidden_address_is_rejected(mesh):
    with WireClient(mesh.port("r1", OPTIONAL)) as client:
        sender = client.sender(None)
        client.wait(lambda: sender.credit > 0, "credit")
        outcome = client.wait_outcome(client.send(sender, "hello", to="alice.inbox"))
        assert (outcome.kind, outcome.error.condition) == (OutcomeCode.REJECTED, "amqp:unauthorized-access")
        assert sender.is_open


# Certificates
@pytest.fixture(scope="module")
def carols(mesh):
    issued = _amqpmesh(mesh, "certs", "issue", "carol")
    assert issued.returncode == 0, issued.stderr
    folder = mesh.pki / "client"
    return folder / "carol.pem", folder / "carol-key.pem"


def test_external_takes_the_user_from_a_certificate_of_the_mesh(mesh, carols):
    options = ("--ca", mesh.pki / "ca.pem", "--cert", carols[0], "--private-key", carols[1])
    options = [str(option) for option in options]
    done = _send(mesh, "", "carol.inbox", *options, listener=TLS, scheme="amqps")
    assert done.returncode == 0, done.stderr
    assert [line for line in mesh.log("r1") if line.get("mechanism") == "EXTERNAL"][-1]["user"] == "carol"
    assert _send(mesh, "", "alice.inbox", *options, listener=TLS, scheme="amqps").returncode != 0


def test_a_client_certificate_of_the_mesh_does_not_open_the_node_port(mesh, carols):
    _assert_node_port_refuses(mesh, *carols)


def test_the_node_port_refuses_who_has_no_certificate(mesh):
    _assert_node_port_refuses(mesh)


def test_a_router_with_a_certificate_of_another_authority_cannot_join(mesh, tmp_path):
    (foreign,) = ensure_pki(tmp_path, "authentication", [NodeRequest("r2", Role.ROUTER, ("127.0.0.1",))])
    _assert_node_port_refuses(mesh, foreign.files.certificate, foreign.files.key)


def _assert_node_port_refuses(mesh, certificate=None, key=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    offender = Offender(mesh, "r1", mesh.node_port("r1"))
    assert AMQP not in _answer_over_tls(offender, context)
    assert offender.wait_one_complaint()["event"] == "connection_refused"
    offender.leave()


def _answer_over_tls(offender, context):
    """What a node says to an open; nothing when it ends TLS (which it may do after the client's handshake is over)."""
    try:
        offender.socket = context.wrap_socket(offender.socket)
        offender.send(AMQP, frame(OPEN_BODY))
        return offender.answer()
    except (ssl.SSLError, ConnectionError):
        return b""
