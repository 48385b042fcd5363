"""A TLS connection that is over takes no memory, whoever made it, and however it ended."""

from __future__ import annotations

import ctypes
import gc
import ssl
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mesh.certs import Certificate, NodeRequest, ensure_pki
from wire.transport.tls import (
    Role,
    client_context,
    listener_context,
    mesh_connector_context,
    mesh_listener_context,
)
from wire.transport.tls_session import TlsSession

CONNECTIONS = 200
MOST_BYTES_EACH = 100
"""A session that is kept takes some KB. What OpenSSL and the allocator keep in stock comes in steps, and once."""


class Mallinfo2(ctypes.Structure):
    """See mallinfo(3)."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks")),
        *((name, ctypes.c_size_t) for name in ("uordblks", "fordblks", "keepcost")),
    ]


@pytest.fixture
def used_bytes() -> Callable[[], int]:
    """What the C libraries of this process have allocated and not freed."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("only glibc counts what is allocated")
    library.mallinfo2.restype = Mallinfo2

    def count() -> int:
        gc.collect()
        found = library.mallinfo2()
        return int(found.uordblks + found.hblkhd)

    return count


@dataclass(frozen=True)
class Contexts:
    listener: ssl.SSLContext
    dialer: ssl.SSLContext


def between_nodes(listener: Certificate, dialer: Certificate) -> Contexts:
    return Contexts(mesh_listener_context(listener.files), mesh_connector_context(dialer.files))


def from_client(listener: Certificate, dialer: Certificate) -> Contexts:
    files = listener.files
    return Contexts(listener_context(files.certificate, files.key), client_context(files.ca, verifies_host=False))


def from_client_with_certificate(listener: Certificate, dialer: Certificate) -> Contexts:
    files, own = listener.files, dialer.files
    return Contexts(
        listener_context(files.certificate, files.key, files.ca),
        client_context(files.ca, own.certificate, own.key, verifies_host=False),
    )


KINDS = (between_nodes, from_client, from_client_with_certificate)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> list[Certificate]:
    requests = [NodeRequest("b1", Role.BROKER), NodeRequest("r1", Role.ROUTER)]
    return ensure_pki(tmp_path_factory.mktemp("pki"), "m", requests)


def connect(contexts: Contexts, *, is_closed: bool) -> None:
    """One connection: a handshake, some bytes in each direction, and its end."""
    dialer = TlsSession(contexts.dialer, server_side=False)
    listener = TlsSession(contexts.listener, server_side=True)
    for _ in range(3):
        listener.receive(dialer.output())
        dialer.receive(listener.output())
    assert dialer.peer is not None
    assert listener.is_ready
    dialer.send(b"to the listener")
    listener.send(b"to the dialer")
    assert listener.receive(dialer.output()) == b"to the listener"
    assert dialer.receive(listener.output()) == b"to the dialer"
    if is_closed:
        dialer.close()
        listener.receive(dialer.output())
        listener.close()
        dialer.receive(listener.output())


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "lost"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS 1.2", "TLS 1.3"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_connection_that_is_over_takes_no_memory(
    nodes: list[Certificate],
    used_bytes: Callable[[], int],
    kind: Callable[[Certificate, Certificate], Contexts],
    version: ssl.TLSVersion,
    is_closed: bool,
) -> None:
    contexts = kind(*nodes)
    if version < contexts.dialer.minimum_version:
        pytest.skip("nodes talk TLS 1.3 to each other, and nothing else")
    contexts.dialer.maximum_version = version
    for _ in range(CONNECTIONS):
        connect(contexts, is_closed=is_closed)
    before = used_bytes()
    for _ in range(CONNECTIONS):
        connect(contexts, is_closed=is_closed)
    assert (used_bytes() - before) / CONNECTIONS < MOST_BYTES_EACH
    assert contexts.listener.session_stats()["number"] == 0
