"""Which port may a test listen on, and where does it connect from?"""

import itertools
import socket

from mesh.deploy.free_ports import free_ports

_hosts = itertools.count((127 << 24) + (1 << 16) + 1)


def free_port() -> int:
    """A port that nobody listens on at the loopback address, and that nobody else on this machine was given."""
    return next(free_ports())


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def connect_from_new_host(port: int, timeout_s: float) -> socket.socket:
    """A connection to ``port`` from a loopback address of its own: in one log, the kernel's ports come again."""
    host = socket.inet_ntoa(next(_hosts).to_bytes(4, "big"))
    return socket.create_connection(("127.0.0.1", port), timeout_s, source_address=(host, 0))


def local_name(connected: socket.socket) -> str:
    """``host:port`` of our end, as the peer logs it."""
    host, port = connected.getsockname()
    return f"{host}:{port}"
