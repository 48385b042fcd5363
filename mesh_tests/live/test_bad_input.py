"""Whatever comes to a port gets a proper error or a clean close and one line in the log, and nobody else notices."""

from __future__ import annotations

import random
import ssl

import pytest

from addressing.topology.credentials import make_secret
from mesh_tests.frames import frame
from mesh_tests.live.bystander import Bystander
from mesh_tests.live.offender import AMQP, BEGIN_BODY, OPEN_BODY, SASL, Offender, complaints
from mesh_tests.live.wire_client import WireClient
from mesh_tests.waiting import wait_until

PLAIN, TLS, SMALL, HASTY, REQUIRED = range(5)

TOPOLOGY = f"""
mesh: bad-input
routers:
  r1:
    listeners:
      - {{authentication: none}}
      - {{authentication: none, tls: true}}
      - {{authentication: none, max_connections: 2, max_links: 3, max_frame_bytes: 4096}}
      - {{authentication: none, handshake_timeout_s: 1}}
      - {{authentication: required, handshake_timeout_s: 1}}
addresses:
  open.#: anycast
  secret.#: anycast
  closed: unavailable
users:
  alice: {{password: "{make_secret("right")}"}}
  anonymous: {{send: ["open.#", closed, unknown], receive: ["open.#", closed, unknown]}}
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


@pytest.fixture(autouse=True)
def bystander(mesh):
    """Goes on through every test of this file; the pid says that the router is still the same."""
    pid = mesh.pid("r1")
    with Bystander(mesh.url("r1"), "open.bystander") as bystander:
        yield bystander
    assert mesh.pid("r1") == pid
    assert "Traceback" not in mesh.log_file("r1").read_text()


@pytest.fixture
def offend(mesh):
    offenders = []

    def offend(listener=PLAIN, node_port=False):
        port = mesh.node_port("r1") if node_port else mesh.port("r1", listener)
        offenders.append(Offender(mesh, "r1", port))
        return offenders[-1]

    yield offend
    for offender in offenders:
        offender.leave()


# What is not AMQP
@pytest.mark.parametrize("listener", [PLAIN, TLS])
def test_a_port_scan_is_one_line_in_the_log(offend, listener):
    offender = offend(listener)
    offender.leave()
    assert offender.wait_one_complaint()["event"] == "connection_refused"


def test_http_gets_the_header_of_amqp_and_a_close(offend):
    offender = offend()
    offender.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert offender.answer() == AMQP
    assert "HTTP: GET / HTTP/1.1" in offender.wait_one_complaint()["reason"]


def test_http_to_a_port_with_tls_is_closed(offend):
    offender = offend(TLS)
    offender.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    offender.answer()
    assert "not TLS: HTTP" in offender.wait_one_complaint()["reason"]


def test_tls_to_a_plain_port_gets_the_header_of_amqp_and_a_close(offend):
    context = ssl.create_default_context()
    hello = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    offender = offend()
    offender.send(hello.read())
    assert offender.answer() == AMQP
    assert "TLS ClientHello" in offender.wait_one_complaint()["reason"]


def test_plain_amqp_to_a_port_with_tls_is_closed(offend):
    offender = offend(TLS)
    offender.send(AMQP, frame(OPEN_BODY))
    offender.answer()
    assert "not TLS: AMQP 1.0" in offender.wait_one_complaint()["reason"]


@pytest.mark.parametrize("where", ["plain port", "TLS port", "node port"])
@pytest.mark.parametrize("seed", range(3))
def test_random_bytes_are_closed(offend, where, seed):
    offender = offend(TLS if where == "TLS port" else PLAIN, node_port=where == "node port")
    offender.send(random.Random(seed).randbytes(2000))
    offender.answer()
    assert offender.wait_one_complaint()["event"] == "connection_refused"


@pytest.mark.parametrize("seed", range(10))
def test_random_bytes_after_the_header_are_a_framing_or_decode_error(offend, seed):
    offender = offend()
    offender.send(AMQP, random.Random(seed).randbytes(2000))
    answer = offender.answer()
    assert b"amqp:connection:framing-error" in answer or b"amqp:decode-error" in answer
    offender.wait_one_complaint()


@pytest.mark.parametrize("seed", range(10))
def test_a_frame_of_random_bytes_is_a_decode_error(offend, seed):
    offender = offend()
    offender.send(AMQP, frame(OPEN_BODY), frame(random.Random(seed).randbytes(200)))
    answer = offender.answer()
    assert b"amqp:decode-error" in answer or b"amqp:connection:framing-error" in answer
    offender.wait_one_complaint()


def test_random_bytes_after_the_sasl_header_are_closed(offend):
    offender = offend()
    offender.send(SASL, random.Random(1).randbytes(2000))
    offender.answer()
    offender.wait_one_complaint()


# What is AMQP, but wrong
def test_a_frame_that_ends_early_is_a_framing_error(offend):
    offender = offend()
    offender.send(AMQP, frame(OPEN_BODY), frame(BEGIN_BODY)[:-3])
    offender.socket.shutdown(1)
    assert b"amqp:connection:framing-error" in offender.answer()
    offender.wait_one_complaint()


def test_a_frame_larger_than_the_limit_is_a_framing_error(offend):
    offender = offend(SMALL)
    offender.send(AMQP, frame(OPEN_BODY), frame(BEGIN_BODY + bytes(5000)))
    assert b"amqp:connection:framing-error" in offender.answer()
    offender.wait_one_complaint()


def test_a_frame_that_claims_gigabytes_is_refused_by_its_size(offend):
    offender = offend()
    offender.send(AMQP, frame(OPEN_BODY), frame(BEGIN_BODY, size=0x7FFFFFFF))
    assert b"amqp:connection:framing-error" in offender.answer()
    offender.wait_one_complaint()


def test_a_frame_that_is_smaller_than_its_header_is_a_framing_error(offend):
    offender = offend()
    offender.send(AMQP, frame(OPEN_BODY), frame(b"", size=3))
    assert b"amqp:connection:framing-error" in offender.answer()
    offender.wait_one_complaint()


def test_a_begin_before_the_open_ends_the_connection(offend):
    offender = offend()
    offender.send(AMQP, frame(BEGIN_BODY))
    assert offender.answer().startswith(AMQP)
    assert "a begin came before the open" in offender.wait_one_complaint()["reason"]


def test_a_session_on_a_channel_above_channel_max_is_an_error(offend):
    offender = offend()
    offender.send(AMQP, frame(OPEN_BODY), frame(BEGIN_BODY, channel=256))
    assert b"amqp:connection:framing-error" in offender.answer()
    offender.wait_one_complaint()


def test_sessions_up_to_channel_max_are_served(mesh):
    with WireClient(mesh.port("r1")) as client:
        sessions = [client.begin() for _ in range(256)]
        sender = client.sender("open.last", session=sessions[-1])
        assert sender.is_open


# Who asks for too much, or for what is not theirs
@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("open", None),
        ("unknown", "amqp:not-found"),
        ("closed", "amqp:not-found"),
        ("secret.plans", "amqp:unauthorized-access"),
    ],
)
def test_an_attach_is_refused_with_its_condition(mesh, address, condition):
    assert _refusal_of_receiver(mesh, address) == condition
    assert _refusal_of_sender(mesh, address) == condition


def _refusal_of_receiver(mesh, address):
    with WireClient(mesh.port("r1")) as client:
        return _refusal(mesh, client, client.receiver(address))


def _refusal_of_sender(mesh, address):
    with WireClient(mesh.port("r1")) as client:
        return _refusal(mesh, client, client.sender(address))


def _refusal(mesh, client, link):
    if link.is_open:
        client.step(0.05)
    if link.is_open:
        return None
    error = client.wait_detached(link).error
    (line,) = wait_until(lambda: complaints(mesh, "r1", client.local_name), 30.0, "a line in the log")
    assert (line["event"], line["condition"]) == ("attach_refused", error.condition)
    assert error.description
    return error.condition


def test_links_over_the_limit_are_refused_and_the_others_stay(mesh):
    with WireClient(mesh.port("r1", SMALL)) as client:
        senders = [client.sender("open.links") for _ in range(3)]
        one_more = client.sender("open.links")
        assert client.wait_detached(one_more).error.condition == "amqp:resource-limit-exceeded"
        assert all(sender.is_open for sender in senders)
        (line,) = wait_until(lambda: complaints(mesh, "r1", client.local_name), 30.0, "a line in the log")
        assert line["condition"] == "amqp:resource-limit-exceeded"
        senders[0].close()
        client.wait(lambda: senders[0].is_gone, "the answer to the detach")
        assert client.sender("open.links").is_open


def test_connections_over_the_limit_are_told_so_and_the_others_stay(mesh):
    with WireClient(mesh.port("r1", SMALL)) as one, WireClient(mesh.port("r1", SMALL)) as two:
        three = WireClient(mesh.port("r1", SMALL), is_awaited=False)
        assert three.wait_closed().error.condition == "amqp:resource-limit-exceeded"
        (line,) = wait_until(lambda: complaints(mesh, "r1", three.local_name), 30.0, "a line in the log")
        assert line["event"] == "connection_refused"
        three.kill()
        assert one.sender("open.first").is_open
        assert two.sender("open.second").is_open
    wait_until(lambda: not _connections(mesh, SMALL), 30.0, "both to be gone")
    with WireClient(mesh.port("r1", SMALL)) as again:
        assert again.sender("open.again").is_open


def _connections(mesh, listener):
    listeners = mesh.snapshot("r1")["driver"]["listeners"]
    return next(each["connection_count"] for each in listeners if each["name"] == f"clients-{listener}")


# Who says nothing
@pytest.mark.parametrize(
    ("listener", "said", "awaited"),
    [
        (HASTY, b"", "protocol header"),
        (HASTY, AMQP[:5], "protocol header"),
        (HASTY, AMQP, "open frame"),
        (HASTY, SASL, "sasl-init"),
        (REQUIRED, SASL, "sasl-init"),
        (REQUIRED, b"", "protocol header"),
    ],
    ids=["nothing", "half a header", "AMQP header", "SASL header", "SASL header where required", "nothing, required"],
)
def test_a_silent_connection_is_closed_after_the_handshake_timeout(offend, listener, said, awaited):
    offender = offend(listener)
    offender.send(said)
    offender.answer()
    reason = offender.wait_one_complaint()["reason"]
    assert awaited in reason
    assert "1 s" in reason


def test_one_that_starts_scram_and_falls_silent_is_closed_after_the_handshake_timeout(offend):
    offender = offend(REQUIRED)
    name, first = b"SCRAM-SHA-256", b"n,,n=anonymous,r=abcdefghijkl"
    fields = b"\xa3" + bytes([len(name)]) + name + b"\xa0" + bytes([len(first)]) + first
    offender.send(SASL, frame(b"\x00\x53\x41\xc0" + bytes([len(fields) + 1, 2]) + fields, kind=1))
    offender.answer()
    offender.wait_one_complaint()
